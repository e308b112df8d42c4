package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// restart ends the lives that a person asked to restart, highest first, within the
// budget that updates and restarts share: one that is available waits while as many as
// may be are down; one that is down costs nothing; one that its node does not see may be
// up, and waits, too. The next life runs what the member is due; one that is not available
// moves on to its target, for its present revision may be what is wrong. It reports
// whether it ended any.
func (s *step) restart() (acted bool) {
	for n := len(s.wanted) - 1; n >= 0; n-- {
		t := &s.seats[s.wanted[n]]
		switch {
		case t.request == nil || t.over || t.stopping():
		case !t.available && (!t.unseen() || s.down() <= s.budget() && s.spare() >= 0):
			acted = true
			s.end(t, s.restartReason(t), "a person asked for its restart")
		case !t.available: // what is said of it says why
		case s.down() < s.budget() && s.spare() > 0:
			acted = true
			s.end(t, records.ReasonRestart, "a person asked for its restart")
		default:
			t.waits = true
		}
	}
	return acted
}

func (s *step) restartReason(t *seat) records.Reason {
	if s.obsolete(t) && !s.held(t) {
		return records.ReasonUpdate
	}
	return records.ReasonRestart
}

// restartWaits says for what the restart of an available member waits.
func (s *step) restartWaits() (reason spec.BlockedReason, text string) {
	switch {
	case s.floored():
		return spec.BlockedFloor, "its restart waits: " + s.floorText()
	case s.down() < s.budget():
		return spec.BlockedTurn, "its restart waits: " + s.floorText()
	}
	if b := s.awaited(); b != nil {
		return spec.BlockedTurn, fmt.Sprintf("its restart waits until %s is available; at most %d may be down at a time", b.ID.MemberName(), s.budget())
	}
	return spec.BlockedTurn, fmt.Sprintf("its restart waits; at most %d may be down at a time", s.budget())
}
