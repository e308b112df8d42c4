package cache

import (
	"iter"
	"maps"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// SetView is what of a View is of one set, for who need not look at all of its members.
type SetView struct {
	v View
	t *setState
	// Ref is the set's.
	Ref spec.SetRef
}

// OfSet is what v has of a set; there may be nothing of it.
func OfSet(v View, ref spec.SetRef) SetView { return SetView{v, v.find(ref), ref} }

// Identities is how many identities of the set have any record.
func (s SetView) Identities() int { return len(s.t.slots) }

// Slot is what the store has of one identity; there may be no record of it.
func (s SetView) Slot(ordinal int) plan.Slot {
	if i, known := s.t.index(ordinal); known {
		return judgedSlot(&s.v, s.t.slots[i])
	}
	return plan.Slot{ID: spec.Identity{Namespace: s.Ref.Namespace, Set: s.Ref.Name, Ordinal: ordinal}}
}

// Slots holds what the store has of every identity of which it has anything, ascending.
func (s SetView) Slots() []plan.Slot {
	slots := make([]plan.Slot, len(s.t.slots))
	for i, l := range s.t.slots {
		slots[i] = judgedSlot(&s.v, l)
	}
	return slots
}

// Events are the events of the set by the last element of their keys, in any order.
func (s SetView) Events() iter.Seq2[string, *records.Event] {
	return func(yield func(string, *records.Event) bool) {
		for name, e := range s.t.events {
			if e.record != nil && !yield(name, e.record) {
				return
			}
		}
	}
}

// Event is one of Events; nil: there is none, or it cannot be read.
func (s SetView) Event(name string) *records.Event { return s.t.events[name].record }

// EventCount is how many events the set has, also of those that cannot be read.
func (s SetView) EventCount() int { return len(s.t.events) }

// World is View.World without its slots.
func (s SetView) World() plan.World {
	v, t := s.v, s.t
	w := plan.World{Rev: int64(v.rev), Epoch: v.epoch, Nodes: v.Nodes(), Broken: v.brokenOf(s.Ref), Hold: v.hold}
	w.Count = v.Count()
	if name, is := s.Ref.ClaimName(); is {
		w.Claim = claimState(v, s.Ref.Namespace, name, spec.SetRef{})
	}
	if v.sets[s.Ref] == nil {
		return w
	}
	w.Nodes = v.nodesFor(t)
	w.Set, w.TemplateHash, w.Status = t.set.record, t.hash, t.status.record
	w.Revisions = t.byNumber
	w.Claims = claimStates(v, s.Ref, t.claims)
	if w.Set != nil {
		w.Bootstrapped = v.bootstrapped[w.Set.UID]
		w.Budgets, w.Isolated = v.budgetsOf(w.Set), v.isIsolated(w.Set)
	}
	w.WasBootstrapped, w.Jobs = v.wasBootstrapped[s.Ref], t.jobs.record
	return w
}

// NodesWith are the nodes with a life of a set.
func NodesWith(v View, ref spec.SetRef) iter.Seq[spec.NodeName] { return maps.Keys(v.find(ref).on) }

// judgedSlot is the planner's view of a slot, with the report that WithReports laid over it.
func judgedSlot(v *View, l *slot) plan.Slot {
	slot := l.view
	if r := v.judged[slot.ID]; r != nil && slot.Member != nil && r.Token == slot.Member.Token {
		slot.Report = r
	}
	return slot
}

// JobsOf is what is recorded of the jobs of a set; nil: nothing.
func JobsOf(v View, ref spec.SetRef) *hooks.Jobs { return v.find(ref).jobs.record }
