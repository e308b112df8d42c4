package rules

import (
	"slices"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/plan"
)

// moves judges the stop of a member for its move, and tells whether the budget pays for it: its volumes are being copied, both
// machines live, and the target says that little is missing, or that it has them since before a restore (SAFETY S12).
func (c *planChecker) moves(o int) (paid bool) {
	m := c.Slot(o).Move
	if m != nil && m.Phase == moves.MoveFlipped && c.isBack(m) {
		return false // its volumes went back in a history of the store that is lost
	}
	if m == nil || m.Phase != moves.MoveCopying {
		c.fail("moves", "%s is ended for a move that it does not have", c.Name(o))
		return false
	}
	if !c.machine(m.From) || !c.machine(m.To) {
		c.fail("moves", "%s is ended for its move from %s to %s, of which one is silent or another machine", c.Name(o), m.From.Node, m.To.Node)
	}
	switch said := c.saidOf(m); {
	case said == moves.MoveArrived && m.Epoch != c.x.Epoch:
		return false
	case said != moves.MoveWarm:
		c.fail("moves", "%s is ended for its move, and %s says %q", c.Name(o), m.To.Node, said)
	}
	return c.absence(o, "moved")
}

// machine: the machine at an end of a move has a session.
func (r *Reading) machine(end moves.MoveEnd) bool {
	s := r.session(end.Node)
	return s != nil && s.UID == end.UID
}

// saidOf is what the target of a move says in the store's present epoch; "": nothing.
func (r *Reading) saidOf(m *moves.Move) moves.MoveState { return r.said(m, m.To, moves.MoveTarget) }

// isBack: its source says in that epoch that its volumes went back.
func (r *Reading) isBack(m *moves.Move) bool {
	return r.said(m, m.From, moves.MoveSource) == moves.MoveIsBack
}

func (r *Reading) said(m *moves.Move, end moves.MoveEnd, role moves.MoveRole) moves.MoveState {
	i := slices.IndexFunc(r.x.Nodes, func(n plan.Node) bool {
		return n.Node.Name == end.Node && n.Facts != nil && n.Facts.UID == end.UID && n.Facts.Epoch == r.x.Epoch
	})
	if i < 0 {
		return ""
	}
	if said := moves.Said(r.x.Nodes[i].Facts.MoveReports, m.Move, role); said != nil {
		return said.State
	}
	return ""
}

// heldByMove: a member that is not available by the end of the plan has a move then beside which no life may start.
func (c *planChecker) heldByMove(o int) bool {
	m := c.moveAfter(o)
	if m == nil || c.stays(o) {
		return false
	}
	return m.Phase != moves.MoveCopying && !(m.Phase == moves.MoveFlipped && c.saidOf(m) == moves.MoveArrived && !c.isBack(m))
}

// moveAfter is the move of an ordinal as the plan leaves it; nil: it has none.
func (c *planChecker) moveAfter(o int) *moves.Move {
	m := c.Slot(o).Move
	for _, a := range c.p.Actions {
		var now *moves.Move
		switch a := a.(type) {
		case plan.BeginMove:
			now = &a.Move
		case plan.AdvanceMove:
			now = &a.Move
		case plan.FlipMove:
			now = &a.Move
		case plan.BackMove:
			now = &a.Move
		case plan.Stop:
			now = a.Move
		case plan.ForwardMove:
			if a.Move.ID == c.Slot(o).ID {
				m = nil
			}
		case plan.EndMove:
			if a.Move.ID == c.Slot(o).ID {
				m = nil
			}
		}
		if now != nil && now.ID == c.Slot(o).ID {
			m = now
		}
	}
	return m
}
