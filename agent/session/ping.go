package session

import (
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
)

var (
	errSilent = errors.New("the server does not answer pings")
	errGuards = errors.New("this node guards lives now; it reconnects to say so")
)

// Ping returns the next ping. An error says why the session is to end instead: the server
// does not answer, or has heard in hello what is no longer so.
func (s *Session) Ping() (*proto.FromNode, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c.cfg.Now().Sub(s.pong) > s.ttl {
		return nil, errSilent
	}
	if !s.guards && s.c.cfg.Deadlines.Watched() {
		return nil, errGuards
	}
	s.pings++
	s.unanswered[s.pings] = s.c.cfg.Clock()
	return &proto.FromNode{Kind: &proto.FromNode_Ping{Ping: &proto.Ping{Id: s.pings}}}, nil
}

// answered takes a pong. From the moment its ping was sent guarded lives count their
// bound. What the members are shown is confirmed for a TTL from then, if they were sent
// all: until its end no server can have ended this session, and so counted the node's
// members otherwise (SAFETY S5).
func (s *Session) answered(p *proto.Pong) {
	s.mu.Lock()
	s.pong = s.c.cfg.Now()
	sent, asked := s.unanswered[p.GetId()]
	maps.DeleteFunc(s.unanswered, func(id int64, _ time.Duration) bool { return id <= p.GetId() })
	s.mu.Unlock()
	s.c.contact.answered()
	if !p.GetHeld() {
		s.c.cfg.Known.Add(wire.ToKnown(p.GetKnown()))
	}
	s.c.cfg.Deadlines.Hold(p.GetHeld())
	if !asked {
		return
	}
	_ = s.c.cfg.Deadlines.Confirm(sent) // it logs why it cannot
	if until := sent + s.ttl; p.GetCurrent() && until > s.c.ConfirmedUntil() {
		s.c.confirmed.Store(int64(until)) // the session's receiver alone writes
	}
	s.c.cfg.Workers.Confirmed() // in any case: a guarded life may wait for its deadline to move
}

// contact is when a session of the node started, and when a server last answered.
type contact struct {
	now func() time.Time

	mu           sync.Mutex
	since, heard time.Time // since is zero: there is no session
	ttl          time.Duration
}

func (c *contact) started(ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.heard, c.ttl = c.now(), c.now(), ttl
}

// answered: a server answered a ping.
func (c *contact) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = c.now()
}

func (c *contact) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Time{}
}

// look is the session's age and margin; both are zero when there is none.
func (c *contact) look() (age, margin time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		return 0, 0
	}
	now := c.now()
	return now.Sub(c.since), max(0, c.ttl-now.Sub(c.heard))
}
