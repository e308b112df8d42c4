package plan

import "fmt"

// floor is how many members must stay available through updates and restarts: what the
// set's own field or one of its budgets says, whichever is most.
func (f *facts) floor() int {
	n, _ := f.highestFloor()
	return n
}

func (f *facts) highestFloor() (n int, whose string) {
	if d := f.world.Set.Spec.Disruption; d != nil {
		n = d.Floor(len(f.inside))
	}
	for _, b := range f.world.Budgets {
		if most := b.Floor(len(f.inside)); most > n {
			n, whose = most, " (PodDisruptionBudget "+b.Name+")"
		}
	}
	return n, whose
}

func (f *facts) floorText() string {
	n, whose := f.highestFloor()
	return fmt.Sprintf("the disruption floor%s keeps %d of %d members available", whose, n, len(f.inside))
}
