// Package session is a node's side of its sessions with servers.
//
// Client holds what lasts from one session to the next; Session is one of them, as data in and
// data out: Handle takes a message of the server, Flush and Ping return what is to be sent.
// Neither knows the network, and neither has a goroutine or a clock of its own, so that a
// simulation can drive them. Client.Run is the loop around them that does.
//
// What a session says comes from Outbox (reports) and agent/reclaim (volumes); what it hears
// goes to Workers, SnapshotCache, Known and agent/deadline. Link is the way to a server over
// the network, and Answerer does what people ask of a node.
package session

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Session is one session that a server welcomed. One goroutine may call Handle while another
// calls Flush and Ping.
type Session struct {
	c      *Client
	id     spec.SessionID
	ttl    time.Duration
	domain string          // of the cluster
	guards bool            // what hello said
	trash  *proto.FromNode // sent first; nil: it was
	pings  int64           // sent so far, and the number of the last

	mu         sync.Mutex
	pong       time.Time               // when the last one came
	unanswered map[int64]time.Duration // when pings were sent, on Clock
	resend     resend
}

// Begin takes the welcome that answered Hello; a client has one session at a time, and End
// ends it. It fails when the server is of another cluster than the node. ctx bounds how long
// the trash is looked at.
func (c *Client) Begin(ctx context.Context, w *proto.Welcome) (*Session, error) {
	if err := c.cfg.Home.Belong(w); err != nil {
		return nil, err
	}
	c.log.Info("session started", "server", w.GetServer())
	// Of a store that is held nothing is learnt, and no guarded life begins.
	if w.GetHeld() {
		c.log.Warn("store held", "server", w.GetServer())
		c.cfg.Deadlines.Hold(true)
	} else {
		c.cfg.Known.Add(wire.ToKnown(w.GetKnown()))
	}
	s := &Session{
		c: c, id: spec.SessionID(w.GetSession()), ttl: time.Duration(w.GetTtlMillis()) * time.Millisecond,
		domain: w.GetDomain(), guards: c.guards, pong: c.cfg.Now(), unanswered: map[int64]time.Duration{},
		resend: resend{asked: map[spec.SetRef]bool{}},
	}
	c.cfg.Snapshots.NewSession()
	c.contact.started(s.ttl)
	c.cfg.Outbox.SendAgain(c.cfg.Workers.Last())
	trash, whole := c.cfg.Reclaimer.NewSession(ctx)
	var err error
	s.trash, err = volumesMessage(whole, trash)
	return s, err
}

// End says that there is no session any more. It may be called without one.
func (c *Client) End() { c.contact.ended() }

// PingEvery is how often Ping is to be called.
func (s *Session) PingEvery() time.Duration { return max(s.ttl/5, time.Millisecond) }

// Flush returns what is to be sent now, in order: what lies in the trash, once, then the
// reports that are due, what became of volumes, which sets are to be sent again, which are asked for, what the node is short of, and what it says of preparations; and how long until something is due again
// (0: nothing waits). Each message is returned once.
func (s *Session) Flush() (messages []*proto.FromNode, next time.Duration, err error) {
	if s.trash != nil {
		messages, s.trash = append(messages, s.trash), nil
	}
	due, next := s.c.cfg.Outbox.Due()
	for i := range due {
		due[i].Session = s.id
	}
	docs, err := wire.Documents(due)
	if err != nil {
		return nil, 0, err
	}
	for part := range slices.Chunk(docs, reportsAtOnce) {
		messages = append(messages, &proto.FromNode{Kind: &proto.FromNode_Reports{Reports: &proto.Reports{ReportsJson: part}}})
	}
	if volumes := s.c.cfg.Reclaimer.TakeReports(); len(volumes) > 0 {
		m, err := volumesMessage(false, volumes)
		if err != nil {
			return nil, 0, err
		}
		messages = append(messages, m)
	}
	if m := s.resendMessage(); m != nil {
		messages = append(messages, m)
	}
	if m := s.c.cfg.Interests.changed(); m != nil {
		messages = append(messages, &proto.FromNode{Kind: &proto.FromNode_Follow{Follow: m}})
	}
	m, err := s.c.cfg.Conditions.changed()
	if err != nil {
		return nil, 0, err
	}
	if m != nil {
		messages = append(messages, m)
	}
	if m, err = s.c.cfg.Prepared.changed(); err != nil {
		return nil, 0, err
	}
	if m != nil {
		messages = append(messages, m)
	}
	if m, err = s.c.cfg.MoveReports.changed(); err != nil {
		return nil, 0, err
	}
	if m != nil {
		messages = append(messages, m)
	}
	return messages, next, nil
}

// reportsAtOnce keeps a message far below the 4 MiB that a server takes of a node.
const reportsAtOnce = 100

func volumesMessage(full bool, reports []records.VolumeReport) (*proto.FromNode, error) {
	docs, err := wire.Documents(reports)
	if err != nil {
		return nil, err
	}
	return &proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: &proto.VolumeReports{Full: full, ReportsJson: docs}}}, nil
}

// Handle takes a message of the server. An error ends the session. Asks are not for it: they
// are an Answerer's.
func (s *Session) Handle(m *proto.ToNode) error {
	switch {
	case m.GetPong() != nil:
		s.answered(m.GetPong())
	case m.GetWanted() != nil:
		return s.c.takeWanted(m.GetWanted())
	case m.GetPictures() != nil:
		return s.takeSnapshots(m.GetPictures())
	case m.GetFiles() != nil:
		return s.c.takeFiles(m.GetFiles())
	case m.GetStored() != nil:
		s.c.takeStored(m.GetStored())
	}
	return nil
}
