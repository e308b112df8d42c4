package plan

import (
	"testing"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// sealedUnknown: node n1 has a seal of a move to n2 of which the store knows nothing, and a person wants that aborted.
func sealedUnknown(changes ...func(*World, *moves.MoveReport)) func(*World) {
	return func(w *World) {
		movers(w)
		slot := slotOf(w, spec.Identity{Namespace: "default", Set: "db"})
		r := moves.MoveReport{
			ID: slot.ID, Move: "m", Role: moves.MoveSource, State: moves.MoveSealed, Peer: "n2",
			Claims: []moves.MoveClaim{{Claim: "data", Old: string(slot.Volumes["data"].UID), New: "copy", Number: 1, Class: spec.LocalClass}},
		}
		slot.MoveAsked = &moves.MoveRequest{ID: slot.ID, Verb: moves.MoveAbort, Move: "m", By: "ann"}
		for _, c := range changes {
			c(w, &r)
		}
		f := proof.FindNode(w.Nodes, "n1").Facts
		f.MoveReports = append(f.MoveReports, r)
	}
}

// TestASealThatTheStoreDoesNotKnowIsResolved: the move is made anew to be aborted, only where the node that says so has the
// volumes by their records, and the target can say whether it has them.
func TestASealThatTheStoreDoesNotKnowIsResolved(t *testing.T) {
	peer := func(name spec.NodeName) func(*World, *moves.MoveReport) {
		return func(_ *World, r *moves.MoveReport) { r.Peer = name }
	}
	check(t, []rule{
		{name: "its move is aborted", world: "ordered 1 volumes n1 n2 0:over@n1", change: sealedUnknown(), want: "begin=0@n2 | 0:Moving"},
		{name: "not of another move", world: "ordered 1 volumes n1 n2 0:ready@n1", change: sealedUnknown(func(_ *World, r *moves.MoveReport) { r.Move = "other" }), want: "void-move=0 |",
			says: "there is no such move any more"},
		{name: "not on the word of an earlier epoch", world: "ordered 1 volumes n1 n2 0:ready@n1", change: sealedUnknown(func(w *World, _ *moves.MoveReport) { proof.FindNode(w.Nodes, "n1").Facts.Epoch = 0 }), want: "void-move=0 |"},
		{name: "not of another volume", world: "ordered 1 volumes n1 n2 0:ready@n1", change: sealedUnknown(func(_ *World, r *moves.MoveReport) { r.Claims[0].Old = "another" }), want: "void-move=0 |",
			says: "its volume of the claim data is not the one that node n1 has sealed"},
		{name: "not while the target is unreachable", world: "ordered 1 volumes n1 n2~ n3 0:ready@n1", change: sealedUnknown(), want: "void-move=0 |",
			says: "its volumes were to move to node n2, which may have them, and which is unreachable; start its agent, so that it says whether it has them"},
		{name: "not when nobody knows the target", world: "ordered 1 volumes n1 n2 0:ready@n1", change: sealedUnknown(peer("n9")), want: "void-move=0 |",
			says: "its volumes were to move to node n9, which may have them, and which this store does not know; start its agent, so that it says whether it has them"},
	})
	w := world(t, "ordered 1 volumes n1 n2 0:starting@n1")
	sealedUnknown()(&w)
	p := Next(w)
	begin, is := p.Actions[0].(BeginMove)
	if !is || begin.Move.Phase != moves.MoveAborting || begin.Move.Epoch >= w.Epoch || !begin.Asked || begin.Move.From != (moves.MoveEnd{Node: "n1", UID: "uid-n1"}) {
		t.Fatalf("it does %+v", p.Actions)
	}
	w.apply(begin)
	if o := MoveOrder(&begin.Move, moves.MoveSource, w.Nodes, w.Epoch, w.Slots[0].volume); o.Unseal {
		t.Error("the seal is broken before the target has said anything")
	}
	says := func(state moves.MoveState) World {
		now := w
		now.Nodes = append([]Node{}, w.Nodes...)
		n := proof.FindNode(now.Nodes, "n2")
		f := *n.Facts
		f.MoveReports = []moves.MoveReport{{ID: begin.Move.ID, Move: "m", Role: moves.MoveTarget, State: state}}
		n.Facts = &f
		return now
	}
	discarded := says(moves.MoveDiscarded)
	if o := MoveOrder(&begin.Move, moves.MoveSource, discarded.Nodes, w.Epoch, w.Slots[0].volume); !o.Unseal {
		t.Error("the seal stays though the target has nothing")
	}
	if got := brief(Next(says(moves.MoveArrived))); got != "stop=0/Move | 0:Stopping" {
		t.Errorf("the target has the volumes, and a life waits for the sealed ones: %s", got)
	}
	over := world(t, "ordered 1 volumes n1 n2 0:over@n1")
	w.Slots = over.Slots
	w.Slots[0].Move = &begin.Move
	if got := brief(Next(says(moves.MoveArrived))); got != "flip=0@n2 | 0:Moving" {
		t.Errorf("the target has the volumes: %s", got)
	}
}
