package plan

import "github.com/stead-project/stead/spec"

// Next decides what is to be done for one set now. It is the table of contents of
// SEMANTICS Part 1: each rule is a file. Under OrderedReady the first rule that
// acts or waits ends the step; scale has precedence over update.
func Next(w World) Plan {
	if w.Set == nil {
		return Plan{} // what is left of a set without a record runs on: absence is no order
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
	if s.w.Set.Deleting { // rule 1
		s.remove()
		return
	}
	s.revise()
	s.forgetSurplus()
	if s.create() { // rules 3 and 4; rule 2 (broken and obsolete) comes before them
		s.shrink(spec.ReasonScaleDown) // rule 5
	}
	// Rules 6 to 9 (paused, update, completion, deadline) follow here.
	s.mark()
}
