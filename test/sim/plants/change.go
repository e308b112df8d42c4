package plants

import (
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// changePlants are faults about changes in place (SEMANTICS Part 3, In place).
var changePlants = []Plant{
	{Name: "takes-ordered-for-done", Judges: "in place, differences", See: eachSlot(orderedIsDone), Often: changesInPlace},
	{Name: "changes-all-at-once", Judges: "in place, budget, order, cure, reasons", See: eachSlot(forgetsOrder), Often: changesInPlace},
	{Name: "restarts-instead-of-changing", Judges: "in place", Say: restartsChanged, Often: changesInPlace},
	{Name: "changes-what-differs", Judges: "in place", Say: changesAnyway, Often: changesInPlace},
	{Name: "changes-out-of-turn", Judges: "in place, order, budget, churn", Say: changesTheLowest, Often: changesInPlace},
	{Name: "says-changed-at-once", Judges: "in place, differences", SaysChanged: true, Often: changesInPlace},
	{Name: "takes-templates-without-orders", Judges: "in place, differences", TakesAnyTemplate: true, Often: changesInPlace},
	{Name: "ends-before-the-image-is-there", Judges: "in place", Look: imagesAreThere, Often: changesInPlace},
	{Name: "forgets-what-was-ordered", Judges: "in place, differences", Keep: func(s *worker.State) { s.Change = inplace.ChangeResult{} }, Often: append([]string{"crash-agent", "start-agent"}, changesInPlace...)},
}

var changesInPlace = []string{"change"}

// orderedIsDone takes an order for done when its node has taken it.
func orderedIsDone(_ *plan.World, s *plan.Slot) {
	if s.Member != nil && s.Member.Change != nil && s.Report != nil && s.Report.Token == s.Member.Token {
		own(&s.Report).Change = inplace.ChangeResult{ID: s.Member.Change.ID, Revision: s.Member.Change.Revision, Done: true}
	}
}

// forgetsOrder does not see that a member is being changed.
func forgetsOrder(_ *plan.World, s *plan.Slot) {
	if s.Member != nil && s.Member.Change != nil {
		own(&s.Member).Change = nil
	}
}

// restartsChanged has members restart that can be changed.
func restartsChanged(w plan.World, p *plan.Plan) {
	for i, a := range p.Actions {
		if a, is := a.(plan.ChangeInPlace); is && !isChanging(w, a.ID) {
			p.Actions[i] = plan.Stop{ID: a.ID, Token: a.Token, Reason: records.ReasonUpdate, Text: "plant"}
		}
	}
}

func isChanging(w plan.World, id spec.Identity) bool {
	for _, s := range w.Slots {
		if s.ID == id {
			return s.Member.Change != nil
		}
	}
	return false
}

// changesAnyway has members change in place for whatever update.
func changesAnyway(w plan.World, p *plan.Plan) {
	for i, a := range p.Actions {
		if a, is := a.(plan.Stop); is && a.Reason == records.ReasonUpdate {
			for _, s := range w.Slots {
				if s.ID == a.ID && s.Identity != nil {
					rec := *s.Identity
					rec.Due = w.TemplateHash
					p.Actions[i] = plan.ChangeInPlace{ID: a.ID, Token: a.Token, Change: inplace.ChangeOrder{ID: spec.Sequence{Epoch: w.Epoch, Rev: w.Rev}, Revision: w.TemplateHash}, Identity: rec, Text: "plant"}
				}
			}
		}
	}
}

// changesTheLowest has the lowest member change first.
func changesTheLowest(w plan.World, p *plan.Plan) {
	for i, a := range p.Actions {
		a, is := a.(plan.ChangeInPlace)
		if !is {
			continue
		}
		for _, s := range w.Slots {
			if m := s.Member; m != nil && s.Identity != nil && m.Goal == records.GoalRun && m.Change == nil && m.Revision != a.Change.Revision && s.ID.Ordinal < a.ID.Ordinal {
				a.ID, a.Token, a.Identity = s.ID, m.Token, *s.Identity
				a.Identity.Due = a.Change.Revision
				p.Actions[i] = a
				return
			}
		}
	}
}

// imagesAreThere takes each image for one that is there.
func imagesAreThere(_ step.Wanted, s *step.Seen) {
	for i := range s.Containers {
		if s.Containers[i].Outdated {
			s.Containers[i].Image = true
		}
	}
}
