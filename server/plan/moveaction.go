package plan

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// BeginMove makes the record of a move that must not exist yet. What a person asked (Asked) is answered with it; else the
// drain of the source wants it.
type BeginMove struct {
	Move  moves.Move
	Asked bool
	Text  string
}

// AdvanceMove writes the record of a move as it is to be: in its next phase, aborted, or with the sums of its source. A stop
// for a move is a Stop.
type AdvanceMove struct {
	Move moves.Move
	// Asked: a person wants it, and that is answered.
	Asked bool
	// Heard are nodes on whose word this relies; Silent is one that must have no session; "": none.
	Heard  []spec.NodeName
	Silent spec.NodeName
	Text   string
}

// FlipMove makes the copies of a move the volumes, in one transaction (SAFETY S12).
type FlipMove struct {
	Move    moves.Move // as it is to be
	Volumes []records.Volume
	// Asked: it is aborted, its source cannot have the volumes any more, and a person wants the copies; that is answered.
	Asked bool
	Text  string
}

// EndMove removes the record of a move that is over. Left are the old copies at the source, which are given up.
type EndMove struct {
	Move moves.Move
	Left []records.VolumeReport
	Text string
}

// VoidMoveRequest removes what a person asked about a move and what will not be done; Text says why.
type VoidMoveRequest struct {
	ID   spec.Identity
	Text string
}

func (BeginMove) action()       {}
func (AdvanceMove) action()     {}
func (FlipMove) action()        {}
func (EndMove) action()         {}
func (VoidMoveRequest) action() {}

// applyMove is apply for the actions of moves.
func (w *World) applyMove(a Action) {
	switch a := a.(type) {
	case BeginMove:
		slot := w.slotOf(a.Move.ID)
		if slot.Move != nil {
			panic("a move began beside another")
		}
		slot.Move = &a.Move
		if a.Asked {
			slot.MoveAsked = nil
		}
	case AdvanceMove:
		slot := w.slotOf(a.Move.ID)
		slot.Move = &a.Move
		if a.Asked {
			slot.MoveAsked = nil
		}
	case FlipMove:
		slot := w.slotOf(a.Move.ID)
		slot.Move = &a.Move
		for i := range a.Volumes {
			slot.put(&a.Volumes[i])
		}
		if a.Asked {
			slot.MoveAsked = nil
		}
	case BackMove:
		slot := w.slotOf(a.Move.ID)
		slot.Move = &a.Move
		for i := range a.Volumes {
			slot.put(&a.Volumes[i])
		}
		if len(a.Left) > 0 {
			slot.Left = append(slices.Clone(slot.Left), a.Move.To.Node)
		}
		if a.Asked {
			slot.MoveAsked = nil
		}
	case ForwardMove:
		slot := w.slotOf(a.Move.ID)
		slot.Move, slot.MoveAsked = nil, nil
		for i := range a.Volumes {
			slot.put(&a.Volumes[i])
		}
		slot.Left = slices.DeleteFunc(slices.Clone(slot.Left), func(n spec.NodeName) bool { return n == a.Move.To.Node })
		if len(a.Left) > 0 {
			slot.Left = append(slot.Left, a.Move.From.Node)
		}
	case EndMove:
		slot := w.slotOf(a.Move.ID)
		slot.Move = nil
		if len(a.Left) > 0 {
			slot.Left = append(slices.Clone(slot.Left), a.Move.From.Node)
		}
	case VoidMoveRequest:
		w.slotOf(a.ID).MoveAsked = nil
	}
}
