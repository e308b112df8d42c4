package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// recreate is rule 7 for the strategy Recreate: all members of other revisions go down
// at once, whatever their health, surplus ones with them; when the last is gone all come
// up on the update revision, as the management policy says. A change of the strategy
// alone finds no such member. While they go down nobody starts. It reports whether the
// step ends here.
func (s *step) recreate() bool {
	if !s.recreates() {
		return false
	}
	old := s.others()
	if s.apart = len(old) > 0 || s.paused() && s.lives() == 0; len(old) == 0 || s.paused() {
		return false
	}
	if s.untimely = s.unready(old); s.untimely != "" {
		return false
	}
	for n := len(old) - 1; n >= 0; n-- {
		t := old[n]
		switch why := fmt.Sprintf("all members stop, then all start on revision %s", s.aim); {
		case t.stopping():
		case s.inRange(t):
			s.end(t, records.ReasonUpdate, why)
		default:
			s.end(t, records.ReasonScaleDown, why)
		}
	}
	return s.hold()
}

// others are the lives of other revisions than the update's.
func (s *step) others() (old []*seat) {
	for i := range s.seats {
		if t := &s.seats[i]; !t.vacant() && t.member.Revision != s.aim {
			old = append(old, t)
		}
	}
	return old
}

// hold says of everybody who is down what it waits for while the others go.
func (s *step) hold() bool {
	for i := range s.seats {
		switch t := &s.seats[i]; {
		case t.vacant() && s.inRange(t):
			s.block(t, spec.BlockedTurn, "it starts when every member of another revision is gone")
		case t.available && !s.inRange(t):
			s.block(t, spec.BlockedTurn, "it is surplus, and stops when every member of another revision is gone")
		case t.member != nil:
			s.tell(t)
		}
	}
	return true
}

// unready says why members that are well should not all go down yet; "": they may.
// One on a silent node would not go, and keep all others down.
func (s *step) unready(old []*seat) string {
	well, silent := 0, ""
	for _, t := range old {
		well += one((t.available || t.live && t.unseen()) && s.inRange(t))
		if !t.live && silent == "" {
			silent = fmt.Sprintf("its turn comes when all can stop, but node %s of %s is silent", t.member.Node, t.id.MemberName())
		}
	}
	switch {
	case well == 0:
		return ""
	case silent != "":
		return silent
	case well > s.spare():
		return "its turn comes when all may stop, but " + s.floorText()
	}
	return ""
}

// lives counts the members in range that have a life.
func (s *step) lives() (n int) {
	for _, i := range s.wanted {
		n += one(!s.seats[i].vacant())
	}
	return n
}
