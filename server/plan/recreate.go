package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

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
			s.stop(t, records.ReasonScaleDown, why)
		}
	}
	return s.blockWhileRecreating()
}

// blockWhileRecreating says of everybody who is down what it waits for while the others go.
func (s step) blockWhileRecreating() bool {
	for i := range s.members {
		switch t := &s.members[i]; {
		case t.vacant() && t.wanted:
			s.block(t, causes.BlockedTurn, "it starts when every member of another revision is gone")
		case t.Available && !t.wanted:
			s.block(t, causes.BlockedTurn, "scheduled for scale-down; it stops when every member of another revision is gone")
		case t.member != nil:
			s.blockWaiting(t)
		}
	}
	return true
}

// whyNotAllDown says why members that are well should not all go down yet; "": they may.
// One on a silent node would not go, and keep all others down.
func (s step) whyNotAllDown(old []*memberState) string {
	well, silent := 0, ""
	for _, t := range old {
		well += one((t.Available || t.Live && t.unseen()) && t.wanted)
		if !t.Live && silent == "" {
			silent = fmt.Sprintf("waiting until all members can stop, but node %s of %s is unreachable", t.member.Node, t.id.MemberName())
		}
	}
	switch {
	case well == 0:
		return ""
	case silent != "":
		return silent
	case well > s.spare():
		return "waiting until all members may stop, but " + s.floorText()
	}
	return ""
}
