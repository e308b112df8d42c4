package plan

import (
	"fmt"
	"time"
)

// lapse is how long the only member that is not available may be so, off its target and
// ready before, until it is replaced out of turn.
const lapse = 30 * time.Second

// replaceLapsedMember is the part of rule 2 about members that were ready in this life and are not:
// each may serve still, or feed another, so that no second one is stopped because the first
// is not well (SAFETY S20). One at a time, highest first, under either policy: the set's
// only unavailable member, which is the one that the budget allows down; others after the
// progress deadline, the next when the one before is available or out of its own time. One
// that never was available on an abandoned revision waits for the budget alone.
func (s step) replaceLapsedMember() bool {
	for n := len(s.inside) - 1; n >= 0; n-- {
		t := &s.members[s.inside[n]]
		switch {
		case s.held(t) || !s.serving(t):
			continue
		case s.neverWorked(t) && s.down() <= s.budget():
			s.stopOutOfTurn(t, "it was never available on it")
			return true
		case t.Ready: // and becomes available, or lapses
			continue
		}
		switch out := s.outage(t); {
		case !s.past(out, s.patience(t)):
		case s.coming():
			return false
		default:
			s.stopOutOfTurn(t, fmt.Sprintf("it was ready in this life, and has not been available for %d s", int(out.Seconds())))
			return true
		}
	}
	return false
}

// serving: the obsolete member is or was ready in this life, and nothing says that it cannot
// become available by itself.
func (r rollout) serving(t *memberState) bool {
	return r.obsolete(t) && !t.unseen() && !t.Available && t.wasReady() && r.broken(t) == ""
}

// lapsed: a member that was ready in this life has not been available for so long that one
// whose turn came does not wait for it any more.
func (r rollout) lapsed(t *memberState) bool {
	if !r.serving(t) || t.Ready {
		return false
	}
	return r.past(r.outage(t), lapse)
}

// coming: a member whose turn came has time still to become available.
func (r rollout) coming() bool {
	for _, i := range r.inside {
		if t := &r.members[i]; r.arriving(t) && !r.overdue(t) {
			return true
		}
	}
	return false
}

// overdue: the life has had all the time that one may take to end, when it was told to, or
// to become available.
func (r rollout) overdue(t *memberState) bool {
	return r.past(r.outage(t), r.term(t))
}

// term is all the time that a life may take to end, or to become available.
func (r rollout) term(t *memberState) time.Duration {
	limit := r.world.Set.Spec.ProgressDeadline()
	if t.stopping() {
		return limit + time.Duration(t.member.GraceSeconds)*time.Second
	}
	return limit + r.allowance(t.member.Revision)
}

// patience is how long an obsolete life may not be available until it is replaced.
func (r rollout) patience(t *memberState) time.Duration {
	switch {
	case !t.wasReady():
		return r.term(t)
	case r.unavailable() == 1:
		return lapse
	}
	return r.world.Set.Spec.ProgressDeadline()
}

// outage is how long a life has not been available.
func (r rollout) outage(t *memberState) time.Duration { return r.world.Outages[r.outageOf(t)] }

func (r rollout) outageOf(t *memberState) Outage {
	o := Outage{ID: t.id, Token: t.member.Token, Goal: t.member.Goal}
	if n := r.node(t.member.Node); n != nil && n.Session != nil {
		o.Session = n.Session.ID
	}
	return o
}

// outages are the lives whose outage is to be measured.
func (r rollout) outages() (list []Outage) {
	for _, i := range r.inside {
		if t := &r.members[i]; t.member != nil && !t.Available {
			list = append(list, r.outageOf(t))
		}
	}
	return list
}
