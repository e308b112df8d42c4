package plan

import (
	"fmt"
	"time"
)

// lapse is how long the only member that is not available may be so, off its target and
// ready before, until it is replaced out of turn.
const lapse = 30 * time.Second

// cureLapsed is the part of rule 2 about members that were ready in this life and are not:
// each may serve still, or feed another, so that no second one is stopped because the first
// is not well (SAFETY S20). One at a time, highest first, under either policy: the set's
// only unavailable member, which is the one that the budget allows down; others after the
// progress deadline, the next when the one before is available or out of its own time. One
// that never was available on an abandoned revision waits for the budget alone.
func (s *step) cureLapsed() bool {
	for n := len(s.wanted) - 1; n >= 0; n-- {
		t := &s.seats[s.wanted[n]]
		switch {
		case s.held(t) || !s.serving(t):
			continue
		case s.neverWorked(t) && s.down() <= s.budget():
			s.outOfTurn(t, "it never was available on it")
			return true
		case t.ready: // and becomes available, or lapses
			continue
		}
		switch out, limit := s.outage(t), s.patience(t); {
		case out < limit:
			s.wake(limit - out)
		case s.coming():
			return false
		default:
			s.outOfTurn(t, fmt.Sprintf("it was ready in this life, and has not been available for %d s", int(out.Seconds())))
			return true
		}
	}
	return false
}

// serving: the obsolete member is or was ready in this life, and nothing says that it cannot
// become available by itself.
func (s *step) serving(t *seat) bool {
	return s.obsolete(t) && !t.unseen() && !t.available && t.wasReady() && s.broken(t) == ""
}

// lapsed: a member that was ready in this life has not been available for so long that one
// whose turn came does not wait for it any more.
func (s *step) lapsed(t *seat) bool {
	if !s.serving(t) || t.ready {
		return false
	}
	out := s.outage(t)
	if out >= lapse {
		return true
	}
	s.wake(lapse - out)
	return false
}

// coming: a member whose turn came has time still to become available.
func (s *step) coming() bool {
	for _, i := range s.wanted {
		if t := &s.seats[i]; s.arriving(t) && !s.overdue(t) {
			return true
		}
	}
	return false
}

// overdue: the life has had all the time that one may take to end, when it was told to, or
// to become available.
func (s *step) overdue(t *seat) bool {
	out, limit := s.outage(t), s.term(t)
	if out >= limit {
		return true
	}
	s.wake(limit - out)
	return false
}

// term is all the time that a life may take to end, or to become available.
func (s *step) term(t *seat) time.Duration {
	limit := s.w.Set.Spec.ProgressDeadline()
	if t.stopping() {
		return limit + time.Duration(t.member.GraceSeconds)*time.Second
	}
	return limit + s.allowance(t.member.Revision)
}

// patience is how long an obsolete life may not be available until it is replaced.
func (s *step) patience(t *seat) time.Duration {
	switch {
	case !t.wasReady():
		return s.term(t)
	case s.unavailable() == 1:
		return lapse
	}
	return s.w.Set.Spec.ProgressDeadline()
}

// outage is how long a life has not been available.
func (s *step) outage(t *seat) time.Duration { return s.w.Outages[s.outageOf(t)] }

func (s *step) outageOf(t *seat) Outage {
	o := Outage{ID: t.id, Token: t.member.Token, Goal: t.member.Goal}
	if n := s.node(t.member.Node); n != nil && n.Session != nil {
		o.Session = n.Session.ID
	}
	return o
}

// outages are the lives whose outage is to be measured.
func (s *step) outages() (list []Outage) {
	for _, i := range s.wanted {
		if t := &s.seats[i]; t.member != nil && !t.available {
			list = append(list, s.outageOf(t))
		}
	}
	return list
}

// unavailable counts the wanted members that are not available.
func (s *step) unavailable() (n int) {
	for _, i := range s.wanted {
		n += one(!s.seats[i].available)
	}
	return n
}
