package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// ChangeInPlace has the containers of a life brought to what another revision says, without a new life (SEMANTICS Part 3, In place). It
// takes the place of an order that is under way.
type ChangeInPlace struct {
	ID       spec.Identity
	Token    spec.Token
	Change   inplace.ChangeOrder
	Identity records.IdentityRecord // as it is to be: should the life end, its turn has come
	Text     string                 // for the event
}

func (ChangeInPlace) action() {}

// Record is what it makes of the member's record.
func (a *ChangeInPlace) Record(m records.Member) records.Member {
	m.Change = &a.Change
	return m
}

// changer has the rules of members that go to their targets in their turns.
type changer struct{ volumes }

// bring has a member whose turn has come go to its target: by a change in place if that can be, else by a new life.
func (s changer) bring(t *memberState) {
	why := fmt.Sprintf("the update from revision %s to %s", t.Member.Revision, s.target(t))
	if len(s.strategy().InPlace) > 0 || t.Member.Change != nil {
		no := s.change(t)
		if no == "" {
			return
		}
		why += "; not in place, for " + no
	}
	s.stop(t, records.ReasonUpdate, why)
}

// change orders the change of a member in place to its target, or says why that needs a new life.
func (s changer) change(t *memberState) (no string) {
	target := s.target(t)
	c, no := s.changeTo(t.memberFacts, target)
	switch {
	case t.refused != "" && t.Member.Change.Revision == target:
		return t.refused
	case no != "":
		return no
	case t.Identity == nil:
		return "nothing is recorded of its identity"
	case !s.takesChanges(t.Member.Node):
		return fmt.Sprintf("the agent of node %s is too old for that", t.Member.Node)
	case t.Request != nil:
		return "a restart was requested"
	case s.leaving(t) != nil:
		return fmt.Sprintf("node %s is to be empty", t.Member.Node)
	case Service(s.world.Set, s.former, t.Member) != s.world.Set.Service():
		return "its service is renamed"
	case c.Image && t.says().Leads && s.stepsDown(t):
		return "it leads, and is to step down first (stepDown)"
	}
	if no := s.growBy(t, target); no != "" {
		return no
	}
	a := ChangeInPlace{
		ID: t.ID, Token: t.Member.Token, Change: inplace.ChangeOrder{ID: s.changeID(t), Revision: target}, Identity: *t.Identity,
		Text: fmt.Sprintf("%s changes in place on node %s: the update from revision %s to %s", t.ID.MemberName(), t.Member.Node, t.Member.Revision, target),
	}
	a.Identity.Due = target
	s.act(a)
	t.become(t.afterChange(&a))
	return ""
}

// stepsDown: a hook of the member is to be run before it stops, if it leads.
func (s changer) stepsDown(t *memberState) bool {
	for c := range s.runs(t.Member.Revision, t.ID.Ordinal).All() {
		if c.StepDown != nil {
			return true
		}
	}
	return false
}

// growBy takes on the node of a member what its target requests beyond what counts for it there; it says why that cannot be.
func (s changer) growBy(t *memberState, target spec.RevisionHash) string {
	of := func(h spec.RevisionHash) *spec.MemberSpec { return s.runs(h, t.ID.Ordinal) }
	cpu, memory := t.Member.Requests(of)
	wantCPU, wantMemory := of(target).Requests()
	if wantCPU <= cpu && wantMemory <= memory {
		return "" // also where the node has promised too much
	}
	if no := s.placer.Grow(t.Member.Node, max(wantCPU-cpu, 0), max(wantMemory-memory, 0)); no != nil {
		return no.Text
	}
	return ""
}

// changeID is newer than that of any order of the life, also of one that the store does not know.
func (s changer) changeID(t *memberState) spec.Sequence {
	id := spec.Sequence{Epoch: s.world.Epoch, Rev: s.world.Rev}
	known := []spec.Sequence{t.Member.Changed}
	if t.Member.Change != nil {
		known = append(known, t.Member.Change.ID)
	}
	if t.Report != nil {
		known = append(known, t.Report.Change.ID)
	}
	for _, k := range known {
		if k.Compare(id) >= 0 {
			id = spec.Sequence{Epoch: k.Epoch, Rev: k.Rev + 1}
		}
	}
	return id
}

// redirect gives members whose change is under way, and that are to go elsewhere by now, another order: also back to what they had. Their
// turn has come, and they count as down: where it cannot be done in place, they get a new life. Of those that are not ready,
// rule 2 decides: what was ordered may be what is wrong. It reports whether it stopped any.
func (s changer) redirect() (stopped bool) {
	if s.onDelete() || s.recreates() {
		return false
	}
	for t := range s.turns() {
		if !t.changing || t.vacant() || t.unseen() || !t.Ready || s.held(t) || !s.obsolete(t) || s.waitsForBusy(t) != nil {
			continue
		}
		s.bring(t)
		stopped = stopped || t.stopping()
	}
	return stopped
}

// changingState is what a member waits for that is changed in place.
func changingState(t *memberState) (reason causes.BlockedReason, text string) {
	what := fmt.Sprintf("it is being changed in place to revision %s on node %s", t.Member.Change.Revision, t.Member.Node)
	switch last := t.Report; {
	case last == nil:
	case last.Cause != "" && last.Cause != causes.NotReady:
		return causes.BlockedReason(last.Cause), fmt.Sprintf("%s, and reports %s: %s", what, last.Cause, last.Message)
	case !last.Ready:
		return causes.BlockedChanging, what + ", and is not ready"
	}
	return causes.BlockedChanging, what
}

// refusalText says of a member that waits for its turn that it gets a new life then, and why.
func refusalText(t *memberState) string {
	if t.refused == "" {
		return ""
	}
	return fmt.Sprintf("; it was to change in place to revision %s, but %s", t.Member.Change.Revision, t.refused)
}
