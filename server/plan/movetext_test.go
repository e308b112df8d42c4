package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// TestAMoveIsShown: phase, progress, what it waits for and why it was given up reach whoever looks.
func TestAMoveIsShown(t *testing.T) {
	copied := func(w *World, _ *moves.Move) {
		r := &proof.FindNode(w.Nodes, "n2").Facts.MoveReports[0]
		r.DoneBytes, r.TotalBytes, r.BytesPerSecond, r.Error = 43, 100, 7, ""
	}
	why := func(_ *World, m *moves.Move) { m.Why = "abort requested" }
	for _, c := range []struct {
		name  string
		world string
		move  func(*World)
		want  moves.ShownMove
	}{
		{"while it copies", "ordered 1 volumes n1 n2 0:ready@n1", moving(0, moves.MoveCopying, "", moves.MoveCopyingNow, copied),
			moves.ShownMove{Phase: moves.MoveCopying, DoneBytes: 43, TotalBytes: 100, BytesPerSecond: 7, Waits: "node n2 copies its volumes while it runs"}},
		{"when it waits for its turn", "ordered 1 volumes n1 n2 0:ready@n1", moving(0, moves.MoveCopying, "", moves.MoveWarm, copied),
			moves.ShownMove{Phase: moves.MoveCopying, DoneBytes: 43, TotalBytes: 100, BytesPerSecond: 7, Waits: "nearly all is copied; the member stops for the rest when it is its turn in the set's budget"}},
		{"with what holds it up", "ordered 1 volumes n1 n2~ n3 0:ready@n1", moving(0, moves.MoveCopying, "", moves.MoveCopyingNow),
			moves.ShownMove{Phase: moves.MoveCopying, Waits: "node n2 copies its volumes while it runs; node n2 says: the disk is full; node n2 is unreachable"}},
		{"when it is given up", "ordered 1 volumes n1 n2 0:moved@n1", moving(0, moves.MoveAborting, moves.MoveSealed, "", why),
			moves.ShownMove{Phase: moves.MoveAborting, Why: "abort requested", Waits: "it starts again when node n1 has its volumes back in use"}},
		{"after it arrived", "ordered 1 volumes n1 n2 0:moved@n1", moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveArrived, flipped, copied),
			moves.ShownMove{Phase: moves.MoveFlipped, DoneBytes: 43, TotalBytes: 100, BytesPerSecond: 7,
				Waits: "its volumes are on node n2; when it is ready there, the old ones on node n1 go to the trash"}},
		{"when it is asked for", "ordered 1 volumes n1 n2 0:ready@n1", wantsMove(0, moves.MoveBegin, "n2"),
			moves.ShownMove{Phase: moves.MoveRequested, Waits: "it is asked for, and begins when both nodes have room for another move"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world(t, c.world)
			c.move(&w)
			slot := slotOf(&w, spec.Identity{Namespace: "default", Set: "db"})
			c.want.Member, c.want.From, c.want.To = "db-0", "n1", "n2"
			if got := ShownMove(slot, w.Nodes, w.Epoch); got == nil || *got != c.want {
				t.Errorf("shown is\n%+v, want\n%+v", got, c.want)
			}
		})
	}
	w := world(t, "ordered 1 volumes n1 n2 0:ready@n1")
	if got := ShownMove(&w.Slots[0], w.Nodes, w.Epoch); got != nil {
		t.Errorf("a member that does not move shows %+v", got)
	}
}

// TestADrainSaysWhyItWaitsAfterAMoveWasAborted: the reason outlives the move's record.
func TestADrainSaysWhyItWaitsAfterAMoveWasAborted(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 n2 0:ready@n1")
	movers(&w)
	w.Nodes = drained(w.Nodes, "n1", true, false)
	proof.FindNode(w.Nodes, "n1").Node.Drain = &records.Drain{Move: true}
	w.MoveRest = map[spec.Identity]MoveRest{w.Slots[0].ID: {Left: 1, Why: "node n2: the disk is full"}}
	p := Next(w)
	const want = "its last move was aborted (node n2: the disk is full); the drain of its node begins another after a while"
	if len(p.Blocked) != 1 || p.Blocked[0].Text != want {
		t.Errorf("it says %+v", p.Blocked)
	}
}
