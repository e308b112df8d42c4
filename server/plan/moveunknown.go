package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
)

// unknownSeal is what the node of a member's volumes says, in the present epoch, of a seal of a move that the store does not
// know (SAFETY S12); nil: it says of none.
func (f moveFacts) unknownSeal(t *memberFacts) *moves.MoveReport {
	local := t.localVolumes()
	if t.Move != nil || len(local) == 0 {
		return nil
	}
	n := f.node(local[0].Node)
	if n == nil || n.Facts == nil || n.Facts.UID != n.Node.UID || n.Facts.Epoch != f.world.Epoch {
		return nil
	}
	for i := range n.Facts.MoveReports {
		r := &n.Facts.MoveReports[i]
		if r.ID == t.ID && r.Role == moves.MoveSource && r.State == moves.MoveSealed && len(r.Claims) > 0 {
			return r
		}
	}
	return nil
}

// unknownMove is the record of a move of which nothing but a seal is left, as it is made anew to be aborted; why: it is not.
// It is of an earlier epoch: whether it was flipped its target says.
func (s mover) unknownMove(t *memberState) (m moves.Move, why string) {
	r := s.unknownSeal(t.memberFacts)
	if r == nil {
		return m, "there is no such move any more"
	}
	from := s.node(t.localVolumes()[0].Node)
	for _, c := range r.Claims {
		v := t.Volumes[c.Claim]
		if v == nil || v.Shared || string(v.UID) != c.Old || v.Node != from.Node.Name || v.Fate != records.FateKeep {
			return m, fmt.Sprintf("its volume of the claim %s is not the one that node %s has sealed", c.Claim, from.Node.Name)
		}
	}
	to := s.node(r.Peer)
	switch {
	case len(t.Asked) > 0:
		return m, "something is being done about one of its volumes; wait for that"
	case to == nil:
		return m, fmt.Sprintf("its volumes were to move to node %s, which may have them, and which this store does not know; start its agent, so that it says whether it has them", r.Peer)
	case r.Peer == from.Node.Name || !to.Connected() || to.Facts == nil || !to.Facts.Moves:
		return m, fmt.Sprintf("its volumes were to move to node %s, which may have them, and which is unreachable; start its agent, so that it says whether it has them", r.Peer)
	}
	return moves.Move{
		ID: t.ID, Move: r.Move, Phase: moves.MoveAborting, Claims: r.Claims, Epoch: s.world.Epoch - 1, BeganAt: s.world.Now,
		From: moves.MoveEnd{Node: from.Node.Name, UID: from.Node.UID}, To: moves.MoveEnd{Node: r.Peer, UID: to.Node.UID},
		Why: "the store was restored and did not know the move",
	}, ""
}

// resolveSeal makes the record of a move of which nothing but a seal is left, for a person wants it aborted.
func (s mover) resolveSeal(t *memberState, q *moves.MoveRequest) {
	m, why := s.unknownMove(t)
	if why != "" || m.Move != q.Move {
		return
	}
	m.By = q.By
	s.act(BeginMove{Move: m, Asked: true, Text: fmt.Sprintf("the move of %s from node %s to node %s, of which node %s has a seal and the store knew nothing, is aborted: if node %s has the volumes they become its own",
		t.ID.MemberName(), m.From.Node, m.To.Node, m.From.Node, m.To.Node)})
	t.become(t.withMove(&m, true))
	t.moveWritten = true
}

// UnknownMove is the move of which nothing but a seal on the node of a member's volumes is left; "": there is none.
func UnknownMove(slot *Slot, nodes []Node, epoch int64) moves.MoveID {
	if r := factsOf(nodes, epoch).unknownSeal(&memberFacts{Slot: *slot}); r != nil {
		return r.Move
	}
	return ""
}
