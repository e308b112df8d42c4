package plants

import (
	"github.com/stead-project/stead/server/plan"
)

// leavePlants are faults about members that leave for good (SEMANTICS Part 3).
var leavePlants = []Plant{
	{Name: "takes-no-leave", Judges: "leave", See: takesNoLeave, Often: leaves},
	{Name: "owes-nothing", Judges: "leave", See: eachSlot(owesNothing), Often: leaves},
}

var leaves = []string{"leave", "scale"}

// takesNoLeave: the planner does not see the hook decommission of the set.
func takesNoLeave(w *plan.World) {
	if w.Set == nil {
		return
	}
	set := *w.Set
	set.Spec.Decommission = nil
	w.Set = &set
}

// owesNothing: it does not see that the others are to be told of one that has left.
func owesNothing(_ *plan.World, s *plan.Slot) {
	if s.Identity != nil {
		rec := *s.Identity
		rec.Gone = nil
		s.Identity = &rec
	}
}
