package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// A move that goes back whose source turns out not to have the volumes any more: the target keeps its copy until the source says that it
// has them, and a person can have the member go on with the copy (SAFETY S12).

// ForwardMove makes the copies of a move that goes back the volumes after all, and ends it, in one transaction. Left are the old ones,
// which are given up should they be there still. It answers what a person asked.
type ForwardMove struct {
	Move    moves.Move // as it was
	Volumes []records.Volume
	Left    []records.VolumeReport
	Text    string
}

func (ForwardMove) action() {}

// absent are the claims of which the source says that it has them not: it was given the volumes back, or answers to an abort.
func (f moveFacts) absent(m *moves.Move) []spec.ClaimName {
	r := f.answer(m)
	if f.isBack(m) {
		r = f.said(m, moves.MoveSource)
	}
	if r == nil {
		return nil
	}
	return r.Absent
}

// hasVolumes: the source is there, was given the volumes back, or answers to an abort, and says in this session that it has all that are the
// member's still. What is to go, or was said to be lost, is not awaited when a move is aborted.
func (f moveFacts) hasVolumes(m *moves.Move, volume volumeOf) bool {
	if !f.reaches(m.From) || f.answer(m) == nil && (!f.isBack(m) || f.said(m, moves.MoveSource).Error != "") {
		return false
	}
	absent := f.absent(m)
	return !slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool {
		v := volume(c.Claim)
		return v != nil && string(v.UID) == c.Old && (m.Phase == moves.MoveBack || v.Fate == records.FateKeep) && slices.Contains(absent, c.Claim)
	})
}

// HasVolumes reports whether the source of a move that goes back, or is aborted, has the volumes, not sealed, so that the copies at the target
// are needed no more. volume is the one that a claim has now; nil: none.
func HasVolumes(m *moves.Move, nodes []Node, epoch int64, volume func(spec.ClaimName) *records.Volume) bool {
	f := factsOf(nodes, epoch)
	return m.Phase == moves.MoveBack && f.hasVolumes(m, volume) || f.unsealed(m, volume)
}

// KeepsCopy reports whether what was left on a node is the copy of a move (nil: there is none) that goes back: it is not given up
// before its source has said that it has the volumes.
func KeepsCopy(m *moves.Move, left *records.VolumeReport) bool {
	return m != nil && m.Phase == moves.MoveBack && m.To.Node == left.Node &&
		slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool { return c.New == string(left.Volume) })
}

// lostSource: the source of a move that goes back, or is aborted, cannot have the volumes: it was removed, or is off, as a person says, and
// was not heard of since; or it says itself that one is not there. One of a move that is aborted after a restore may have run the member since
// it was copied, so that its being off is not enough.
func (f moveFacts) lostSource(m *moves.Move) bool {
	if f.reaches(m.From) {
		return len(f.absent(m)) > 0
	}
	return f.lost(m.From) && (m.Phase == moves.MoveBack || m.Epoch == f.world.Epoch || !f.known(m.From))
}

// MayGoForward reports whether the copies of a move that goes back, or is aborted, may become the volumes after all: its source cannot have
// them, and its target is there and has them, in their place, or compared by content.
func MayGoForward(m *moves.Move, nodes []Node, epoch int64) bool {
	f := factsOf(nodes, epoch)
	return f.lostSource(m) && f.reaches(m.To) && (m.Phase == moves.MoveBack && state(f.said(m, moves.MoveTarget)) == moves.MoveArrived || f.wholeCopy(m))
}

func rateText(m *moves.Move) string {
	return fmt.Sprintf("nothing is copied any more, so that a rate means nothing: stead move %s --to %s", m.ID.MemberName(), m.To.Node)
}

// forwardRefusal says why a member does not go on with the copy of its move, which goes back, and what to do first; "": it does.
func (s mover) forwardRefusal(t *memberState, q *moves.MoveRequest) string {
	m, said := t.Move, s.said(t.Move, moves.MoveTarget)
	switch {
	case q.To != m.To:
		return fmt.Sprintf("its volumes go back to node %s; wait for that", m.From.Node)
	case q.BytesPerSecond != 0:
		return rateText(m)
	case !s.lostSource(m):
		return fmt.Sprintf("its volumes go back to node %s, and nothing says that they are lost there; if that node is off for good: stead node fence %s --i-have-powered-off, and ask again", m.From.Node, m.From.Node)
	case !s.reaches(m.To):
		return fmt.Sprintf("node %s, which may have the copy, is unreachable; start its agent", m.To.Node)
	case state(said) != moves.MoveArrived:
		return fmt.Sprintf("node %s does not say that it has the copy in its place; see 'stead describe node %s' and its log", m.To.Node, m.To.Node)
	case !slices.Contains(t.Left, m.To.Node):
		return fmt.Sprintf("the copy on node %s was given up; if it is in the trash there: 'stead volume reclaim %s --lost', and then 'stead volume restore'", m.To.Node, records.VolumeName(t.ID, m.Claims[0].Claim))
	case t.unsettled() != "":
		return t.unsettled()
	case slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool {
		return !AtSource(m, c, t.Volumes[c.Claim], records.FateKeep)
	}):
		return "something else was decided of one of its volumes"
	}
	return ""
}

// forwardAsked has the copies be the volumes of a member when a person wants that.
func (s mover) forwardAsked(t *memberState) {
	q, m := t.MoveAsked, t.Move
	if q == nil || q.Verb != moves.MoveBegin || s.forwardRefusal(t, q) != "" {
		return
	}
	a := ForwardMove{Move: *m, Text: fmt.Sprintf("node %s has the volumes of %s no more: the copies on node %s are its volumes, on request", m.From.Node, t.ID.MemberName(), m.To.Node)}
	for _, c := range m.Claims {
		v := *t.Volumes[c.Claim]
		v.Node, v.UID = m.To.Node, records.VolumeID(c.New)
		a.Volumes = append(a.Volumes, v)
		t.become(t.withVolume(&v))
		if s.known(m.From) {
			a.Left = append(a.Left, leftOf(t, c, c.Old, m.From.Node))
		}
	}
	s.act(a)
	t.become(t.withMove(nil, true).withoutLeft(m.To.Node))
	if len(a.Left) > 0 {
		t.become(t.withLeft(m.From.Node))
	}
	t.moveWritten = true
}

// absentText says what a source, to which a move goes back, or is aborted, has not, and what a person can do; "": it says of nothing.
func (f moveFacts) absentText(m *moves.Move) string {
	absent := f.absent(m)
	if m.Phase != moves.MoveBack && !f.mayBeWhole(m) || len(absent) == 0 {
		return ""
	}
	name := records.VolumeName(m.ID, absent[0])
	switch {
	case f.lostTarget(m):
		return fmt.Sprintf("node %s does not have %s any more; if a copy may be whole on node %s, start that; if all is lost: stead volume reclaim %s --lost", m.From.Node, name, m.To.Node, name)
	case f.notWhole(m):
		return fmt.Sprintf("node %s does not have %s any more, and the copy on node %s is not whole; if the volume is lost: stead volume reclaim %s --lost", m.From.Node, name, m.To.Node, name)
	}
	return fmt.Sprintf("node %s does not have %s any more; the copy on node %s is kept, and to continue with it: stead move %s --to %s", m.From.Node, name, m.To.Node, m.ID.MemberName(), m.To.Node)
}

// notWhole: the target of a move that is aborted is there and says that its copy is not all of the source, and will not be: it knows of no
// source any more. What it said while it copied does not count, for it may have got the rest since; nor that it cannot look at it.
func (f moveFacts) notWhole(m *moves.Move) bool {
	r := f.said(m, moves.MoveTarget)
	return m.Phase == moves.MoveAborting && f.reaches(m.To) && r != nil && !f.wholeCopy(m) &&
		(r.State == moves.MoveCopied && r.Error == "" || r.State != moves.MoveCopied && r.Error == moves.NothingOffered || r.State == moves.MoveFailed)
}

// heldCopy says why a volume to which a move goes back, or is aborted, is not said to be lost: its copy may be the last that is whole; "": it
// may be.
func (f moveFacts) heldCopy(t *memberState, v *records.Volume) string {
	m := t.Move
	if m == nil || m.Phase != moves.MoveBack && !f.mayBeWhole(m) || f.lostTarget(m) || f.notWhole(m) ||
		!slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool { return c.Old == string(v.UID) }) {
		return ""
	}
	return fmt.Sprintf("node %s may have a copy of it that is whole; to continue with that: stead move %s --to %s; if that is lost as well: stead node fence %s --i-have-powered-off, and ask again", m.To.Node, t.ID.MemberName(), m.To.Node, m.To.Node)
}
