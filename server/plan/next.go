package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Next decides what is to be done for one set now. It is the table of contents of
// SEMANTICS Part 1: each rule is a file. Under OrderedReady the first rule that
// acts or waits ends the step; scale has precedence over update.
func Next(w World) Plan {
	switch {
	case w.Claim != nil:
		return planClaim(w)
	case w.Set == nil:
		return planRemovedSet(w)
	}
	s := newStep(w)
	if s.blockUnreadable() {
		s.plan.Unfold = w.Folded != nil // it is said of every member
	} else {
		s.decide()
	}
	s.countOthers()
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
	r.plan.Outages, r.firstBusy = r.outages(), r.findBusy()
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
	s.followJobs(true)
	s.revise()
	reachTargets(s.rollout)
	s.forgetSurplus()
	leaver(s).takeBack()
	leaver(s).tellGone()
	s.keepVolumes()
	s.applyRequests()
	s.mover().moveVolumes()
	s.startAndStop()
	s.reclaimVolumes()
	s.queue()
	s.complete() // rule 8
	s.deadline() // rule 9
	s.blockJobs()
	s.prune()
	s.mark()
}

// startAndStop runs rules 2 to 7. Under OrderedReady the first that acts or waits ends the
// step; under Parallel each rule runs, on its own members.
func (s step) startAndStop() {
	if s.recreate() { // rule 7 for Recreate, which waits for nobody's health
		return
	}
	redirected := changer(s).redirect()
	cured := s.replaceBrokenMembers() // rule 2
	restarted := s.restart()
	drained := s.drain()
	moved := s.mover().stopForMoves()
	if disturbed := redirected || cured || restarted || drained || moved; !s.create(disturbed && s.ordered()) { // rules 3 and 4
		return
	}
	if s.shrink(scaleDown(s.world.Set)) || !s.ordered() { // rule 5
		s.roll(cured) // rule 7
	}
}

// blockUnreadable blocks every member when the records do not allow any decision.
func (s step) blockUnreadable() bool {
	text := s.unreadable()
	if text == "" {
		return false
	}
	for _, t := range s.inside {
		s.block(t, causes.BlockedUnreadable, text)
	}
	return true
}

// remove is rule 1: the set is being deleted. Volumes go by whenDeleted, and those that are kept
// keep the identities. When no life remains, and it is recorded which volumes go, the set's own
// record goes, last.
func (s step) remove() {
	lives := slices.ContainsFunc(s.members, func(t *memberState) bool { return t.Member != nil })
	s.followJobs(false)
	s.mark() // before the first stop: what was ready on a volume is not seen afterwards
	s.applyRequests()
	s.mover().moveVolumes()
	given := s.reclaimVolumes()
	moving := slices.ContainsFunc(s.members, func(t *memberState) bool { return t.Move != nil })
	switch {
	case lives:
		s.forgetSurplus()
		s.shrink(records.ReasonDelete)
	case !given && !moving:
		s.act(RemoveSet{})
	}
}

// orphanedText says of a set or member what its being orphaned means, and what next.
const orphanedText = "it is not managed; apply the set again to adopt it, or delete it"

// reconcileOrphaned is what remains of the rules for a set that was orphaned (rule 1,
// --cascade=orphan): none. Lives run on and end by themselves; no volume, address or revision
// goes. Marks are no orders: a volume that was ready must not seem fresh after the adoption.
func (s step) reconcileOrphaned() {
	s.followJobs(false)
	for _, t := range s.members {
		switch {
		case t.Over:
			s.block(t, causes.BlockedOrphaned, "its life is over, and "+orphanedText)
		case t.Member != nil:
			s.blockWaiting(t)
		case t.wanted:
			s.block(t, causes.BlockedOrphaned, "it has no life, and "+orphanedText)
		}
	}
	s.mover().moveVolumes() // those that there are end
	s.mark()
}

// halted says why nothing at all is decided now, as a reason and a sentence; "": it is.
// The store went back and nobody has declared what is to be done about it, or its restore
// was declared, and a node that has not been heard may run lives that it does not know. Or
// this server has just started, and a node may know that the store went back.
func halted(w *World) (reason causes.BlockedReason, text string) {
	if w.Hold != nil {
		return causes.BlockedHeld, w.Hold.Refusal()
	}
	var missing []spec.NodeName
	for _, n := range proof.MissingNodes(w.Epoch, w.Count, w.Nodes) {
		missing = append(missing, n.Name)
	}
	if len(missing) > 0 {
		return causes.BlockedRestored, fmt.Sprintf("the store was restored; nothing is started, stopped, moved or given up until %s reported what it runs ('stead restore --status')", theyHave(missing))
	}
	if w.Count.Open(w.Epoch) {
		return causes.BlockedRestored, "the store was restored; every node has reported what it runs; waiting until that is recorded"
	}
	if len(w.Awaited) > 0 {
		return causes.BlockedAwaiting, fmt.Sprintf("the server has just started; nothing is started, stopped, moved or given up until %s connected, or %s have passed",
			theyHave(w.Awaited), w.AwaitFor.Round(time.Second))
	}
	return "", ""
}

// theyHave names the first nodes of a list as the subject of a sentence.
func theyHave(nodes []spec.NodeName) string {
	named := nodes[:min(len(nodes), place.MostNamed)]
	switch more := len(nodes) - len(named); {
	case len(nodes) == 1:
		return fmt.Sprintf("node %s has", named[0])
	case more > 0:
		return fmt.Sprintf("each of the nodes %s and %d more has", place.Names(named), more)
	}
	return fmt.Sprintf("each of the nodes %s has", place.Names(named))
}

// blockHalted decides nothing and says so of every member that waits for something; false: it
// may continue. What is seen of the lives is marked all the same, as for an orphaned set.
func (s step) blockHalted() bool {
	reason, text := halted(&s.world)
	if reason == "" {
		return false
	}
	for _, t := range s.members {
		switch {
		case t.Available && t.wanted:
		case t.Member != nil && t.wanted && !t.Over:
			s.blockWaiting(t)
		case t.Member != nil || t.wanted || t.pending():
			s.block(t, reason, text)
		}
	}
	if s.world.AwaitFor > 0 {
		s.wake(s.world.AwaitFor)
	}
	if s.world.Hold == nil {
		s.mark()
	}
	return true
}
