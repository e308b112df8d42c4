package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// lost: node n2 is off for good, as a person says.
func lost(w *World, _ *moves.Move) { proof.FindNode(w.Nodes, "n2").Fenced = true }

// wantsBack has a person want a member back whose target was lost.
func wantsBack(c func(*World)) func(*World) { return wantsMove(0, moves.MoveGiveBack, "", c) }

func TestAMoveGoesBack(t *testing.T) {
	at := func(change ...func(*World, *moves.Move)) func(*World) {
		return wantsBack(moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveCopied, append([]func(*World, *moves.Move){flipped}, change...)...))
	}
	wasReady := func(w *World, m *moves.Move) {
		m.Stopped = spec.Token{}
		slotOf(w, m.ID).Identity.ReadyToken = spec.Token{Epoch: 1, Number: 1}
	}
	old := func(w *World) { at(lost)(w); proof.FindNode(w.Nodes, "n1").Facts.MovesBack = false }
	copyGone := func(w *World, m *moves.Move) {
		for i := range proof.FindNode(w.Nodes, "n2").Facts.MoveReports {
			proof.FindNode(w.Nodes, "n2").Facts.MoveReports[i].Error = "is not there"
		}
	}
	removed := func(w *World) {
		at(lost)(w)
		w.Nodes = slices.DeleteFunc(w.Nodes, func(n Node) bool { return n.Node.Name == "n2" })
	}
	otherNow := func(w *World, m *moves.Move) {
		v := *slotOf(w, m.ID).Volumes["data"]
		v.Fate = records.FateLost
		slotOf(w, m.ID).Volumes = map[spec.ClaimName]*records.Volume{"data": &v}
	}
	stray := func(w *World, m *moves.Move) { slotOf(w, m.ID).Strays = []NodeStray{{Node: "n2"}} }
	arrived := func(w *World) {
		wantsBack(moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveArrived, flipped, lost))(w)
	}
	const moved = "ordered 1 volumes n1 n2~ n3 0:moved@n1"
	check(t, []rule{
		{name: "when its target is lost", world: moved, change: at(lost), want: "back=0@n1+left | 0:Moving",
			says: "its volumes go back from node n2 to node n1 (node n2 was lost): it starts again when node n1 has its volumes back in use"},
		{name: "also when they had arrived there", world: moved, change: arrived, want: "back=0@n1+left | 0:Moving"},
		{name: "also when its machine was removed, which has nothing left then", world: moved, change: removed, want: "back=0@n1 | 0:Moving"},
		{name: "not by silence", world: moved, change: at(), want: "void-move=0 | 0:NodeSilent",
			says: "node n2 is unreachable, and may have its volumes in use; if it is off for good: stead node fence n2 --i-have-powered-off"},
		{name: "not while the target is there", world: "ordered 1 volumes n1 n2 0:moved@n1", change: at(), want: "void-move=0 | 0:Moving",
			says: "node n2 is there, and has its volumes; to have it back: stead move db-0 --to n1, once it is ready there"},
		{name: "nor when its copy is not there, which may be a disk that is not mounted", world: "ordered 1 volumes n1 n2 0:moved@n1", change: at(copyGone), want: "void-move=0 | 0:Moving",
			says: "node n2 is there, and says of its copy: is not there; mend that, or, if the copy is lost for good, power the node off, 'stead node fence n2 --i-have-powered-off', and ask again"},
		{name: "whatever was said of it before", world: "ordered 1 volumes n1 n2 0:moved@n1", change: at(lost), want: "void-move=0 | 0:Moving"},
		{name: "not when it was ready there", world: "ordered 1 volumes n1 n2~ n3 0:over@n2", change: at(lost, wasReady), want: "void-move=0 | 0:NodeSilent",
			says: "it was ready on node n2, so what it wrote there counts, and the copy on node n1 does not; bring node n2 back"},
		{name: "not while its life may run", world: "ordered 1 volumes n1 n2~ n3 0:running@n2", change: at(lost), want: "void-move=0 | 0:NodeSilent"},
		{name: "not beside a life that the store does not know", world: moved, change: at(lost, stray), want: "void-move=0 | 0:NodeSilent", says: "a node runs a life of it that the store does not know"},
		{name: "not without its source", world: "ordered 1 volumes n1~ n2~ n3 0:moved@n1", change: at(lost), want: "void-move=0 | 0:NodeSilent",
			says: "node n1, which has them sealed, is unreachable; start its agent"},
		{name: "not to an agent that does not know how", world: moved, change: old, want: "void-move=0 | 0:NodeSilent", says: "AgentTooOld: the agent of node n1 is too old to take volumes back; upgrade it"},
		{name: "not to one that does not have them sealed", world: moved, want: "void-move=0 | 0:NodeSilent", says: "node n1 does not say that it has them sealed",
			change: wantsBack(moving(0, moves.MoveFlipped, moves.MoveFailed, moves.MoveCopied, flipped, lost))},
		{name: "not when something else was decided of a volume", world: moved, change: at(lost, otherNow), want: "void-move=0 drop=0 | 0:NodeSilent", says: "something else was decided of one of its volumes"},
		{name: "not before it is flipped", world: "ordered 1 volumes n1 n2 0:moved@n1", change: wantsBack(moving(0, moves.MoveSealing, moves.MoveOffered, moves.MoveWarm, lost)), want: "void-move=0 | 0:Moving",
			says: "its volumes are those on node n1 still; to give the move up: stead move db-0 --abort"},
	})
}

// TestWhileAMoveGoesBack: nothing starts before the source has said that it may, and what arrived counts no more.
func TestWhileAMoveGoesBack(t *testing.T) {
	const moved = "ordered 1 volumes n1 n2 n3 0:moved@n1"
	gone := func(w *World, m *moves.Move) { slotOf(w, m.ID).Volumes = nil }
	check(t, []rule{
		{name: "the source is awaited", world: moved, change: moving(0, moves.MoveBack, moves.MoveSealed, ""), want: "| 0:Moving"},
		{name: "also one that is lost as well", world: "ordered 1 volumes n1~ n2 n3 0:moved@n1", change: moving(0, moves.MoveBack, moves.MoveSealed, ""), want: "| 0:NodeSilent", says: "node n1 is unreachable"},
		{name: "an unsealed volume alone is not enough", world: moved, change: moving(0, moves.MoveBack, moves.MoveUnsealed, ""), want: "| 0:Moving"},
		{name: "then it is over", world: moved, change: moving(0, moves.MoveBack, moves.MoveIsBack, ""), want: "end=0 | 0:Moving"},
		{name: "not when it says that it has not the volume", world: moved, change: moving(0, moves.MoveBack, moves.MoveIsBack, "", lacks("data")), want: "| 0:Moving",
			says: "node n1 does not have data-db-0 any more; the copy on node n2 is kept, and to continue with it: stead move db-0 --to n2"},
		{name: "nor when its disk is away", world: moved, change: moving(0, moves.MoveBack, moves.MoveIsBack, "", saysOfBack("the disk is away")), want: "| 0:Moving", says: "node n1 says: the disk is away"},
		{name: "nor by what it said before it was silent", world: "ordered 1 volumes n1~ n2 n3 0:moved@n1", change: moving(0, moves.MoveBack, moves.MoveIsBack, ""), want: "| 0:NodeSilent",
			says: "node n1 is unreachable; if it is lost for good: stead node fence n1 --i-have-powered-off, then, to continue with the copy on node n2: stead move db-0 --to n2"},
		{name: "what it lacks of another claim does not count", world: moved, change: moving(0, moves.MoveBack, moves.MoveIsBack, "", lacks("other")), want: "end=0 | 0:Moving"},
		{name: "also when its volumes are gone", world: moved, change: moving(0, moves.MoveBack, moves.MoveSealed, "", gone), want: "end=0 | 0:Moving"},
		{name: "the target is back with its copy", world: moved, change: moving(0, moves.MoveBack, moves.MoveSealed, moves.MoveArrived), want: "| 0:Moving"},
		{name: "also after a restore", world: moved, change: moving(0, moves.MoveBack, moves.MoveSealed, moves.MoveArrived, older), want: "| 0:Moving"},
		{name: "it cannot be aborted", world: moved, change: wantsMove(0, moves.MoveAbort, "", moving(0, moves.MoveBack, moves.MoveSealed, "")), want: "void-move=0 | 0:Moving"},
	})
	if MayStart(&moves.Move{Phase: moves.MoveBack}, "n1", nil, 1) {
		t.Error("a life may start while its move goes back")
	}
}

// TestAStoreFromBeforeAMoveWentBack: what the source says decides; what arrived at the target does not.
func TestAStoreFromBeforeAMoveWentBack(t *testing.T) {
	const moved = "ordered 1 volumes n1 n2 n3 0:moved@n1"
	stray := func(w *World, m *moves.Move) { slotOf(w, m.ID).Strays = []NodeStray{{Node: "n1"}} }
	check(t, []rule{
		{name: "flipped, and the target has them", world: moved, change: moving(0, moves.MoveFlipped, moves.MoveIsBack, moves.MoveArrived, flipped, older), want: "back=0@n1+left | 0:Moving"},
		{name: "the target is silent", world: "ordered 1 volumes n1 n2~ n3 0:moved@n1", change: moving(0, moves.MoveFlipped, moves.MoveIsBack, moves.MoveArrived, flipped, older), want: "back=0@n1+left | 0:Moving"},
		{name: "a life there ends first", world: "ordered 1 volumes n1 n2 n3 0:running@n2", change: moving(0, moves.MoveFlipped, moves.MoveIsBack, moves.MoveArrived, flipped, older), want: "stop=0/Move | 0:Stopping"},
		{name: "and one that is ready", world: "ordered 1 volumes n1 n2 n3 0:ready@n2", change: moving(0, moves.MoveFlipped, moves.MoveIsBack, moves.MoveArrived, flipped, older), want: "stop=0/Move | 0:Stopping"},
		{name: "one that the store does not know, too", world: moved, change: moving(0, moves.MoveFlipped, moves.MoveIsBack, moves.MoveArrived, flipped, older, stray), want: "| 0:Moving"},
		{name: "sealing", world: moved, change: moving(0, moves.MoveSealing, moves.MoveIsBack, moves.MoveArrived, older), want: "back=0@n1+left | 0:Moving"},
		{name: "all is copied", world: moved, change: moving(0, moves.MoveSealing, moves.MoveIsBack, moves.MoveCopied, older, summed("s1")), want: "back=0@n1+left | 0:Moving"},
		{name: "copying, and the member runs", world: "ordered 1 volumes n1 n2 n3 0:ready@n1", change: moving(0, moves.MoveCopying, moves.MoveIsBack, moves.MoveArrived, older), want: "back=0@n1+left |"},
		{name: "aborting", world: moved, change: moving(0, moves.MoveAborting, moves.MoveIsBack, moves.MoveArrived, older), want: "back=0@n1+left | 0:Moving"},
	})
	w := world(t, moved)
	moving(0, moves.MoveSealing, moves.MoveIsBack, moves.MoveCopied, older, summed("s1"))(&w)
	if MayFlip(w.Slots[0].Move, w.Nodes, w.Epoch) {
		t.Error("a move that went back may be flipped")
	}
}

// TestAPreviewFollowsAMoveBack: to its end.
func TestAPreviewFollowsAMoveBack(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 n2~ n3 0:moved@n1")
	wantsBack(moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveCopied, flipped, lost))(&w)
	var words []string
	for _, step := range Preview(w).Steps {
		words = append(words, brief(Plan{Actions: []Action{step.Action}}))
		if back, is := step.Action.(BackMove); is {
			left := back.Left[0]
			if v := back.Volumes[0]; string(v.UID) != back.Move.Claims[0].Old || v.Node != "n1" || left.Node != "n2" || left.Volume != "copy" || left.State != records.VolumeLeft || left.Left.Duration < time.Hour {
				t.Errorf("it does %+v", back)
			}
		}
	}
	if got, want := strings.Join(words, " "), "back=0@n1+left | end=0 | start=0/Move@n1 |"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
