package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// roll is rule 7 for RollingUpdate: members off their target are replaced, or changed in place, in their turns, from the
// highest down to the partition, as many at once as the budget allows; the next
// batch follows when all of this one are available. Those that rule 2 replaces in this very
// step are part of the batch, and count. OnDelete does nothing by itself.
func (s step) roll(cured bool) {
	if s.onDelete() || s.recreates() || s.paused() || s.underWay() && !cured || s.unprepared() != nil {
		return
	}
	room := min(s.budget()-s.down(), s.spare())
	for t := range s.turns() {
		if room > 0 && s.queued(t) && s.waitsForBusy(t) == nil {
			room--
			changer(s).bring(t)
			s.blockWaiting(t)
		}
	}
}

// queued: the member is well, and waits for its turn.
func (r rollout) queued(t *memberState) bool {
	return r.obsolete(t) && t.Available && !r.belowPartition(t)
}

// delayed: the member is to be stopped in its turn.
func (r rollout) delayed(t *memberState) bool {
	return t.drainDelayed || t.moveDelayed || t.restartDelayed || r.queued(t) && !r.onDelete() && !r.recreates() && !r.paused()
}

// queue says of those who wait for their turn, in an update or for a restart, which member they wait
// for. The others have said before what they wait for.
func (s step) queue() {
	reason, text := s.updateWait()
	images := s.unprepared()
	if s.paused() {
		images = nil
	}
	restart, restartText := s.restartWait()
	for t := range s.turns() {
		switch {
		case t.stopping(): // a restart waits, and a drain does not, or the other way round
		case s.delayed(t) && s.waitsForBusy(t) != nil:
			s.blockBusy(t, s.waitsForBusy(t))
		case t.drainDelayed:
			drain, drainText := s.drainWait(t)
			s.block(t, drain, drainText)
		case t.moveDelayed:
			move, moveText := s.moveWait(t)
			s.block(t, move, moveText)
		case t.restartDelayed:
			s.block(t, restart, restartText)
		case images != nil && s.queued(t) && !s.onDelete(): // said of the first in turn, for the others wait for it
			s.block(t, images.Reason, images.Text)
			images, reason, text = nil, causes.BlockedTurn, fmt.Sprintf("waiting for %s to be updated before it", t.ID.MemberName())
		case s.queued(t) && !s.onDelete() && t.ID.Ordinal == s.leader:
			s.block(t, reason, "it leads, and goes last; "+text+refusalText(t))
		case s.queued(t) && !s.onDelete():
			s.block(t, reason, text+refusalText(t))
		case t.moveWaits != nil && t.Available:
			s.block(t, t.moveWaits.Reason, t.moveWaits.Text)
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
	if b := e.awaited(); b != nil {
		return causes.BlockedTurn, fmt.Sprintf("waiting for %s to become available before it is updated", b.ID.MemberName())
	}
	return causes.BlockedTurn, "waiting for the surplus members to be gone before it is updated"
}

// down counts the members that the budget pays for: all that are not available,
// but those that are broken and off their target. One that lapsed is paid for.
func (r rollout) down() int {
	n := r.foldedVacant()
	for _, t := range r.inside {
		n += one(!t.Available && r.broken(t) == "")
	}
	return n
}

// underWay: a member of the present batch is not available yet.
func (r rollout) underWay() bool {
	return slices.ContainsFunc(r.inside, func(t *memberState) bool { return !r.belowPartition(t) && r.arriving(t) })
}

// complete is rule 8: every member runs the update revision and is available, for every
// strategy. Until then the last completed revision stays the current one.
func (s step) complete() {
	if s.paused() || s.rolledBack() {
		return
	}
	for _, t := range s.inside { // in a folded world one of each kind
		if !t.Available || t.heads() != s.update {
			return
		}
	}
	s.finished = true
}

// recreate is rule 7 for the strategy Recreate: all members of other revisions go down
// at once, whatever their health, surplus ones with them; when the last is gone all come
// up on the update revision, as the management policy says. A change of the strategy
// alone finds no such member. While they go down nobody starts. It reports whether the
// step ends here.
func (s step) recreate() bool {
	if !s.recreates() {
		return false
	}
	old := s.others()
	if len(old) == 0 || s.paused() {
		return false
	}
	s.recreateWaits = s.whyNotAllDown(old)
	if d := s.world.Set.Spec.Decommission; d != nil && !s.world.Set.SkipDecommission && s.takesLeave() &&
		slices.ContainsFunc(s.members, func(t *memberState) bool { return !t.wanted && !t.vacant() && !t.stopping() }) {
		s.recreateWaits = "waiting until the surplus members have left" // which takes the others
	}
	if s.recreateWaits != "" {
		return false
	}
	for n := len(old) - 1; n >= 0; n-- {
		t := old[n]
		switch why := fmt.Sprintf("all members stop, then all start on revision %s", s.targetRevision); {
		case t.stopping():
		case t.wanted:
			s.stop(t, records.ReasonUpdate, why)
		default:
			s.stop(t, scaleDown(s.world.Set), why)
		}
	}
	s.blockWhileRecreating()
	return true
}

// blockWhileRecreating says of everybody who is down what it waits for while the others go.
func (s step) blockWhileRecreating() {
	for _, t := range s.members {
		switch {
		case t.vacant() && t.wanted:
			s.block(t, causes.BlockedTurn, "it starts when every member of another revision is gone")
		case t.Available && !t.wanted:
			s.block(t, causes.BlockedTurn, "scheduled for scale-down; it stops when every member of another revision is gone")
		case t.Member != nil:
			s.blockWaiting(t)
		}
	}
}

// whyNotAllDown says why members that are well should not all go down yet; "": they may.
// One on a silent node would not go, and keep all others down.
func (s step) whyNotAllDown(old []*memberState) string {
	well, silent := 0, ""
	for _, t := range old {
		if s.busy(t) {
			return fmt.Sprintf("waiting until all members can stop, but %s is %s", t.ID.MemberName(), s.busyText(t))
		}
		well += one((t.Available || t.Live && t.unseen()) && t.wanted)
		if !t.Live && silent == "" {
			silent = fmt.Sprintf("waiting until all members can stop, but node %s of %s is unreachable", t.Member.Node, t.ID.MemberName())
		}
	}
	switch u := s.unprepared(); {
	case well == 0:
		return ""
	case silent != "":
		return silent
	case u != nil:
		return u.Text
	case well > s.spare():
		return "waiting until all members may stop, but " + s.floorText()
	}
	return ""
}

// restart ends the lives that a person asked to restart, in their turns, within the budget that
// updates and restarts share: one that is available waits while as many as may be are down, and
// so does one that its node does not see, for it may be up. The next life runs what the member
// is due; one that is not available moves on to its target, for its present revision may be
// what is wrong. It reports whether it ended any.
func (s step) restart() (acted bool) {
	for t := range s.turns() {
		switch {
		case t.Request == nil || t.Over || t.stopping():
		case s.waitsForBusy(t) != nil:
			t.restartDelayed = t.Available
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
