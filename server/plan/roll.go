package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// roll is rule 7 for RollingUpdate: members off their target are replaced from the
// highest down to the partition, as many at once as the budget allows; the next
// batch follows when all of this one are available. Those that rule 2 replaces in this very
// step are part of the batch, and count. OnDelete does nothing by itself.
func (s *step) roll(cured bool) {
	if s.onDelete() || s.recreates() || s.paused() || s.underWay() && !cured {
		return
	}
	room := min(s.budget()-s.down(), s.spare())
	for n := len(s.wanted) - 1; n >= 0 && room > 0; n-- {
		if t := &s.seats[s.wanted[n]]; s.queued(t) {
			room--
			s.end(t, records.ReasonUpdate, fmt.Sprintf("the update from revision %s to %s", t.member.Revision, s.target(t)))
			s.tell(t)
		}
	}
}

// queued: the member is well, and waits for its turn.
func (s *step) queued(t *seat) bool {
	return s.obsolete(t) && t.available && !s.kept(t)
}

// queue says of those who wait for their turn, in an update or for a restart, for whom
// they do. The others have said before what they wait for.
func (s *step) queue() {
	reason, text := s.holdsUp()
	restart, restartText := s.restartWaits()
	for n := len(s.wanted) - 1; n >= 0; n-- {
		switch t := &s.seats[s.wanted[n]]; {
		case t.waits:
			s.block(t, restart, restartText)
		case s.queued(t) && !s.onDelete():
			s.block(t, reason, text)
		}
	}
}

// holdsUp says what those who are well wait for.
func (s *step) holdsUp() (reason spec.BlockedReason, text string) {
	switch {
	case s.paused():
		return spec.BlockedPaused, "the rollout is paused; its turn in the update comes after it is resumed"
	case s.untimely != "":
		return spec.BlockedTurn, s.untimely
	case s.floored():
		return spec.BlockedFloor, "its turn in the update does not come: " + s.floorText()
	}
	return spec.BlockedTurn, s.turnComes()
}

// turnComes says when the next turn in an update comes. It names the member for which the
// others wait, not one that waits itself.
func (s *step) turnComes() string {
	if b := s.awaited(); b != nil {
		return fmt.Sprintf("its turn in the update comes when %s is available", b.ID.MemberName())
	}
	return "its turn in the update comes when the surplus members are gone"
}

// down counts the members that the budget pays for: all that are not available,
// but those that are broken and off their target. One that lapsed is paid for.
func (s *step) down() int {
	n := 0
	for _, i := range s.wanted {
		if t := &s.seats[i]; !t.available && s.broken(t) == "" {
			n++
		}
	}
	return n
}

// underWay: a member of the present batch is not available yet.
func (s *step) underWay() bool {
	for _, i := range s.wanted {
		t := &s.seats[i]
		if !s.kept(t) && s.arriving(t) {
			return true
		}
	}
	return false
}

// complete is rule 8: every member runs the update revision and is available, for
// every strategy. Until then the last completed revision stays the current one. A set
// without members goes to its update revision at once, which proves nothing of it. A rename
// of the service is complete with it.
func (s *step) complete() {
	if s.paused() || s.rolledBack() {
		return
	}
	for _, i := range s.wanted {
		if t := &s.seats[i]; !t.available || t.member.Revision != s.update {
			return
		}
	}
	proven := len(s.wanted) > 0 || s.completed && s.current == s.update
	s.current, s.completed = s.update, proven
	if s.renamed() {
		s.former = ""
	}
}
