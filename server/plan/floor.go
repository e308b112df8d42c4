package plan

import "fmt"

// spare is how many of the members that are available may be disturbed: those above the
// set's disruption floor. Negative when there are fewer than the floor already. What is
// down anyway is not held back by it.
func (s *step) spare() int {
	return len(s.wanted) - s.unavailable() - s.floor()
}

// floor is how many members must stay available through updates and restarts: what the
// set's own field or one of its budgets says, whichever is most.
func (s *step) floor() int {
	n, _ := s.highestFloor()
	return n
}

func (s *step) highestFloor() (n int, whose string) {
	if d := s.w.Set.Spec.Disruption; d != nil {
		n = d.Floor(len(s.wanted))
	}
	for _, b := range s.w.Budgets {
		if f := b.Floor(len(s.wanted)); f > n {
			n, whose = f, " (PodDisruptionBudget "+b.Name+")"
		}
	}
	return n, whose
}

func (s *step) floorText() string {
	n, whose := s.highestFloor()
	return fmt.Sprintf("the disruption floor%s keeps %d of %d members available", whose, n, len(s.wanted))
}

// floored: nothing but the disruption floor holds the update back.
func (s *step) floored() bool {
	return s.unavailable() == 0 && s.spare() <= 0
}
