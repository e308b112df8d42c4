package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// askMove is a person's request about a move, made if it is not refused: to the node, of one that begins.
func (s *stage) askMove(name string, verb moves.MoveVerb, to spec.NodeName) {
	s.t.Helper()
	s.canMove()
	slot := s.slot(name)
	q := moves.MoveRequest{ID: slot.ID, Verb: verb, By: "ann", To: moves.MoveEnd{Node: to, UID: spec.UID("uid-" + to)}}
	if slot.Move != nil {
		q.Move = slot.Move.Move
	}
	s.refused = MoveRefusal(s.w, q)
	if s.refused == "" {
		slot.MoveAsked = &q
	}
}

// rebalance asks for what spreads the members of the set, and tells it.
func (s *stage) rebalance() {
	s.t.Helper()
	s.canMove()
	r := Rebalance([]World{s.w}, func(spec.SetRef) bool { return true }, 0)
	for _, m := range r.Moves {
		s.answers = append(s.answers, fmt.Sprintf("%s is to go from %s to %s: %s", m.ID.MemberName(), m.From, m.To.Node, m.Why))
		s.slot(m.ID.MemberName()).MoveAsked = &moves.MoveRequest{ID: m.ID, Verb: moves.MoveBegin, By: "ann", To: m.To}
	}
	for _, stay := range r.Stays {
		s.answers = append(s.answers, fmt.Sprintf("%s stays on %s: %s", stay.ID.MemberName(), stay.Node, stay.Why))
	}
	if len(s.answers) == 0 {
		s.answers = []string{"there is nothing to do"}
	}
}

// canMove has the agents of all nodes move volumes.
func (s *stage) canMove() {
	s.w.Nodes = slices.Clone(s.w.Nodes)
	for i := range s.w.Nodes {
		n := &s.w.Nodes[i]
		facts := records.NodeFacts{Name: n.Node.Name, Guards: true}
		if n.Facts != nil {
			facts = *n.Facts
		}
		facts.UID, facts.Epoch, facts.Moves, facts.MovesBack = n.Node.UID, s.w.Epoch, true, true
		n.Facts = &facts
	}
}

// drainMoves has the members of a node moved away.
func (s *stage) drainMoves(name spec.NodeName) {
	s.canMove()
	s.w.Nodes = drained(s.w.Nodes, name, true, false)
	proof.FindNode(s.w.Nodes, name).Node.Drain.Move = true
}

// copies has the ends of moves do their part; it reports whether any did. What was left goes to the trash.
func (s *stage) copies() bool {
	p := previewRun{w: s.w}
	p.w.Nodes = slices.Clone(s.w.Nodes)
	any := p.movesAct()
	s.w.Nodes = p.w.Nodes
	for i := range s.w.Slots {
		slot := &s.w.Slots[i]
		for _, node := range slot.Left {
			s.trash[fmt.Sprintf("old data-%s of %s", slot.ID.MemberName(), node)] = &records.VolumeReport{}
			any = true
		}
		slot.Left = nil
	}
	return any
}

// saidOfMoves is an action on moves in words.
func saidOfMoves(a Action) string {
	switch a := a.(type) {
	case BeginMove:
		return a.Text
	case AdvanceMove:
		return a.Text
	case FlipMove:
		return a.Text
	case BackMove:
		return a.Text
	case ForwardMove:
		return a.Text
	case EndMove:
		return a.Text
	case VoidMoveRequest:
		return fmt.Sprintf("what was asked of %s is not done: %s", a.ID.MemberName(), a.Text)
	}
	return ""
}
