package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// roll is rule 7 for RollingUpdate: members off their target are replaced from the
// highest down to the partition, as many at once as the budget allows; the next
// batch follows when all of this one are available. Those that rule 2 replaces in this very
// step are part of the batch, and count. OnDelete does nothing by itself.
func (s step) roll(cured bool) {
	if s.onDelete() || s.recreates() || s.paused() || s.underWay() && !cured {
		return
	}
	room := min(s.budget()-s.down(), s.spare())
	for n := len(s.inside) - 1; n >= 0 && room > 0; n-- {
		if t := &s.members[s.inside[n]]; s.queued(t) {
			room--
			s.stop(t, records.ReasonUpdate, fmt.Sprintf("the update from revision %s to %s", t.member.Revision, s.target(t)))
			s.blockWaiting(t)
		}
	}
}

// queued: the member is well, and waits for its turn.
func (r rollout) queued(t *memberState) bool {
	return r.obsolete(t) && t.Available && !r.belowPartition(t)
}

// queue says of those who wait for their turn, in an update or for a restart, for whom
// they do. The others have said before what they wait for.
func (s step) queue() {
	reason, text := s.updateWait()
	restart, restartText := s.restartWait()
	for n := len(s.inside) - 1; n >= 0; n-- {
		switch t := &s.members[s.inside[n]]; {
		case t.restartDelayed:
			s.block(t, restart, restartText)
		case s.queued(t) && !s.onDelete():
			s.block(t, reason, text)
		}
	}
}

// updateWait says what those who are well wait for.
func (e explainer) updateWait() (reason causes.BlockedReason, text string) {
	switch {
	case e.paused():
		return causes.BlockedPaused, "the rollout is paused; it is updated after the rollout is resumed"
	case e.recreateWaits != "":
		return causes.BlockedTurn, e.recreateWaits
	case e.floored():
		return causes.BlockedFloor, "its update is held back: " + e.floorText()
	}
	return causes.BlockedTurn, e.nextTurnText()
}

// nextTurnText says when the next turn in an update comes. It names the member for which the
// others wait, not one that waits itself.
func (e explainer) nextTurnText() string {
	if b := e.awaited(); b != nil {
		return fmt.Sprintf("waiting for %s to become available before it is updated", b.ID.MemberName())
	}
	return "waiting for the surplus members to be gone before it is updated"
}

// down counts the members that the budget pays for: all that are not available,
// but those that are broken and off their target. One that lapsed is paid for.
func (r rollout) down() int {
	n := 0
	for _, i := range r.inside {
		if t := &r.members[i]; !t.Available && r.broken(t) == "" {
			n++
		}
	}
	return n
}

// underWay: a member of the present batch is not available yet.
func (r rollout) underWay() bool {
	for _, i := range r.inside {
		t := &r.members[i]
		if !r.belowPartition(t) && r.arriving(t) {
			return true
		}
	}
	return false
}

// complete is rule 8: every member runs the update revision and is available, for
// every strategy. Until then the last completed revision stays the current one. A set
// without members goes to its update revision at once, which proves nothing of it. A rename
// of the service is complete with it.
func (s step) complete() {
	if s.paused() || s.rolledBack() {
		return
	}
	for _, i := range s.inside {
		if t := &s.members[i]; !t.Available || t.member.Revision != s.update {
			return
		}
	}
	s.finished = true
}
