package plan

import (
	"fmt"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec/causes"
)

// movingText says for what a member waits that does not start because of its move.
func (e explainer) movingText(t *memberState) (reason causes.BlockedReason, text string) {
	m, f := t.Move, e.ofMoves()
	text = fmt.Sprintf("it moves from node %s to node %s (%s)", m.From.Node, m.To.Node, f.progressText(m))
	awaited, role := m.From, moves.MoveSource
	switch m.Phase {
	case moves.MoveStopping:
		text += ": waiting until it is proven that its life on node " + string(m.From.Node) + " is over"
	case moves.MoveSealing:
		text += fmt.Sprintf(": node %s seals its volumes", m.From.Node)
		if m.Sums != nil {
			awaited, role = m.To, moves.MoveTarget
			text = fmt.Sprintf("it moves from node %s to node %s (%s): node %s copies the rest and compares", m.From.Node, m.To.Node, f.progressText(m), m.To.Node)
		}
	case moves.MoveFlipped:
		awaited, role = m.To, moves.MoveTarget
		text += fmt.Sprintf(": node %s puts its volumes in their place", m.To.Node)
	case moves.MoveAborting:
		text = fmt.Sprintf("its move from node %s to node %s is being aborted (%s): it starts again when node %s has its volumes back in use", m.From.Node, m.To.Node, m.Why, m.From.Node)
		if !f.mayUnseal(m) {
			awaited, role = m.To, moves.MoveTarget
			text = fmt.Sprintf("its move from node %s to node %s is being aborted (%s), and the store was restored since it began: waiting until node %s has said that it does not have the volumes; if node %s is gone for good: stead node remove %s",
				m.From.Node, m.To.Node, m.Why, m.To.Node, m.To.Node, m.To.Node)
		}
	}
	if r := f.said(m, role); r != nil && r.Error != "" {
		text += fmt.Sprintf("; node %s says: %s", awaited.Node, r.Error)
	}
	if !f.reaches(awaited) {
		return causes.BlockedNodeSilent, fmt.Sprintf("%s; node %s is unreachable", text, awaited.Node)
	}
	return causes.BlockedMoving, text
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
	if m.Phase == moves.MoveAborting {
		text += ", " + m.Why
	}
	for _, end := range []moves.MoveEnd{m.From, m.To} {
		role := moves.MoveSource
		if end == m.To {
			role = moves.MoveTarget
		}
		if !f.reaches(end) {
			text += fmt.Sprintf("; node %s is unreachable", end.Node)
		} else if r := f.said(m, role); r != nil && r.Error != "" {
			text += fmt.Sprintf("; node %s says: %s", end.Node, r.Error)
		}
	}
	return text
}

// MoveBytes is how many bytes of a move are at its target, and of how many; 0 and 0: that is not known.
func MoveBytes(m *moves.Move, nodes []Node, epoch int64) (done, total int64) {
	if r := factsOf(nodes, epoch).said(m, moves.MoveTarget); r != nil {
		return r.DoneBytes, r.TotalBytes
	}
	return 0, 0
}
