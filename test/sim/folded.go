package sim

import (
	"reflect"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// judgeFolded: a world is planned folded as it is planned whole (see plan.Fold), though the sets here
// are small enough to be planned whole.
func (s *server) judgeFolded(x plan.World) {
	if x.Folded != nil {
		s.w.fail("folded", "%s is planned folded: no judge here sees all of its members", x.Set.Ref)
	}
	x.Table, x.VolumeID = false, func() records.VolumeID { return "v" }
	bare := x
	bare.Slots = nil
	if !plan.Foldable(bare) {
		return
	}
	var f plan.Fold
	f.Build(x)
	folded := f.World(bare, func(ordinal int) plan.Slot {
		i, known := slices.BinarySearchFunc(x.Slots, ordinal, func(slot plan.Slot, o int) int { return slot.ID.Ordinal - o })
		if known {
			return x.Slots[i]
		}
		return plan.Slot{ID: spec.Identity{Namespace: x.Set.Ref.Namespace, Set: x.Set.Ref.Name, Ordinal: ordinal}}
	})
	want, got := plan.Next(x), plan.Next(folded)
	if got.Unfold {
		s.w.count("folded: looked at whole")
		return
	}
	s.w.count("folded")
	waiting := 0
	for i := range got.Blocked {
		waiting += 1 + got.Blocked[i].Others
	}
	if waiting != len(want.Blocked) {
		s.w.fail("folded", "%d members of %s wait, and %d when it is folded", len(want.Blocked), x.Set.Ref, waiting)
	}
	want.Blocked, got.Blocked = nil, nil
	if !reflect.DeepEqual(want, got) {
		s.w.fail("folded", "%s is planned as\n%+v\nand folded as\n%+v", x.Set.Ref, want, got)
	}
}
