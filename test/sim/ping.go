package sim

import (
	"maps"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
)

// line is what is under way of a session's pings. They do not wait for what else is said:
// the network, the two processes and the store alone hold them up.
type line struct {
	sent   map[int64]sent // those without an answer
	last   int64
	due    time.Time
	up     []int64
	down   []*proto.Pong
	heard  time.Time // when the last answer came
	listed bool      // the first list was taken, before which no answer comes
}

// sent is when a ping was sent: on the node's clock, and the truth.
type sent struct {
	uptime time.Duration
	truth  time.Time
}

func newLine(now time.Time) line {
	return line{sent: map[int64]sent{}, due: now, heard: now}
}

// keepAlive moves what is under way of the pings, sends the next one, and ends a session
// that heard nothing for its TTL.
func (n *node) keepAlive() {
	x := n.session()
	if x == nil {
		return
	}
	l := &x.line
	if !n.cut && x.s.up && !x.s.hung {
		for _, id := range l.up {
			x.desk.Receive(&proto.FromNode{Kind: &proto.FromNode_Ping{Ping: &proto.Ping{Id: id}}})
			x.s.pinged = true
		}
		l.up = nil
	}
	if n.stopped {
		return
	}
	if !n.cut {
		x.hear()
	}
	if n.session() != x {
		return
	}
	if n.w.clock.Sub(l.heard) > sessionTTL {
		n.endSession("the server does not answer")
		return
	}
	if !n.w.clock.Before(l.due) {
		l.last++
		l.sent[l.last], l.due = sent{n.uptime(), n.w.clock}, n.w.clock.Add(sessionTTL/5)
		l.up = append(l.up, l.last)
	}
}

// hear takes the answers that came.
func (x *session) hear() {
	l := &x.line
	if !l.listed {
		return
	}
	for _, p := range l.down {
		id := p.GetId()
		x.n.hear(p.GetHeld(), wire.ToKnown(p.GetKnown()))
		l.heard = x.n.w.clock
		x.n.w.count("pong")
		if s, known := l.sent[id]; known {
			x.n.confirm(s.uptime, s.truth)
			if x.n.session() == x {
				x.n.confirmMembers(s.uptime + sessionTTL)
			}
		}
		if x.n.session() != x {
			return
		}
		maps.DeleteFunc(l.sent, func(old int64, _ sent) bool { return old <= id })
	}
	l.down = nil
}

// answerPings answers what came in, if the store can be reached.
func (s *server) answerPings() {
	if !s.pinged {
		return
	}
	s.pinged = false
	s.nodes.AnswerPings(s.w.ctx)
	for _, n := range s.w.nodes {
		if x := n.session(); x != nil && x.s == s {
			_ = x.desk.Answer() // what ends the session is told with the next list
		}
	}
}
