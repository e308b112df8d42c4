package cache

import (
	"iter"
	"maps"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// SlotOf is what World has of one identity of a set; its identity alone when nothing is stored.
func SlotOf(v View, id spec.Identity) plan.Slot {
	t := v.find(id.Ref())
	if i, ok := t.index(id.Ordinal); ok {
		return t.slots[i].view
	}
	return plan.Slot{ID: id}
}

// NodesWith are the nodes with a member of a set, in no order.
func NodesWith(v View, ref spec.SetRef) iter.Seq[spec.NodeName] { return maps.Keys(v.find(ref).on) }
