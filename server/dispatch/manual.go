package dispatch

import (
	"context"

	"github.com/stead-project/stead/proto"
)

// Desk is one session worked by hand: for a simulation, which owns order and time.
// Session does the same by itself; the two are not to be mixed.
type Desk struct {
	se     *session
	stream proto.Nodes_SessionServer
	told   *told // nil: nothing yet
}

// Desk admits a node, as Session does at its hello. What the session sends goes to
// stream.
func (s *Server) Desk(ctx context.Context, hello *proto.Hello, stream proto.Nodes_SessionServer) (*Desk, *proto.Welcome, error) {
	se, welcome, err := s.join(ctx, hello)
	if err != nil {
		return nil, nil, err
	}
	s.attach(se)
	return &Desk{se: se, stream: stream}, welcome, nil
}

// Receive takes one message of the node after its hello.
func (d *Desk) Receive(msg *proto.FromNode) { d.se.receive(msg) }

// Tell sends all at first, then what differs, and the small answers. Its error ends
// the session.
func (d *Desk) Tell() error {
	if d.se.ctx.Err() != nil {
		return context.Cause(d.se.ctx)
	}
	all := d.told == nil
	if all {
		d.told = newTold()
	}
	if _, err := d.se.tell(d.stream, d.told, all); err != nil {
		return err
	}
	_, err := d.se.flush(d.stream)
	return err
}

// Answer sends the small answers alone; a pong waits for nothing. Its error ends the
// session.
func (d *Desk) Answer() error {
	if d.se.ctx.Err() != nil {
		return context.Cause(d.se.ctx)
	}
	d.se.out.hurry()
	_, err := d.se.flush(d.stream)
	return err
}

// Close ends the session; its key is left to its lease.
func (d *Desk) Close() {
	d.se.cancel(nil)
	d.se.server.detach(d.se)
}

// StoreReports writes what came in of all sessions, as Run does again and again. What
// the store could not take waits for the next time.
func (s *Server) StoreReports(ctx context.Context) {
	for _, u := range s.reports.round(ctx) {
		s.reports.putBack(u)
	}
}

// AnswerPings answers the pings that came in of all sessions, as Run does again and again;
// Answer sends what came of it.
func (s *Server) AnswerPings(ctx context.Context) { s.pings.round(ctx, s.pings.take()) }
