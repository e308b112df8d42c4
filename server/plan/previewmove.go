package plan

import (
	"slices"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/proof"
)

// movesAct lets the ends of moves do what the records ask of them, if they are connected; it reports whether any did.
func (p *previewRun) movesAct() (any bool) {
	for i := range p.w.Slots {
		if m := p.w.Slots[i].Move; m != nil {
			any = p.moveActs(m, moves.MoveSource) || any
			any = p.moveActs(m, moves.MoveTarget) || any
		}
	}
	return any
}

func (p *previewRun) moveActs(m *moves.Move, role moves.MoveRole) bool {
	end := m.From
	if role == moves.MoveTarget {
		end = m.To
	}
	n := proof.FindNode(p.w.Nodes, end.Node)
	if n == nil || !n.Connected() || n.Node.UID != end.UID || n.Facts == nil {
		return false
	}
	says := moves.MoveReport{ID: m.ID, Move: m.Move, Role: role, State: expectedOf(m, role)}
	old := moves.Said(n.Facts.MoveReports, m.Move, role)
	if says.State == "" || state(old) == says.State && n.Facts.Epoch == p.w.Epoch {
		return false
	}
	if old != nil {
		says.Absent = old.Absent // nobody puts a disk back
	}
	switch says.State {
	case moves.MoveSealed:
		for _, c := range m.Claims {
			says.Sums = append(says.Sums, moves.MoveSum{Claim: c.Claim, Sum: "foreseen"})
		}
	case moves.MoveCopied:
		says.Sums = m.Sums
	}
	facts := *n.Facts
	facts.Epoch = p.w.Epoch
	facts.MoveReports = slices.DeleteFunc(slices.Clone(facts.MoveReports), func(r moves.MoveReport) bool { return r.Move == m.Move && r.Role == role })
	facts.MoveReports = append(facts.MoveReports, says)
	n.Facts = &facts
	return true
}

// expectedOf is what an end of a move says in the end in the phase of the record; "": nothing else than before.
func expectedOf(m *moves.Move, role moves.MoveRole) moves.MoveState {
	source := role == moves.MoveSource
	switch m.Phase {
	case moves.MoveCopying:
		if source {
			return moves.MoveOffered
		}
		return moves.MoveWarm
	case moves.MoveSealing:
		switch {
		case source:
			return moves.MoveSealed
		case m.Sums != nil:
			return moves.MoveCopied
		}
	case moves.MoveFlipped:
		if !source {
			return moves.MoveArrived
		}
	case moves.MoveBack:
		if source {
			return moves.MoveIsBack
		}
	case moves.MoveAborting:
		if source {
			return moves.MoveUnsealed
		}
		return moves.MoveDiscarded
	}
	return ""
}
