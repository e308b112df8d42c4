package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// restart ends the lives that a person asked to restart, highest first, within the
// budget that updates and restarts share: one that is available waits while as many as
// may be are down; one that is down costs nothing; one that its node does not see may be
// up, and waits, too. The next life runs what the member is due; one that is not available
// moves on to its target, for its present revision may be what is wrong. It reports
// whether it ended any.
func (s step) restart() (acted bool) {
	for n := len(s.inside) - 1; n >= 0; n-- {
		t := &s.members[s.inside[n]]
		switch {
		case !t.restartAsked() || t.Over || t.stopping():
		case !t.Available && (!t.unseen() || s.down() <= s.budget() && s.spare() >= 0):
			acted = true
			s.stop(t, s.restartReason(t), "restart requested")
		case !t.Available: // what is said of it says why
		case s.down() < s.budget() && s.spare() > 0:
			acted = true
			s.stop(t, records.ReasonRestart, "restart requested")
		default:
			t.restartDelayed = true
		}
	}
	return acted
}

func (s step) restartReason(t *memberState) records.Reason {
	if s.obsolete(t) && !s.held(t) {
		return records.ReasonUpdate
	}
	return records.ReasonRestart
}

// restartWait says for what the restart of an available member waits.
func (e explainer) restartWait() (reason causes.BlockedReason, text string) {
	switch {
	case e.floored():
		return causes.BlockedFloor, "restart delayed: " + e.floorText()
	case e.down() < e.budget():
		return causes.BlockedTurn, "restart delayed: " + e.floorText()
	}
	if b := e.awaited(); b != nil {
		return causes.BlockedTurn, fmt.Sprintf("restart delayed until %s is available; at most %d may be down at a time", b.ID.MemberName(), e.budget())
	}
	return causes.BlockedTurn, fmt.Sprintf("restart delayed; at most %d may be down at a time", e.budget())
}
