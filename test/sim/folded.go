package sim

import (
	"reflect"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// planFolded plans a world that the engine folded by what moved, and has it shown whole: judges look at
// worlds that are whole, and at whether the two plans are the same.
func (s *server) planFolded(x plan.World) plan.Plan {
	x.VolumeID = func() records.VolumeID { return "v" }
	p := plan.Next(x)
	s.folded = &p
	return plan.Plan{Unfold: true}
}

// judgeFolded: a world is planned folded as it is planned whole (see plan.Fold), though most sets here
// are small enough to be planned whole.
func (s *server) judgeFolded(x plan.World) {
	if x.Folded != nil {
		s.w.fail("folded", "%s is planned folded: no judge here sees all of its members", x.Set.Ref)
	}
	x.Table, x.VolumeID = false, func() records.VolumeID { return "v" }
	if s.folded != nil {
		s.judgeSame(x, *s.folded, "folded by its engine")
		s.folded = nil
	}
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
	s.judgeSame(x, plan.Next(folded), "folded")
}

// judgeSame judges the plan of a world that was folded.
func (s *server) judgeSame(x plan.World, got plan.Plan, how string) {
	if got.Unfold {
		s.w.count(how + ": looked at whole")
		return
	}
	s.w.count(how)
	want := plan.Next(x)
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
