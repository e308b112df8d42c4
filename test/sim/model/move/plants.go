package move

import (
	"github.com/stead-project/stead/agent/move/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/plan"
)

// unsealsUnasked has a source break a seal that no order names.
func unsealsUnasked(v step.Situation, next *step.Next) {
	if v.Role == moves.MoveSource && v.Order == nil && v.Told && v.Disk.Sealed {
		*next = step.Next{Op: step.Unseal, Say: moves.MoveSealed}
	}
}

// unsealsWhenAborted has a source break its seal when its move is aborted, whatever the target has.
func unsealsWhenAborted(v step.Situation, next *step.Next) {
	if v.Role == moves.MoveSource && v.Order != nil && v.Order.Phase == moves.MoveAborting && v.Disk.Sealed {
		*next = step.Next{Op: step.Unseal, Say: moves.MoveSealed}
	}
}

// saysDiscarded has a target say that it has nothing of a move that is aborted.
func saysDiscarded(v step.Situation, next *step.Next) {
	if v.Role == moves.MoveTarget && v.Order != nil && v.Order.Phase == moves.MoveAborting {
		*next = step.Next{Say: moves.MoveDiscarded}
	}
}

// arrivesUncompared has a target put what it has in its place without having compared it.
func arrivesUncompared(v step.Situation, next *step.Next) {
	if v.Role == moves.MoveTarget && v.Order != nil && v.Order.Phase == moves.MoveFlipped && v.Disk.Staged {
		*next = step.Next{Op: step.Arrive, Say: moves.MoveWarm}
	}
}

// arrivesUnflipped has a target do so before the move is flipped.
func arrivesUnflipped(v step.Situation, next *step.Next) {
	if v.Role == moves.MoveTarget && v.Order != nil && v.Order.Phase == moves.MoveSealing && len(v.Disk.Copied) > 0 {
		*next = step.Next{Op: step.Arrive, Say: moves.MoveCopied, Sums: v.Disk.Copied}
	}
}

// only has the planner do this, where it is due by less than a rule asks for.
func only(due func(w *plan.World, m *moves.Move) plan.Action) func(plan.World, *plan.Plan) {
	return func(w plan.World, p *plan.Plan) {
		if m := w.Slots[0].Move; m != nil && len(p.Actions) == 0 {
			if a := due(&w, m); a != nil {
				p.Actions = append(p.Actions, a)
			}
		}
	}
}

func advanced(m *moves.Move, phase moves.MovePhase) plan.AdvanceMove {
	next := *m
	next.Phase = phase
	return plan.AdvanceMove{Move: next}
}

// sealsBeforeTheEnd does not wait until a life is over.
func sealsBeforeTheEnd(_ *plan.World, m *moves.Move) plan.Action {
	if m.Phase != moves.MoveStopping {
		return nil
	}
	return advanced(m, moves.MoveSealing)
}

func saidOf(w *plan.World, m *moves.Move, role moves.MoveRole) (s moves.MoveState) {
	end := m.From
	if role == moves.MoveTarget {
		end = m.To
	}
	for _, n := range w.Nodes {
		if r := moves.Said(n.Facts.MoveReports, m.Move, role); n.Node.Name == end.Node && r != nil {
			s = r.State
		}
	}
	return s
}

// flipsUnsealed flips what the target has by the sums of a seal of before a restore, which may be broken since.
func flipsUnsealed(w *plan.World, m *moves.Move) plan.Action {
	if m.Phase != moves.MoveSealing || m.Sums == nil || saidOf(w, m, moves.MoveTarget) != moves.MoveCopied {
		return nil
	}
	return plan.FlipMove{Move: *m}
}

// flipsUncopied flips before the target has all.
func flipsUncopied(_ *plan.World, m *moves.Move) plan.Action {
	if m.Phase != moves.MoveSealing || m.Sums == nil {
		return nil
	}
	return plan.FlipMove{Move: *m}
}

// endsUnarrived gives the old copy up before the new one is in its place.
func endsUnarrived(_ *plan.World, m *moves.Move) plan.Action {
	if m.Phase != moves.MoveFlipped {
		return nil
	}
	return plan.EndMove{Move: *m, Left: make([]records.VolumeReport, 1)}
}

// endsSealed takes an aborted move for over while its source is sealed.
func endsSealed(_ *plan.World, m *moves.Move) plan.Action {
	if m.Phase != moves.MoveAborting {
		return nil
	}
	return plan.EndMove{Move: *m}
}

// flipsAborted flips what is being aborted.
func flipsAborted(w *plan.World, m *moves.Move) plan.Action {
	if m.Phase != moves.MoveAborting || saidOf(w, m, moves.MoveTarget) != moves.MoveCopied {
		return nil
	}
	return plan.FlipMove{Move: *m}
}

// startsBeside has lives start beside a move, as if there were none.
func startsBeside(w *plan.World) {
	if s := &w.Slots[0]; s.Move != nil && s.Move.Phase.Down() {
		s.Move = nil
	}
}

// Plants are the guards of S12 that are left out, each in the model that shows it; of two that stand for each other both.
var Plants = []struct {
	Plant
	Bounds Bounds
	// Wrong is how what is found begins.
	Wrong string
	// Long: it takes too many states for the unit tests.
	Long bool
}{
	{Plant{Name: "a move holds no starts", HoldsNoStarts: true}, Bounds{Moves: 1, Aborts: 1, Fails: 1, Behind: 1, Numbers: 2}, "1.2 starts while its move is", false},
	{Plant{Name: "a life starts beside a move", See: startsBeside}, aborting, "1.2 starts while its move is", false},
	{Plant{Name: "a source seals under a life", SealsUnderALife: true}, restored, "n0 sums what 1.2 writes to", true},
	{Plant{Name: "the end of the life is not awaited, and a source seals under it", Say: only(sealsBeforeTheEnd), SealsUnderALife: true}, aborting, "1.1 runs on n0, and its volume is sealed", false},
	{Plant{Name: "a life gets what is sealed", UsesSealed: true}, restored, "n1 puts a copy in its place with write 1 of 2", false},
	{Plant{Name: "a seal is broken unasked", Choose: unsealsUnasked}, restored, twoVolumes, false},
	{Plant{Name: "a seal is broken when the move is aborted", Choose: unsealsWhenAborted}, restoredAndAborted, twoVolumes, true},
	{Plant{Name: "a seal is broken in any epoch", UnsealsInAnyEpoch: true}, restoredAndAborted, twoVolumes, true},
	{Plant{Name: "a target says that it has discarded what arrived", Choose: saysDiscarded}, restoredAndAborted, twoVolumes, true},
	{Plant{Name: "a target says the sums of its source", SaysSumsUnread: true}, aborting, "n1 puts a copy in its place with write 1 of 2", false},
	{Plant{Name: "a move is flipped before all is copied, and that arrives", Say: only(flipsUncopied), Choose: arrivesUncompared}, aborting, "n1 puts a copy in its place with write 1 of 2", false},
	{Plant{Name: "a copy arrives before the flip", Choose: arrivesUnflipped}, aborting, twoVolumes, false},
	{Plant{Name: "what is aborted is flipped", Say: only(flipsAborted)}, aborting, twoVolumes, false},
	{Plant{Name: "the move is not compared", Uncompared: "move"}, Bounds{Moves: 1, Aborts: 1, Behind: 2, Numbers: 2}, twoVolumes, true},
	{Plant{Name: "a source of before a restore need not say that it is sealed", Say: only(flipsUnsealed)}, restored, twoVolumes, true},
	{Plant{Name: "a move is over before its source is unsealed", Say: only(endsSealed)}, aborting, "1.2 runs on n0, and its volume is sealed", false},
	{Plant{Name: "the old copy is given up before the new one arrived", Say: only(endsUnarrived)}, aborting, "n1 discards the last copy that has write 1", false},
	{Plant{Name: "a restore begins no epoch", RestoreKeepsEpoch: true}, restored, "1.2 runs on n0, and its volume is sealed", false},
}
