package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// create gives a life to members in range that have none (rule 3) or whose life is
// proven gone (rule 4): both are the same vacancy, and the old record is
// replaced in the transaction that starts the new life. OrderedReady: one at a
// time, each after all before it are available. It reports whether every member in
// range is available, so that the next rule may run; Parallel never holds it up. disturbed: one
// was taken down in this step already, so that nobody starts and all only say what they wait for.
func (s step) create(disturbed bool) bool {
	if !s.ordered() {
		for _, i := range s.inside {
			if t := &s.members[i]; !t.Available {
				s.ensureStarted(t, disturbed)
			}
		}
		return true
	}
	var held string // by a broken member that yields to a higher one
	for at, i := range s.inside {
		t := &s.members[i]
		switch {
		case t.Available:
			continue
		case s.defersTo(t, at):
			s.blockWaiting(t)
			held = fmt.Sprintf("waiting for %s: %s", t.id.MemberName(), s.stateText(t))
			continue
		case held != "" && t.vacant() && !s.turned(t):
			s.block(t, causes.BlockedPredecessor, held)
			continue
		}
		text := fmt.Sprintf("waiting for %s: %s", t.id.MemberName(), s.ensureStarted(t, disturbed).Text)
		for _, j := range s.inside[at+1:] {
			if later := &s.members[j]; later.vacant() {
				s.block(later, causes.BlockedPredecessor, text)
			} else if !later.Available {
				s.blockWaiting(later)
			}
		}
		s.holdSurplus(text)
		return false
	}
	return true
}

// defersTo: the member is off its target, and broken or lapsed, and a higher one whose turn
// came returns on its target before this one is replaced in its turn.
func (r rollout) defersTo(t *memberState, at int) bool {
	if !r.replacesBroken() || r.broken(t) == "" && !r.lapsed(t) {
		return false
	}
	for _, j := range r.inside[at+1:] {
		if r.arriving(&r.members[j]) {
			return true
		}
	}
	return false
}

// ensureStarted starts the life of a vacant member if it can. It always says what a member that
// is not available waits for, and returns it.
func (s step) ensureStarted(t *memberState, disturbed bool) *Blocked {
	switch rest := s.world.Rest[t.id]; {
	case !t.vacant():
		return s.blockWaiting(t)
	case disturbed:
		return s.block(t, causes.BlockedTurn, "another member is replaced first")
	case t.volumesKept:
		return s.block(t, causes.BlockedTurn, "waiting until it is recorded that its volumes are kept")
	case len(t.strays) > 0:
		return s.block(t, causes.BlockedStray, t.strayText()+"; a second one must not start")
	case t.Over && rest > 0 && s.due(t) == t.member.Revision:
		s.wake(rest)
		return s.block(t, causes.BlockedBackOff, "its last starts failed one after another; waiting before the next attempt: "+t.endedText())
	}
	start, no := s.start(t)
	if no != nil {
		return s.block(t, no.Reason, no.Text)
	}
	s.act(start)
	t.become(t.afterStart(&start))
	return s.blockWaiting(t)
}

// reason says why a new life is begun.
func (s step) reason(t *memberState) records.Reason {
	if t.member != nil { // its last life is over
		switch {
		case t.member.Goal == records.GoalRun:
			return records.ReasonReplace
		case t.member.StopReason != records.ReasonScaleDown && t.member.StopReason != records.ReasonDelete:
			return t.member.StopReason
		}
	}
	if !s.initial().Has(t.id.Ordinal) {
		return records.ReasonScaleUp
	}
	return records.ReasonCreate
}
