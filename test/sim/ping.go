package sim

import (
	"time"

	"github.com/stead-project/stead/proto"
)

// line is what is under way of a session's pings. They do not wait for what else is said:
// the network, the two processes and the store alone hold them up.
type line struct {
	sent   map[int64]time.Time // the truth: when each was sent
	due    time.Time
	up     []*proto.FromNode
	down   []*proto.ToNode
	listed bool // the first list was taken, before which no answer comes
}

func newLine(now time.Time) line { return line{sent: map[int64]time.Time{}, due: now} }

// keepAlive moves what is under way of the pings, and sends the next one, which ends a
// session that heard nothing for its TTL.
func (n *node) keepAlive() {
	x := n.session()
	if x == nil {
		return
	}
	l := &x.line
	if !n.cut && x.s.up && !x.s.hung {
		for _, m := range l.up {
			x.manual.Receive(m)
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
	if n.session() != x || n.w.clock.Before(l.due) {
		return
	}
	m, err := x.own.Ping()
	if err != nil {
		n.endSession(err.Error())
		return
	}
	l.sent[m.GetPing().GetId()], l.due = n.w.clock, n.w.clock.Add(x.own.PingEvery())
	l.up = append(l.up, m)
}

// hear takes the answers that came.
func (x *stream) hear() {
	l, n := &x.line, x.n
	for l.listed && n.session() == x && len(l.down) > 0 {
		m := l.down[0]
		l.down = l.down[1:]
		n.w.count("pong")
		n.guard.answered = l.sent[m.GetPong().GetId()]
		keeper := n.agent.keeper
		n.run(func() {
			must(x.own.Handle(m))
			if n.w.plant.ConfirmedByArrival {
				_ = keeper.Confirm(n.uptime())
			}
		})
	}
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
			_ = x.manual.SendAnswers() // what ends the session is told with the next list
		}
	}
}
