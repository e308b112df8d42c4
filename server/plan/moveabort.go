package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// The abort of a move. A copy that may be whole is kept until the source has said that it has the volumes, for its disk may have died
// meanwhile; if it did, a person can have the member go on with the copy (SAFETY S12).

// aborted is why a move that is not flipped is given up, as the action that does; nil: it is not.
func (s mover) aborted(t *memberState) *AdvanceMove {
	m := t.Move
	a := AdvanceMove{Move: *m}
	a.Move.Phase = moves.MoveAborting
	source, target := s.said(m, moves.MoveSource), s.said(m, moves.MoveTarget)
	switch q := t.MoveAsked; {
	case q != nil && q.Verb == moves.MoveAbort && q.Move == m.Move:
		a.Asked, a.Move.Why = true, "abort requested"
	case !t.wanted:
		a.Move.Why = fmt.Sprintf("%s is not to be a member any more", t.ID.MemberName())
	case s.world.Set.Orphaned:
		a.Move.Why = "its set is orphaned"
	case s.changedVolume(t) != "":
		a.Move.Why = s.changedVolume(t)
	case m.Phase.Down() && t.lastToken() != m.Stopped:
		a.Move.Why = "a life began that the move does not know"
	case state(source) == moves.MoveFailed && !(s.sealed(m) && s.copied(m)):
		a.Heard, a.Move.Why = []spec.NodeName{m.From.Node, m.To.Node}, fmt.Sprintf("node %s: %s", m.From.Node, source.Error)
	case state(target) == moves.MoveFailed:
		a.Heard, a.Move.Why = []spec.NodeName{m.To.Node}, fmt.Sprintf("node %s: %s", m.To.Node, target.Error)
	case m.Phase.Down() && !s.reaches(m.To):
		a.Silent, a.Move.Why = m.To.Node, fmt.Sprintf("node %s became unreachable while %s was down", m.To.Node, t.ID.MemberName())
	case !s.known(m.To):
		a.Move.Why = fmt.Sprintf("node %s was removed", m.To.Node)
	case m.Sums != nil && state(target) == moves.MoveCopied && target.Error == "" && !s.copied(m):
		a.Heard, a.Move.Why = []spec.NodeName{m.To.Node}, fmt.Sprintf("the copy on node %s is not what node %s sealed", m.To.Node, m.From.Node)
	case m.Sums != nil && state(source) == moves.MoveSealed && len(source.Sums) > 0 && !slices.Equal(source.Sums, m.Sums):
		a.Heard, a.Move.Why = []spec.NodeName{m.From.Node}, fmt.Sprintf("the sealed volumes on node %s are not what they were", m.From.Node)
	default:
		return nil
	}
	a.Text = fmt.Sprintf("the move of %s from node %s to node %s is aborted: %s", t.ID.MemberName(), m.From.Node, m.To.Node, a.Move.Why)
	return &a
}

// changedVolume says of the first volume of a move that it is not what is moved any more, or of one beside them that it is not
// moved; "": all are.
func (f moveFacts) changedVolume(t *memberState) string {
	m := t.Move
	for _, c := range m.Claims {
		if !AtSource(m, c, t.Volumes[c.Claim], records.FateKeep) {
			return fmt.Sprintf("something else was decided of its volume of the claim %s", c.Claim)
		}
	}
	for _, v := range t.localVolumes() {
		if !slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool { return c.Claim == v.Claim }) {
			return fmt.Sprintf("its volume of the claim %s was made after the move began", v.Claim)
		}
	}
	return ""
}

// volumeOf is the volume that a claim of a member has now; nil: none.
type volumeOf = func(spec.ClaimName) *records.Volume

func (slot *Slot) volume(c spec.ClaimName) *records.Volume { return slot.Volumes[c] }

// copyGone: a target that was told of the abort has discarded the copy, or its machine was removed.
func (f moveFacts) copyGone(m *moves.Move) bool {
	return !f.known(m.To) || state(f.said(m, moves.MoveTarget)) == moves.MoveDiscarded
}

// mayBeWhole: the copy of a move that is aborted may be all of the source. It is not before the sums of the sealed source were recorded: the
// target compares by them. In a later epoch than that in which the move began they may have been, and the target says what it has.
func (f moveFacts) mayBeWhole(m *moves.Move) bool {
	switch r := f.said(m, moves.MoveTarget); {
	case m.Phase != moves.MoveAborting || f.copyGone(m):
		return false
	case m.Sums != nil:
		return true
	default:
		return m.Epoch != f.world.Epoch && (r == nil || r.State == moves.MoveCopied || r.State == moves.MoveArrived)
	}
}

// wholeCopy: the target of a move that is aborted says that its copy is all of the sealed source, compared by content. After a restore the
// store may not know by which sums.
func (f moveFacts) wholeCopy(m *moves.Move) bool {
	r := f.said(m, moves.MoveTarget)
	return f.mayBeWhole(m) && (f.copied(m) || m.Sums == nil && state(r) == moves.MoveCopied && r.Error == "" && sumsOfAll(m, r.Sums))
}

// answer is what the source says of its part since it knows that the move is aborted: what it said before came with a key; nil: nothing,
// or it cannot look.
func (f moveFacts) answer(m *moves.Move) *moves.MoveReport {
	switch r := f.said(m, moves.MoveSource); state(r) {
	case moves.MoveOffered, moves.MoveSealed, moves.MoveUnsealed:
		if m.Phase == moves.MoveAborting && f.reaches(m.From) && r.Key == "" && r.Error == "" {
			return r
		}
	}
	return nil
}

// mayDiscard: the copy of a move that is aborted is needed no more. It never was whole; or the source says in this session that it has the
// volumes, and in the epoch in which the move began also that they can be used. In a later one the target is asked first.
func (f moveFacts) mayDiscard(m *moves.Move, volume volumeOf) bool {
	return !f.mayBeWhole(m) || f.hasVolumes(m, volume) && (m.Epoch != f.world.Epoch || state(f.answer(m)) == moves.MoveUnsealed)
}

// mayUnseal: no copy elsewhere can be the volume. The source has all volumes, so that nobody makes the copies the volumes meanwhile; in a later
// history of the store the target says itself that it has none, or a person removed it.
func (f moveFacts) mayUnseal(m *moves.Move, volume volumeOf) bool {
	return m.Phase == moves.MoveAborting && (f.copyGone(m) || m.Epoch == f.world.Epoch && (!f.mayBeWhole(m) || f.hasVolumes(m, volume)))
}

// abortOver says why an aborted move is over; "": it is not. The source has nothing sealed any more, and lacks nothing for which the copy is
// kept. left: the old volumes are none.
func (s mover) abortOver(t *memberState) (text string, left bool) {
	m := t.Move
	switch {
	case !slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool { v := t.Volumes[c.Claim]; return v != nil && string(v.UID) == c.Old }):
		return fmt.Sprintf("the move of %s is over: its volumes are gone", t.ID.MemberName()), true
	case s.unsealed(m, t.volume):
		return fmt.Sprintf("the move of %s to node %s was aborted: %s", t.ID.MemberName(), m.To.Node, m.Why), false
	}
	return "", false
}

// unsealed: the source of a move that is aborted has broken its seal, and was to.
func (f moveFacts) unsealed(m *moves.Move, volume volumeOf) bool {
	return f.mayUnseal(m, volume) && state(f.said(m, moves.MoveSource)) == moves.MoveUnsealed
}

// copyRefusal says why a member does not go on with the copy of its move, which is being aborted, and what to do first; "": it does.
func (s mover) copyRefusal(t *memberState, q *moves.MoveRequest) string {
	m := t.Move
	switch {
	case q.To != m.To:
		return fmt.Sprintf("its move to node %s is being aborted; wait for that", m.To.Node)
	case q.BytesPerSecond != 0:
		return rateText(m)
	case s.arrived(m):
		return fmt.Sprintf("node %s has its volumes; wait for that", m.To.Node)
	case !s.mayBeWhole(m):
		return fmt.Sprintf("its move is being aborted, and the copy on node %s is not whole; wait for that", m.To.Node)
	case !s.lostSource(m) && s.lost(m.From):
		return fmt.Sprintf("the store was restored since its move began, so that it may have run on node %s after it was copied; start that node, or, if it is gone for good: stead node remove %s", m.From.Node, m.From.Node)
	case !s.lostSource(m):
		return fmt.Sprintf("its move is being aborted, and nothing says that its volumes are lost on node %s; if that node is off for good: stead node fence %s --i-have-powered-off, and ask again", m.From.Node, m.From.Node)
	case !s.reaches(m.To):
		return fmt.Sprintf("node %s, which may have the copy, is unreachable; start its agent", m.To.Node)
	case !s.wholeCopy(m):
		return fmt.Sprintf("node %s does not say that its copy is all that node %s sealed; if the volumes are lost: stead volume reclaim %s --lost", m.To.Node, m.From.Node, records.VolumeName(t.ID, m.Claims[0].Claim))
	case t.unsettled() != "":
		return t.unsettled()
	}
	return s.changedVolume(t)
}

// copyAsked has the copies of a move that is aborted be the volumes of a member when a person wants that. From then on it is flipped.
func (s mover) copyAsked(t *memberState) {
	q, m := t.MoveAsked, t.Move
	if q == nil || q.Verb != moves.MoveBegin || s.copyRefusal(t, q) != "" {
		return
	}
	s.flipTo(t, FlipMove{Asked: true, Text: fmt.Sprintf("node %s has the volumes of %s no more: the copies on node %s are its volumes, on request", m.From.Node, t.ID.MemberName(), m.To.Node)})
}
