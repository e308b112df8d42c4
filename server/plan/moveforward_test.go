package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// sourceReport changes what the source says of its part.
func sourceReport(do func(*moves.MoveReport)) func(*World, *moves.Move) {
	return func(w *World, _ *moves.Move) {
		reports := proof.FindNode(w.Nodes, "n1").Facts.MoveReports
		for i := range reports {
			if reports[i].Role == moves.MoveSource {
				do(&reports[i])
			}
		}
	}
}

// lacks has the source say that it has not the volume of a claim.
func lacks(claim spec.ClaimName) func(*World, *moves.Move) {
	return sourceReport(func(r *moves.MoveReport) { r.Absent = []spec.ClaimName{claim} })
}

func saysOfBack(text string) func(*World, *moves.Move) {
	return sourceReport(func(r *moves.MoveReport) { r.Error = text })
}

// copyLeft: the copy at the target is to be given up later.
func copyLeft(w *World, m *moves.Move) { slotOf(w, m.ID).Left = []spec.NodeName{"n2"} }

// TestAMemberGoesOnWithTheCopy: of a move that goes back to a source that is lost as well.
func TestAMemberGoesOnWithTheCopy(t *testing.T) {
	at := func(source, target moves.MoveState, change ...func(*World, *moves.Move)) func(*World) {
		return wantsMove(0, moves.MoveBegin, "n2", moving(0, moves.MoveBack, source, target, append([]func(*World, *moves.Move){copyLeft}, change...)...))
	}
	off := func(w *World, _ *moves.Move) { proof.FindNode(w.Nodes, "n1").Fenced = true }
	removed := func(w *World) {
		at(moves.MoveSealed, moves.MoveArrived)(w)
		w.Nodes = slices.DeleteFunc(w.Nodes, func(n Node) bool { return n.Node.Name == "n1" })
	}
	given := func(w *World, m *moves.Move) { slotOf(w, m.ID).Left = nil }
	stray := func(w *World, m *moves.Move) { slotOf(w, m.ID).Strays = []NodeStray{{Node: "n1"}} }
	otherNow := func(w *World, m *moves.Move) {
		v := *slotOf(w, m.ID).Volumes["data"]
		v.Fate = records.FateLost
		slotOf(w, m.ID).Volumes = map[spec.ClaimName]*records.Volume{"data": &v}
	}
	slow := func(w *World, m *moves.Move) { slotOf(w, m.ID).MoveAsked.BytesPerSecond = 1 }
	const moved, silent = "ordered 1 volumes n1 n2 n3 0:moved@n1", "ordered 1 volumes n1~ n2 n3 0:moved@n1"
	check(t, []rule{
		{name: "whose node says that it has not the volume", world: moved, change: at(moves.MoveIsBack, moves.MoveArrived, lacks("data")), want: "forward=0@n2+left | 0:Moving"},
		{name: "whose node is off, as a person says", world: silent, change: at(moves.MoveSealed, moves.MoveArrived, off), want: "forward=0@n2+left | 0:Moving"},
		{name: "whose node was removed", world: moved, change: removed, want: "forward=0@n2 | 0:Moving"},
		{name: "not by silence", world: silent, change: at(moves.MoveIsBack, moves.MoveArrived, lacks("data")), want: "void-move=0 | 0:NodeSilent",
			says: "nothing says that they are lost there; if that node is off for good: stead node fence n1 --i-have-powered-off"},
		{name: "not while its node takes them back", world: moved, change: at(moves.MoveSealed, moves.MoveArrived), want: "void-move=0 | 0:Moving"},
		{name: "not when it has them", world: moved, change: at(moves.MoveIsBack, moves.MoveArrived), want: "end=0 void-move=0 | 0:Moving"},
		{name: "not before the copy is in its place", world: moved, change: at(moves.MoveIsBack, moves.MoveCopied, lacks("data")), want: "void-move=0 | 0:Moving", says: "node n2 does not say that it has the copy in its place"},
		{name: "not when that was said in another epoch", world: moved, want: "void-move=0 | 0:Moving",
			change: at(moves.MoveIsBack, moves.MoveArrived, lacks("data"), func(w *World, _ *moves.Move) { proof.FindNode(w.Nodes, "n2").Facts.Epoch = 0 })},
		{name: "not while the target is silent", world: "ordered 1 volumes n1 n2~ n3 0:moved@n1", change: at(moves.MoveIsBack, moves.MoveArrived, lacks("data")), want: "void-move=0 | 0:Moving",
			says: "node n2, which may have the copy, is unreachable; start its agent"},
		{name: "not when the copy was given up", world: moved, change: at(moves.MoveIsBack, moves.MoveArrived, lacks("data"), given), want: "void-move=0 | 0:Moving", says: "the copy on node n2 was given up"},
		{name: "not beside a life that the store does not know", world: moved, change: at(moves.MoveIsBack, moves.MoveArrived, lacks("data"), stray), want: "void-move=0 | 0:Moving"},
		{name: "not when something else was decided of the volume", world: moved, change: at(moves.MoveIsBack, moves.MoveArrived, lacks("data"), otherNow), want: "void-move=0 | 0:Moving"},
		{name: "not elsewhere", world: moved, change: wantsMove(0, moves.MoveBegin, "n3", moving(0, moves.MoveBack, moves.MoveIsBack, moves.MoveArrived, copyLeft, lacks("data"))), want: "void-move=0 | 0:Moving",
			says: "its volumes go back to node n1; wait for that"},
	})
	w := world(t, moved)
	at(moves.MoveIsBack, moves.MoveArrived, lacks("data"))(&w)
	slow(&w, w.Slots[0].Move)
	if got := MoveRefusal(w, *w.Slots[0].MoveAsked); !strings.Contains(got, "a rate means nothing") {
		t.Errorf("a rate is ignored: %q", got)
	}
}

// TestTheCopyIsKeptUntilTheSourceHasTheVolumes: the target is told to put it in its place, and not to give it up.
func TestTheCopyIsKeptUntilTheSourceHasTheVolumes(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 n2 n3 0:moved@n1")
	moving(0, moves.MoveBack, moves.MoveIsBack, moves.MoveCopied, lacks("data"))(&w)
	m := w.Slots[0].Move
	if o := MoveOrder(m, moves.MoveTarget, w.Nodes, w.Epoch, w.Slots[0].volume); o.Phase != moves.MoveFlipped {
		t.Errorf("the target is told %s", o.Phase)
	}
	if o := MoveOrder(m, moves.MoveSource, w.Nodes, w.Epoch, w.Slots[0].volume); o.Phase != moves.MoveBack {
		t.Errorf("the source is told %s", o.Phase)
	}
	left := records.VolumeReport{ID: m.ID, Claim: "data", Volume: "copy", Node: "n2", State: records.VolumeLeft}
	other, there := left, left
	other.Volume, there.Node = "another", "n1"
	over := *m
	over.Phase = moves.MoveFlipped
	if !KeepsCopy(m, &left) || KeepsCopy(m, &other) || KeepsCopy(m, &there) || KeepsCopy(&over, &left) || KeepsCopy(nil, &left) {
		t.Error("not the copy of a move that goes back alone is kept")
	}
}

// TestAVolumeIsNotSaidToBeLostWhileItsCopyIsKept: a new and empty one would be made in its place.
func TestAVolumeIsNotSaidToBeLostWhileItsCopyIsKept(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 n2 n3 0:moved@n1")
	moving(0, moves.MoveBack, moves.MoveIsBack, moves.MoveArrived, copyLeft, lacks("data"))(&w)
	slot := &w.Slots[0]
	q := records.VolumeRequest{ID: slot.ID, Claim: "data", Volume: slot.Volumes["data"].UID, Verb: records.VerbLost, Token: slot.Identity.LastToken}
	if got := Refusal(w, q, nil); !strings.Contains(got, "to continue with that: stead move db-0 --to n2") {
		t.Errorf("refused: %q", got)
	}
	n := proof.FindNode(w.Nodes, "n2")
	n.Session, n.Fenced = nil, true
	if got := Refusal(w, q, nil); got != "" {
		t.Errorf("refused though both are lost: %q", got)
	}
}
