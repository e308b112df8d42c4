package plan

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// create gives a life to members in range that have none (rule 3) or whose life is
// proven gone (rule 4): both are the same vacant seat, and the old record is
// replaced in the transaction that starts the new life. OrderedReady: one at a
// time, each after all before it are available. It reports whether every member in
// range is available, so that the next rule may run; Parallel never holds it up.
func (s *step) create() bool {
	if !s.ordered() {
		for _, i := range s.wanted {
			if t := &s.seats[i]; !t.available {
				s.attend(t)
			}
		}
		return true
	}
	var held string // by a broken member that yields to a higher one
	for at, i := range s.wanted {
		t := &s.seats[i]
		switch {
		case t.available:
			continue
		case s.yields(t, at):
			s.tell(t)
			held = fmt.Sprintf("waits for %s: %s", t.id.MemberName(), s.standing(t))
			continue
		case held != "" && t.vacant() && !s.turned(t):
			s.block(t, spec.BlockedPredecessor, held)
			continue
		}
		s.attend(t)
		text := fmt.Sprintf("waits for %s: %s", t.id.MemberName(), s.plan.Blocked[len(s.plan.Blocked)-1].Text)
		for _, j := range s.wanted[at+1:] {
			if later := &s.seats[j]; later.vacant() {
				s.block(later, spec.BlockedPredecessor, text)
			} else if !later.available {
				s.tell(later)
			}
		}
		s.holdSurplus(text)
		return false
	}
	return true
}

// yields: the member is off its target, and broken or lapsed, and a higher one whose turn
// came returns on its target before this one is replaced in its turn.
func (s *step) yields(t *seat, at int) bool {
	if !s.replacesBroken() || s.broken(t) == "" && !s.lapsed(t) {
		return false
	}
	for _, j := range s.wanted[at+1:] {
		if s.arriving(&s.seats[j]) {
			return true
		}
	}
	return false
}

// attend starts a life on a vacant seat if it can. It always says what a seat that
// is not available waits for.
func (s *step) attend(t *seat) {
	if !t.vacant() {
		s.tell(t)
		return
	}
	if s.full {
		s.block(t, spec.BlockedTurn, "another member is replaced first")
		return
	}
	if t.kept {
		s.block(t, spec.BlockedTurn, "its volumes are kept after all, which is recorded first")
		return
	}
	if len(t.strays) > 0 {
		s.block(t, spec.BlockedStray, t.strayText()+"; a second one must not start")
		return
	}
	if rest := s.w.Rest[t.id]; t.over && rest > 0 && s.due(t) == t.member.Revision {
		s.block(t, spec.BlockedBackOff, "its last lives failed one after another; the next try follows after a while: "+s.cause(t))
		s.wake(rest)
		return
	}
	start, reason, text := s.start(t)
	if reason != "" {
		s.block(t, reason, text)
		return
	}
	s.act(start)
	member := start.Member
	t.member, t.identity = &member, &start.Identity
	t.report, t.ready, t.available, t.over, t.live, t.silence = nil, false, false, false, true, proof.Silence{}
	s.tell(t)
}

func (s *step) wake(after time.Duration) {
	if s.plan.Wake == 0 || after < s.plan.Wake {
		s.plan.Wake = after
	}
}

// reason says why a new life is begun.
func (s *step) reason(t *seat) records.Reason {
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

// strayText says which life of a member the store does not know.
func (t *seat) strayText() string {
	x := t.strays[0]
	if x.Stray.Token.IsZero() {
		return fmt.Sprintf("what is stored of node %s cannot be read, so it may run a life of it; start its agent, or, if it is off: stead node fence %s --i-have-powered-off", x.Node, x.Node)
	}
	return fmt.Sprintf("node %s runs a life of it (token %s) that the store does not know", x.Node, x.Stray.Token)
}
