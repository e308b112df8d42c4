package cache

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// ends are the nodes that have a part in a move; nil: there is none.
func ends(m *moves.Move) []spec.NodeName {
	if m == nil {
		return nil
	}
	return []spec.NodeName{m.From.Node, m.To.Node}
}

// moveMove keeps the lists of moves in which each node has a part.
func moveMove(s *state, old, now *moves.Move) {
	for _, node := range ends(old) {
		delete(s.node(node).moves, old.ID)
		s.movedNodes[node] = true
		s.dropIdleNode(node)
	}
	for _, node := range ends(now) {
		s.node(node).moves[now.ID] = now
		s.movedNodes[node] = true
	}
}

// touchMoves notes that a node may say something else of moves in which it has a part, which concerns the other
// node and the set.
func touchMoves(s *state, node spec.NodeName, ch *Changes) {
	for _, id := range slices.Collect(maps.Keys(s.node(node).moves)) {
		_ = s.changeSlot(s.set(id.Ref()), id, ch, func(*slot) error { return nil })
		ch.Sets[id.Ref()] = true
	}
}

// MoveOf is the move of an identity; nil: there is none.
func MoveOf(v View, id spec.Identity) *moves.Move { return v.lookup(id).move.record }

// MoveRequestOf is what a person asks about the move of an identity; nil: nothing.
func MoveRequestOf(v View, id spec.Identity) *moves.MoveRequest { return v.lookup(id).moveAsk.record }

// MovingOf are the members of a set of which a move is asked for or under way, by ordinal.
func MovingOf(v View, ref spec.SetRef) (list []plan.Slot) {
	for _, l := range v.find(ref).slots {
		if l.move.record != nil || l.moveAsk.record != nil {
			list = append(list, l.view)
		}
	}
	return list
}

// MovesOn lists the moves in which node has a part, by identity.
func MovesOn(v View, node spec.NodeName) (list []*moves.Move) {
	n := v.nodes[node]
	if n == nil {
		return nil
	}
	for _, id := range slices.SortedFunc(maps.Keys(n.moves), spec.Identity.Compare) {
		list = append(list, n.moves[id])
	}
	return list
}
