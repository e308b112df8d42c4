package plan

import "fmt"

// spare is how many of the members that are available may be disturbed: those above the
// set's disruption floor. Negative when there are fewer than the floor already. What is
// down anyway is not held back by it.
func (s *step) spare() int {
	have := 0
	for _, i := range s.wanted {
		have += one(s.seats[i].available)
	}
	return have - s.floor()
}

// floor is how many members must stay available through updates and restarts.
func (s *step) floor() int {
	if d := s.w.Set.Spec.Disruption; d != nil {
		return d.Floor(len(s.wanted))
	}
	return 0
}

func (s *step) floorText() string {
	return fmt.Sprintf("the disruption floor keeps %d of %d members available", s.floor(), len(s.wanted))
}

// floored: nothing but the disruption floor holds the update back.
func (s *step) floored() bool {
	for _, i := range s.wanted {
		if !s.seats[i].available {
			return false
		}
	}
	return s.spare() <= 0
}
