package plan

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// Next decides what is to be done for one set now. It is the table of contents of
// SEMANTICS Part 1: each rule is a file. Under OrderedReady the first rule that
// acts or waits ends the step; scale has precedence over update.
func Next(w World) Plan {
	if w.Set == nil {
		return planRemovedSet(w)
	}
	s := newStep(w)
	if !s.blockUnreadable() {
		s.decide()
	}
	s.plan.Status = s.reporter().status()
	return s.plan
}

// step is one run of Next: the rules, each in its file. It is made of layers, each of which may
// ask only those below it: facts, what is known; draft, what is decided so far; rollout, where
// each member is in an update; explainer, the words for who waits; volumes, what becomes of
// volumes; and the rules of members on top.
type step struct{ volumes }

type (
	rollout   struct{ *draft }
	explainer struct{ rollout }
	volumes   struct{ explainer }
)

func newStep(w World) step {
	r := rollout{newDraft(newFacts(w))}
	r.plan.Outages = r.outages()
	return step{volumes{explainer{r}}}
}

// decide runs the rules in their order.
func (s step) decide() {
	if s.blockHalted() {
		return
	}
	if s.world.Set.Deleting { // rule 1
		s.remove()
		return
	}
	if s.world.Set.Orphaned {
		s.reconcileOrphaned()
		return
	}
	s.inheritBootstrapped()
	s.revise()
	s.forgetSurplus()
	s.keepVolumes()
	s.applyRequests()
	s.startAndStop()
	s.reclaimVolumes()
	s.queue()
	s.complete() // rule 8
	s.deadline() // rule 9
	s.prune()
	s.mark()
}

// startAndStop runs rules 2 to 7. Under OrderedReady the first that acts or waits ends the
// step; under Parallel each rule runs, on its own members.
func (s step) startAndStop() {
	if s.recreate() { // rule 7 for Recreate, which waits for nobody's health
		return
	}
	cured := s.replaceBrokenMembers() // rule 2
	disturbed := s.restart() || cured
	if !s.create(disturbed && s.ordered()) { // rules 3 and 4
		return
	}
	if s.shrink(records.ReasonScaleDown) || !s.ordered() { // rule 5
		s.roll(cured) // rule 7
	}
}

// blockUnreadable blocks every member when the records do not allow any decision.
func (s step) blockUnreadable() bool {
	text := s.unreadable()
	if text == "" {
		return false
	}
	for _, i := range s.inside {
		s.block(&s.members[i], causes.BlockedUnreadable, text)
	}
	return true
}
