package session

import (
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/spec"
)

// resend is the sets that the server is to send whole, each asked for once until it comes.
type resend struct {
	asked   map[spec.SetRef]bool
	pending []spec.SetRef // of asked, not sent yet
}

// askAgain takes what came of sets: those that came whole are not missing any more, and those in gaps
// are asked for.
func (s *Session) askAgain(came []*proto.SetDifference, gaps []spec.SetRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range came {
		if d.GetBase() == 0 {
			delete(s.resend.asked, wire.ToSetRef(d.GetSet()))
		}
	}
	for _, ref := range gaps {
		if !s.resend.asked[ref] {
			s.resend.asked[ref] = true
			s.resend.pending = append(s.resend.pending, ref)
		}
	}
	if len(s.resend.pending) > 0 {
		s.c.cfg.Outbox.Notify()
	}
}

// resendMessage asks for what is missing, once; nil: nothing is.
func (s *Session) resendMessage() *proto.FromNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.resend.pending) == 0 {
		return nil
	}
	m := &proto.Resend{}
	for _, ref := range s.resend.pending {
		m.Sets = append(m.Sets, wire.SetName(ref))
	}
	s.resend.pending = nil
	return &proto.FromNode{Kind: &proto.FromNode_Resend{Resend: m}}
}
