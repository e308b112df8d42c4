package model

import (
	"fmt"

	"github.com/stead-project/stead/agent/step"
)

// hostMoves are the agent's operations, its crash, and the machine's.
func (e *Explorer) hostMoves(s *State, n uint8, yield func(State, string)) {
	h := &s.host[n]
	for o := range int(e.bounds.Members) {
		l := &h.local[o]
		op, t := e.next(h, l)
		if op.Kind == step.Nothing || op.Kind == step.Wait || op.Kind == step.ReportOver {
			continue
		}
		next := *s
		e.perform(&next, n, o, op.Kind, t)
		yield(next, fmt.Sprintf("n%d: %s for %d %s", n, op.Kind, o, t))
	}
	if s.left.Crashes > 0 {
		next := *s
		next.left.Crashes--
		next.breakStream(n)
		for o := range next.host[n].local {
			next.host[n].local[o].forget()
		}
		e.miss(&next.host[n])
		yield(next, fmt.Sprintf("n%d's agent crashes and starts again", n))
	}
	if s.left.Reboots > 0 {
		next := *s
		next.left.Reboots--
		next.breakStream(n)
		next.host[n].boot++
		next.host[n].confirmed = 0
		for o := range next.host[n].local {
			l := &next.host[n].local[o]
			l.alive, l.box = 0, none
			if l.open != 0 {
				l.close(l.open)
			}
			l.otok, l.ogoal, l.over = 0, none, 0
			l.rec, l.ended, l.killed, l.landing = 0, false, false, 0
		}
		yield(next, fmt.Sprintf("n%d boots anew", n))
	}
}

// forget is what an agent loses; the order of an open life is kept on tmpfs.
func (l *local) forget() {
	switch {
	case l.open == 0:
		l.otok, l.ogoal = 0, none
	case l.over >= l.open || l.otok > l.open:
		l.otok, l.ogoal = l.open, stop
	case l.otok != l.open:
		l.otok, l.ogoal = l.open, run
	}
	l.over = 0
}

// perform does an operation of an agent.
func (e *Explorer) perform(s *State, n uint8, o int, kind step.Kind, t token) {
	l := &s.host[n].local[o]
	switch kind {
	case step.OpenToken:
		l.open, l.newest = t, t
		if e.bounds.Bound > 0 {
			l.rec, l.ended, l.killed = t, false, false
		}
	case step.Expire:
		l.expire(t)
	case step.CreateContainer, step.StartContainer: // both at once
		l.box = up
		if s.left.Landings > 0 {
			s.left.Landings--
			l.landing = t
			return
		}
		l.alive = t
		e.started(s, n, o, t)
	case step.KillAll: // and at once:
		l.alive, l.box, l.landing = 0, none, 0
	case step.RemoveContainer, step.RemoveContainers:
		l.box, l.landing = none, 0
	case step.CloseToken, step.Refuse:
		l.close(t)
	default:
		panic("the model does not know the operation " + string(kind))
	}
}

// started judges the begin of a process.
func (e *Explorer) started(s *State, n uint8, o int, t token) {
	first := s.firstOf(o, t)
	if *first != 0 && *first != n+1 {
		e.violate("token %s of %d is started on n%d, and was on n%d", t, o, n, *first-1)
	}
	for m := range uint8(nodes) {
		if other := s.host[m].local[o].alive; m != n && other != 0 {
			e.violate("two lives of %d: %s on n%d and %s on n%d", o, t, n, other, m)
		}
	}
	*first = n + 1
}

func (l *local) close(t token) {
	if l.open == t {
		l.open = 0
	}
	l.newest = max(l.newest, t)
	for k := range l.ends {
		if l.ends[k] == 0 {
			l.ends[k] = t
			return
		}
	}
	l.ends[0], l.ends[1] = l.ends[1], t // more than the model has room for: the oldest was told long ago
}
