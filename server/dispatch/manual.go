package dispatch

import (
	"context"

	"github.com/stead-project/stead/proto"
)

// ManualSession is one session worked by hand: for a simulation, which owns order and time.
// Session does the same by itself; the two are not to be mixed.
type ManualSession struct {
	se     *session
	stream proto.Nodes_SessionServer
	state  *sentState // nil: nothing yet
}

// ManualSession starts a session, as Session does at a hello. What it sends goes to stream.
func (s *Server) ManualSession(ctx context.Context, hello *proto.Hello, stream proto.Nodes_SessionServer) (*ManualSession, *proto.Welcome, error) {
	se, welcome, err := s.join(ctx, hello)
	if err != nil {
		return nil, nil, err
	}
	s.attach(se)
	return &ManualSession{se: se, stream: stream}, welcome, nil
}

// Receive takes one message of the node after its hello.
func (m *ManualSession) Receive(msg *proto.FromNode) { m.se.receive(msg) }

// Send sends all at first, then what differs, and the small answers. Its error ends
// the session.
func (m *ManualSession) Send() error {
	if m.se.ctx.Err() != nil {
		return context.Cause(m.se.ctx)
	}
	var err error
	if m.state, _, err = m.se.sendChanges(m.stream, m.state); err != nil {
		return err
	}
	_, err = m.se.flush(m.stream)
	return err
}

// SendAnswers sends the small answers alone; a pong waits for nothing. Its error ends the
// session.
func (m *ManualSession) SendAnswers() error {
	if m.se.ctx.Err() != nil {
		return context.Cause(m.se.ctx)
	}
	m.se.out.releasePong()
	_, err := m.se.flush(m.stream)
	return err
}

// Close ends the session; its key is left to its lease.
func (m *ManualSession) Close() {
	m.se.cancel(nil)
	m.se.pending.sub.Close()
	m.se.server.detach(m.se)
}

// StoreReports writes what came in of all sessions, as Run does again and again. What
// the store could not take waits for the next time.
func (s *Server) StoreReports(ctx context.Context) {
	for _, u := range s.reports.storePending(ctx, false) {
		s.reports.requeue(u)
	}
}

// AnswerPings answers the pings that came in of all sessions, as Run does again and again;
// Answer sends what came of it.
func (s *Server) AnswerPings(ctx context.Context) { s.pings.round(ctx, s.pings.take()) }

// ManualPublisher returns what publishes the snapshots of the sets that changed, as Run does
// again and again.
func (s *Server) ManualPublisher() (publish func()) {
	sub := s.cfg.Cache.Subscribe()
	return func() {
		select {
		case <-sub.C():
			s.snapshots.round(sub.Take())
		default:
		}
	}
}
