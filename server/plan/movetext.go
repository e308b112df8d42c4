package plan

import (
	"fmt"
	"strings"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec/causes"
)

// movingText says for what a member waits that does not start because of its move.
func (e explainer) movingText(t *memberState) (reason causes.BlockedReason, text string) {
	m, f := t.Move, e.ofMoves()
	awaited, doing := f.doing(m, t.volume)
	text = fmt.Sprintf("it moves from node %s to node %s (%s): %s", m.From.Node, m.To.Node, f.progressText(m), doing)
	if m.Phase == moves.MoveAborting {
		text = fmt.Sprintf("its move from node %s to node %s is being aborted (%s)%s", m.From.Node, m.To.Node, m.Why, doing)
	}
	if m.Phase == moves.MoveBack {
		text = fmt.Sprintf("its volumes go back from node %s to node %s (%s): %s", m.To.Node, m.From.Node, m.Why, doing)
	}
	if !f.reaches(awaited) {
		return causes.BlockedNodeSilent, text
	}
	return causes.BlockedMoving, text
}

// doing is what is done next about a move, the end that is to do it, and what holds that end up.
func (f moveFacts) doing(m *moves.Move, volume volumeOf) (awaited moves.MoveEnd, text string) {
	awaited, role := m.From, moves.MoveSource
	target := func() { awaited, role = m.To, moves.MoveTarget }
	switch {
	case f.absentText(m) != "" && m.Phase == moves.MoveAborting:
		text = ": " + f.absentText(m)
	case f.absentText(m) != "":
		text = f.absentText(m)
	case m.Phase == moves.MoveBack:
		text = fmt.Sprintf("it starts again when node %s has its volumes back in use", m.From.Node)
	case f.isBack(m):
		text = fmt.Sprintf("node %s was given its volumes back before the store was restored: those on node %s do not count; waiting until it is proven that no life has them", m.From.Node, m.To.Node)
	case f.unheard(m):
		target()
		text = fmt.Sprintf("the store was restored since it began: waiting until node %s has said whether it has its volumes", m.To.Node)
	case m.Phase == moves.MoveCopying && (state(f.said(m, moves.MoveTarget)) == moves.MoveWarm || f.arrived(m)):
		target()
		text = "nearly all is copied; the member stops for the rest when it is its turn in the set's budget"
	case m.Phase == moves.MoveCopying:
		target()
		text = fmt.Sprintf("node %s copies its volumes while it runs", m.To.Node)
	case m.Phase == moves.MoveStopping:
		text = fmt.Sprintf("waiting until it is proven that its life on node %s is over", m.From.Node)
	case m.Phase == moves.MoveSealing && !f.sealed(m):
		text = fmt.Sprintf("node %s seals its volumes", m.From.Node)
	case m.Phase == moves.MoveSealing:
		target()
		text = fmt.Sprintf("node %s copies the rest and compares", m.To.Node)
	case m.Phase == moves.MoveFlipped && f.arrived(m):
		target()
		text = fmt.Sprintf("its volumes are on node %s; when it is ready there, the old ones on node %s go to the trash", m.To.Node, m.From.Node)
	case m.Phase == moves.MoveFlipped:
		target()
		text = fmt.Sprintf("node %s puts its volumes in their place", m.To.Node)
	case f.mayUnseal(m, volume):
		text = fmt.Sprintf(": it starts again when node %s has its volumes back in use", m.From.Node)
	case !f.mayDiscard(m, volume):
		text = fmt.Sprintf(": waiting until node %s says that it has its volumes; until then the copy on node %s is kept", m.From.Node, m.To.Node)
	default:
		target()
		text = fmt.Sprintf(", and the store was restored since it began: waiting until node %s has said that it does not have the volumes; if node %s is gone for good: stead node remove %s",
			m.To.Node, m.To.Node, m.To.Node)
	}
	if r := f.said(m, role); r != nil && r.Error != "" {
		text += fmt.Sprintf("; node %s says: %s", awaited.Node, r.Error)
	}
	if !f.reaches(awaited) {
		text += fmt.Sprintf("; node %s is unreachable", awaited.Node)
		switch {
		case m.Phase == moves.MoveBack, f.wholeCopy(m) && awaited == m.From && m.Epoch == f.world.Epoch:
			text += fmt.Sprintf("; if it is lost for good: stead node fence %s --i-have-powered-off, then, to continue with the copy on node %s: stead move %s --to %s", awaited.Node, m.To.Node, m.ID.MemberName(), m.To.Node)
		case f.wholeCopy(m) && awaited == m.From:
			text += fmt.Sprintf("; if it is gone for good: stead node remove %s, then, to continue with the copy on node %s: stead move %s --to %s", awaited.Node, m.To.Node, m.ID.MemberName(), m.To.Node)
		}
		if m.Phase == moves.MoveFlipped {
			text += fmt.Sprintf("; if it is lost for good: stead node fence %s --i-have-powered-off, then stead move %s --back", awaited.Node, m.ID.MemberName())
		}
	}
	return awaited, text
}

// progressText is the phase of a move, and how much of it is copied.
func (f moveFacts) progressText(m *moves.Move) string {
	if r := f.said(m, moves.MoveTarget); r != nil && r.TotalBytes > 0 {
		return fmt.Sprintf("%s, %s of %s copied", m.Phase, bytesText(r.DoneBytes), bytesText(r.TotalBytes))
	}
	return string(m.Phase)
}

// bytesText is a size in MiB.
func bytesText(n int64) string { return fmt.Sprintf("%dMi", max(n, 0)>>20) }

// moveWait says for what the stop of an available member waits whose volumes are copied.
func (e explainer) moveWait(t *memberState) (reason causes.BlockedReason, text string) {
	stops := fmt.Sprintf("its volumes are nearly all on node %s, and it stops for the rest", t.Move.To.Node)
	switch b := e.awaited(); {
	case e.surplusFirst():
		return causes.BlockedTurn, stops + " when the surplus members are gone"
	case e.floored(), e.down() < e.atMost():
		return causes.BlockedFloor, "its move is held back: " + e.floorText()
	case b != nil && b.ID != t.ID:
		return causes.BlockedTurn, fmt.Sprintf("%s when %s is available; at most %d may be down at a time", stops, b.ID.MemberName(), e.atMost())
	}
	return causes.BlockedTurn, fmt.Sprintf("%s later; at most %d may be down at a time", stops, e.atMost())
}

// MoveText says of a move where it goes and how far it is; nodes are all of the cluster.
func MoveText(m *moves.Move, nodes []Node, epoch int64) string {
	f := factsOf(nodes, epoch)
	text := fmt.Sprintf("its volumes move from node %s to node %s: %s", m.From.Node, m.To.Node, f.progressText(m))
	if m.Phase == moves.MoveAborting || m.Phase == moves.MoveBack {
		text += ", " + m.Why
	}
	if absent := f.absentText(m); absent != "" {
		text += "; " + absent
	}
	for _, end := range []moves.MoveEnd{m.From, m.To} {
		role := moves.MoveSource
		if end == m.To {
			role = moves.MoveTarget
		}
		if !f.reaches(end) {
			text += fmt.Sprintf("; node %s is unreachable", end.Node)
		} else if r := f.said(m, role); r != nil && r.Error != "" && !(m.Phase == moves.MoveAborting && role == moves.MoveTarget) { // which copies from nobody
			text += fmt.Sprintf("; node %s says: %s", end.Node, r.Error)
		}
	}
	return text
}

// ShownMove is how the move of a member stands, or what is asked for; nil: neither. nodes are all of the cluster.
func ShownMove(slot *Slot, nodes []Node, epoch int64) *moves.ShownMove {
	m, q := slot.Move, slot.MoveAsked
	switch {
	case m == nil && (q == nil || q.Verb != moves.MoveBegin):
		return nil
	case m == nil:
		s := &moves.ShownMove{
			Member: slot.ID.MemberName(), Phase: moves.MoveRequested, To: q.To.Node, By: q.By, BeganAt: q.At, LimitBytesPerSecond: q.BytesPerSecond,
			Waits: "it is asked for, and begins when both nodes have room for another move",
		}
		for _, v := range slot.Volumes {
			if !v.Shared {
				s.From = v.Node
			}
		}
		return s
	}
	f := factsOf(nodes, epoch)
	s := &moves.ShownMove{
		Member: slot.ID.MemberName(), Phase: m.Phase, From: m.From.Node, To: m.To.Node, By: m.By, BeganAt: m.BeganAt,
		LimitBytesPerSecond: m.BytesPerSecond, Why: m.Why,
	}
	if r := f.said(m, moves.MoveTarget); r != nil {
		s.DoneBytes, s.TotalBytes, s.BytesPerSecond = r.DoneBytes, r.TotalBytes, r.BytesPerSecond
	}
	_, doing := f.doing(m, slot.volume)
	s.Waits = strings.TrimLeft(doing, ":, ")
	return s
}

// MoveBytes is how many bytes of a move are at its target, and of how many; 0 and 0: that is not known.
func MoveBytes(m *moves.Move, nodes []Node, epoch int64) (done, total int64) {
	if r := factsOf(nodes, epoch).said(m, moves.MoveTarget); r != nil {
		return r.DoneBytes, r.TotalBytes
	}
	return 0, 0
}
