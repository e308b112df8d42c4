package plan

import "github.com/stead-project/stead/records"

// Next decides what is to be done for one set now. It is the table of contents of
// SEMANTICS Part 1: each rule is a file. Under OrderedReady the first rule that
// acts or waits ends the step; scale has precedence over update.
func Next(w World) Plan {
	if w.Set == nil {
		return remains(w)
	}
	s := newStep(w)
	if !s.unreadable() {
		s.decide()
	}
	s.plan.Status = s.status()
	return s.plan
}

// decide runs the rules in their order.
func (s *step) decide() {
	if s.halt() {
		return
	}
	if s.w.Set.Deleting { // rule 1
		s.remove()
		return
	}
	if s.w.Set.Orphaned {
		s.abandon()
		return
	}
	s.inherit()
	s.revise()
	s.forgetSurplus()
	s.keep()
	s.byHand()
	s.settle()
	s.release()
	s.queue()
	s.complete() // rule 8
	s.deadline() // rule 9
	s.prune()
	s.mark()
}

// settle runs rules 2 to 7. Under OrderedReady the first that acts or waits ends the
// step; under Parallel each rule runs, on its own members.
func (s *step) settle() {
	if s.recreate() { // rule 7 for Recreate, which waits for nobody's health
		return
	}
	cured := s.cure() // rule 2
	s.full = (s.restart() || cured) && s.ordered()
	if !s.create() { // rules 3 and 4
		return
	}
	if s.shrink(records.ReasonScaleDown) || !s.ordered() { // rule 5
		s.roll(cured) // rule 7
	}
}
