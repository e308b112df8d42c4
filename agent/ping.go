package agent

import (
	"errors"
	"maps"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
)

var (
	errSilent = errors.New("the server does not answer pings")
	errGuards = errors.New("this node guards lives now; it says hello again to tell so")
)

func (s *session) asked(ping int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pings[ping] = s.a.c.Clock()
}

// answered takes a pong. From the moment its ping was sent guarded lives count their
// bound. What the members are shown is confirmed for a TTL from then, if they were told
// all: until its end no server can have ended this session, and so counted the node's
// members otherwise (SAFETY S5).
func (s *session) answered(p *proto.Pong) {
	s.mu.Lock()
	s.pong = time.Now()
	sent, known := s.pings[p.GetId()]
	maps.DeleteFunc(s.pings, func(id int64, _ time.Duration) bool { return id <= p.GetId() })
	s.mu.Unlock()
	s.a.contact.answered()
	if !p.GetHeld() {
		s.a.memory.hear(wire.ToKnown(p.GetKnown()))
	}
	s.a.deadlines.Hold(p.GetHeld())
	if !known {
		return
	}
	_ = s.a.deadlines.Confirm(sent) // it logs why it cannot
	if p.GetCurrent() {
		s.a.confirm(sent + s.ttl)
	}
}

// stale says why the session is to end: a server that does not answer, or that was told
// what is no longer so.
func (s *session) stale() error {
	if s.silent() {
		return errSilent
	}
	if !s.guards && s.a.deadlines.Watched() {
		return errGuards
	}
	return nil
}

func (s *session) silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.pong) > s.ttl
}
