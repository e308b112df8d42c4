package cache

import (
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
