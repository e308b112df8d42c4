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

// answers has the source say this since it knows that its move is aborted.
func answers(absent ...spec.ClaimName) func(*World, *moves.Move) {
	return sourceReport(func(r *moves.MoveReport) { r.Key, r.Sums, r.Error, r.Absent = "", nil, "", absent })
}

// saidBefore has what the source says be of before the abort.
var saidBefore = sourceReport(func(r *moves.MoveReport) { r.Key = "k" })

func withFate(fate records.VolumeFate) func(*World, *moves.Move) {
	return func(w *World, m *moves.Move) {
		v := *slotOf(w, m.ID).Volumes["data"]
		v.Fate = fate
		slotOf(w, m.ID).Volumes = map[spec.ClaimName]*records.Volume{"data": &v}
	}
}

const aborting, abortingSilent = "ordered 1 volumes n1 n2 n3 0:moved@n1", "ordered 1 volumes n1~ n2 n3 0:moved@n1"

// TestACopyThatMayBeWholeIsKeptWhileItsMoveIsAborted: until the source has said that it has the volumes; and its seal is broken only then.
func TestACopyThatMayBeWholeIsKeptWhileItsMoveIsAborted(t *testing.T) {
	removed := func(w *World, _ *moves.Move) {
		w.Nodes = slices.DeleteFunc(w.Nodes, func(n Node) bool { return n.Node.Name == "n2" })
	}
	other := func(w *World, m *moves.Move) { m.Claims[0].Old = "other" }
	for _, c := range []struct {
		name, world    string
		source, target moves.MoveState
		change         []func(*World, *moves.Move)
		// told is what the target is told; unseals, ends: the source may break its seal, and the move is over.
		told          moves.MovePhase
		unseals, ends bool
	}{
		{"nothing is said yet", aborting, "", moves.MoveCopied, []func(*World, *moves.Move){summed("s1")}, moves.MoveSealing, false, false},
		{"what was said before the abort does not count", aborting, moves.MoveSealed, moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), saidBefore}, moves.MoveSealing, false, false},
		{"it has them, sealed", aborting, moves.MoveSealed, moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers()}, moves.MoveSealing, true, false},
		{"it has them, and they can be used", aborting, moves.MoveUnsealed, moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers()}, moves.MoveAborting, true, true},
		{"it has them not", aborting, moves.MoveUnsealed, moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers("data")}, moves.MoveSealing, false, false},
		{"nor had them before its seal was broken", aborting, moves.MoveSealed, moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers("data")}, moves.MoveSealing, false, false},
		{"its disk is away", aborting, moves.MoveUnsealed, moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), saysOfBack("the disk is away")}, moves.MoveSealing, false, false},
		{"it is silent", abortingSilent, moves.MoveUnsealed, moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers()}, moves.MoveSealing, false, false},
		{"what it lacks was said to be lost", aborting, moves.MoveUnsealed, moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers("data"), withFate(records.FateLost)}, moves.MoveAborting, true, true},
		{"what it lacks is of another claim", aborting, moves.MoveUnsealed, moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers("log")}, moves.MoveAborting, true, true},
		{"the old volumes are the member's no more", aborting, moves.MoveUnsealed, moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers("data"), other}, moves.MoveAborting, true, true},
		{"no copy can be whole before the sums are known", aborting, moves.MoveOffered, moves.MoveWarm, []func(*World, *moves.Move){answers("data")}, moves.MoveAborting, true, false},
		{"the target has discarded it", aborting, moves.MoveUnsealed, moves.MoveDiscarded, []func(*World, *moves.Move){summed("s1"), answers("data")}, moves.MoveAborting, true, true},
		{"the target was removed", aborting, moves.MoveUnsealed, "", []func(*World, *moves.Move){summed("s1"), answers("data"), removed}, moves.MoveAborting, true, true},
		{"after a restore nothing is said yet", aborting, "", moves.MoveCopied, []func(*World, *moves.Move){older}, moves.MoveSealing, false, false},
		{"after a restore neither has said anything", aborting, moves.MoveSealed, "", []func(*World, *moves.Move){older, saidBefore}, moves.MoveSealing, false, false},
		{"after a restore the target says that it is not whole", aborting, moves.MoveSealed, moves.MoveWarm, []func(*World, *moves.Move){older, answers("data")}, moves.MoveAborting, false, false},
		{"but it may be by sums that are known", aborting, moves.MoveSealed, moves.MoveWarm, []func(*World, *moves.Move){older, summed("s1"), answers("data")}, moves.MoveSealing, false, false},
		{"after a restore it has them not", aborting, moves.MoveSealed, moves.MoveCopied, []func(*World, *moves.Move){older, answers("data")}, moves.MoveSealing, false, false},
		{"after a restore it has them: the target is asked first", aborting, moves.MoveSealed, moves.MoveCopied, []func(*World, *moves.Move){older, answers()}, moves.MoveAborting, false, false},
		{"then the seal is broken", aborting, moves.MoveSealed, moves.MoveDiscarded, []func(*World, *moves.Move){older, answers()}, moves.MoveAborting, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world(t, c.world)
			moving(0, moves.MoveAborting, c.source, c.target, c.change...)(&w)
			slot := &w.Slots[0]
			told := MoveOrder(slot.Move, moves.MoveTarget, w.Nodes, w.Epoch, slot.volume)
			if told.Phase != c.told || told.Phase == moves.MoveSealing && (told.PeerKey != "" || told.PeerPort != 0 || !slices.Equal(told.Sums, slot.Move.Sums)) {
				t.Errorf("the target is told %+v, want %s", told, c.told)
			}
			if o := MoveOrder(slot.Move, moves.MoveSource, w.Nodes, w.Epoch, slot.volume); o.Phase != moves.MoveAborting || o.Unseal != c.unseals {
				t.Errorf("the source is told %s, unseal %v, want %v", o.Phase, o.Unseal, c.unseals)
			}
			if got := HasVolumes(slot.Move, w.Nodes, w.Epoch, slot.volume); got != c.ends {
				t.Errorf("the move may end: %v, want %v", got, c.ends)
			}
			if got := strings.HasPrefix(brief(Next(w)), "end=0"); got != c.ends {
				t.Errorf("it does %s, want an end: %v", brief(Next(w)), c.ends)
			}
		})
	}
}

// TestAMemberGoesOnWithTheCopyOfAMoveThatIsAborted: of one whose source cannot have the volumes any more, and whose copy is whole.
func TestAMemberGoesOnWithTheCopyOfAMoveThatIsAborted(t *testing.T) {
	at := func(source, target moves.MoveState, change ...func(*World, *moves.Move)) func(*World) {
		return wantsMove(0, moves.MoveBegin, "n2", moving(0, moves.MoveAborting, source, target, append([]func(*World, *moves.Move){summed("s1")}, change...)...))
	}
	unknownSums := func(_ *World, m *moves.Move) { m.Sums = nil }
	off := func(w *World, _ *moves.Move) { proof.FindNode(w.Nodes, "n1").Fenced = true }
	removed := func(w *World, _ *moves.Move) {
		w.Nodes = slices.DeleteFunc(w.Nodes, func(n Node) bool { return n.Node.Name == "n1" })
	}
	stray := func(w *World, m *moves.Move) { slotOf(w, m.ID).Strays = []NodeStray{{Node: "n1"}} }
	made := func(w *World, m *moves.Move) {
		v := *slotOf(w, m.ID).Volumes["data"]
		v.Claim, v.UID = "log", "log-1"
		slotOf(w, m.ID).Volumes = with(slotOf(w, m.ID).Volumes, "log", &v)
	}
	otherEpoch := func(w *World, _ *moves.Move) { proof.FindNode(w.Nodes, "n2").Facts.Epoch = 0 }
	slow := func(w *World) {
		at(moves.MoveSealed, moves.MoveCopied, answers("data"))(w)
		w.Slots[0].MoveAsked.BytesPerSecond = 1
	}
	check(t, []rule{
		{name: "whose node says that it has not the volume", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, answers("data")), want: "flip=0@n2 | 0:Moving"},
		{name: "also when its seal was broken", world: aborting, change: at(moves.MoveUnsealed, moves.MoveCopied, answers("data")), want: "flip=0@n2 | 0:Moving"},
		{name: "whose node is off, as a person says", world: abortingSilent, change: at(moves.MoveSealed, moves.MoveCopied, off), want: "flip=0@n2 | 0:Moving"},
		{name: "whose node was removed", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, removed), want: "flip=0@n2 | 0:Moving"},
		{name: "not by silence", world: abortingSilent, change: at(moves.MoveSealed, moves.MoveCopied, answers("data")), want: "void-move=0 | 0:NodeSilent",
			says: "nothing says that its volumes are lost on node n1; if that node is off for good: stead node fence n1 --i-have-powered-off"},
		{name: "not on a word from before the abort", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, answers("data"), saidBefore), want: "void-move=0 | 0:Moving"},
		{name: "not while its node has them", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, answers()), want: "void-move=0 | 0:Moving"},
		{name: "not when they can be used there", world: aborting, change: at(moves.MoveUnsealed, moves.MoveCopied, answers()), want: "end=0 | 0:Moving"},
		{name: "not with a copy that is not whole", world: aborting, change: at(moves.MoveSealed, moves.MoveWarm, answers("data"), offeredNothing), want: "void-move=0 | 0:Moving",
			says: "node n1 does not have data-db-0 any more, and the copy on node n2 is not whole; if the volume is lost: stead volume reclaim data-db-0 --lost"},
		{name: "not with one of which no sums are known", world: aborting, change: at(moves.MoveOffered, moves.MoveCopied, answers("data"), unknownSums), want: "void-move=0 | 0:Moving",
			says: "its move is being aborted, and the copy on node n2 is not whole; wait for that"},
		{name: "not with one that is another than what was sealed", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, answers("data"), summed("s2")), want: "void-move=0 | 0:Moving"},
		{name: "not when that was said in another epoch", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, answers("data"), otherEpoch), want: "void-move=0 | 0:Moving"},
		{name: "not while the target is silent", world: "ordered 1 volumes n1 n2~ n3 0:moved@n1", change: at(moves.MoveSealed, moves.MoveCopied, answers("data")), want: "void-move=0 | 0:Moving",
			says: "node n2, which may have the copy, is unreachable; start its agent"},
		{name: "not beside a life that the store does not know", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, answers("data"), stray), want: "void-move=0 | 0:Moving"},
		{name: "not when something else was decided of the volume", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, answers("data"), withFate(records.FateLost)), want: "void-move=0 | 0:Moving"},
		{name: "not when it has another volume that was not copied", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, answers("data"), made), want: "void-move=0 | 0:Moving"},
		{name: "not elsewhere", world: aborting, change: wantsMove(0, moves.MoveBegin, "n3", moving(0, moves.MoveAborting, moves.MoveSealed, moves.MoveCopied, summed("s1"), answers("data"))), want: "void-move=0 | 0:Moving",
			says: "its move to node n2 is being aborted; wait for that"},
		{name: "not at a rate", world: aborting, change: slow, want: "void-move=0 | 0:Moving", says: "a rate means nothing"},
		{name: "after a restore, when its node says so", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, older, answers("data")), want: "flip=0@n2 | 0:Moving"},
		{name: "also when the store does not know the sums", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, older, unknownSums, answers("data")), want: "flip=0@n2 | 0:Moving"},
		{name: "not when its node is off, where it may have run since", world: abortingSilent, change: at(moves.MoveSealed, moves.MoveCopied, older, off), want: "void-move=0 | 0:NodeSilent",
			says: "the store was restored since its move began, so that it may have run on node n1 after it was copied; start that node, or, if it is gone for good: stead node remove n1"},
		{name: "but when that was removed", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, older, removed), want: "flip=0@n2 | 0:Moving"},
	})
}

// TestWhyAnAbortWaitsIsSaid: and what a person can do.
func TestWhyAnAbortWaitsIsSaid(t *testing.T) {
	at := func(source, target moves.MoveState, change ...func(*World, *moves.Move)) func(*World) {
		return moving(0, moves.MoveAborting, source, target, append([]func(*World, *moves.Move){summed("s1")}, change...)...)
	}
	busy := func(w *World, _ *moves.Move) {
		for i := range proof.FindNode(w.Nodes, "n2").Facts.MoveReports {
			proof.FindNode(w.Nodes, "n2").Facts.MoveReports[i].Error = moves.NothingOffered
		}
	}
	lostToo := func(w *World, _ *moves.Move) { proof.FindNode(w.Nodes, "n2").Fenced = true }
	check(t, []rule{
		{name: "its source has not answered", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, saidBefore), want: "| 0:Moving",
			says: "waiting until node n1 says that it has its volumes; until then the copy on node n2 is kept"},
		{name: "its source is silent", world: abortingSilent, change: at(moves.MoveSealed, moves.MoveCopied), want: "| 0:NodeSilent",
			says: "node n1 is unreachable; if it is lost for good: stead node fence n1 --i-have-powered-off, then, to continue with the copy on node n2: stead move db-0 --to n2"},
		{name: "or that after a restore", world: abortingSilent, change: at(moves.MoveSealed, moves.MoveCopied, older), want: "| 0:NodeSilent",
			says: "node n1 is unreachable; if it is gone for good: stead node remove n1, then, to continue with the copy on node n2: stead move db-0 --to n2"},
		{name: "it has lost a volume", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, answers("data"), busy), want: "| 0:Moving",
			says: "node n1 does not have data-db-0 any more; the copy on node n2 is kept, and to continue with it: stead move db-0 --to n2"},
		{name: "both have", world: "ordered 1 volumes n1 n2~ n3 0:moved@n1", change: at(moves.MoveSealed, moves.MoveCopied, answers("data"), lostToo), want: "| 0:Moving",
			says: "if a copy may be whole on node n2, start that; if all is lost: stead volume reclaim data-db-0 --lost"},
		{name: "it can be used again", world: aborting, change: at(moves.MoveSealed, moves.MoveCopied, answers()), want: "| 0:Moving",
			says: "it starts again when node n1 has its volumes back in use"},
	})
	w := world(t, aborting)
	at(moves.MoveSealed, moves.MoveCopied, answers("data"), busy)(&w)
	if got := MoveText(w.Slots[0].Move, w.Nodes, w.Epoch); strings.Contains(got, "offers nothing") || !strings.Contains(got, "stead move db-0 --to n2") {
		t.Errorf("of the move is said %q", got)
	}
}

// offeredNothing: the target says that it waits for a source.
func offeredNothing(w *World, _ *moves.Move) {
	reports := proof.FindNode(w.Nodes, "n2").Facts.MoveReports
	for i := range reports {
		if reports[i].Role == moves.MoveTarget {
			reports[i].Error = moves.NothingOffered
		}
	}
}

// TestAVolumeIsNotSaidToBeLostWhileItsMoveIsAbortedAndItsCopyMayBeWhole: else the copy is discarded.
func TestAVolumeIsNotSaidToBeLostWhileItsMoveIsAbortedAndItsCopyMayBeWhole(t *testing.T) {
	for name, c := range map[string]struct {
		target moves.MoveState
		change []func(*World, *moves.Move)
		why    string
	}{
		"its copy is whole": {moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers("data")}, "to continue with that: stead move db-0 --to n2"},
		"nobody has said":   {"", []func(*World, *moves.Move){summed("s1"), answers("data")}, "to continue with that: stead move db-0 --to n2"},
		"its disk is away": {moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers("data"), func(w *World, _ *moves.Move) {
			proof.FindNode(w.Nodes, "n2").Facts.MoveReports[0].Error = "the disk is away"
		}}, "to continue with that: stead move db-0 --to n2"},
		"it may have become whole since it was said to be copied": {moves.MoveWarm, []func(*World, *moves.Move){summed("s1"), answers("data")}, "to continue with that: stead move db-0 --to n2"},
		"it is not whole, and nothing is offered to it any more":  {moves.MoveWarm, []func(*World, *moves.Move){summed("s1"), answers("data"), offeredNothing}, ""},
		"it was not sealed yet":                                   {moves.MoveWarm, []func(*World, *moves.Move){answers("data")}, ""},
		"the store was restored":                                  {moves.MoveCopied, []func(*World, *moves.Move){older, answers("data")}, "to continue with that: stead move db-0 --to n2"},
		"the target is off, says a person": {moves.MoveCopied, []func(*World, *moves.Move){summed("s1"), answers("data"), func(w *World, _ *moves.Move) {
			n := proof.FindNode(w.Nodes, "n2")
			n.Session, n.Fenced = nil, true
		}}, ""},
	} {
		w := world(t, aborting)
		moving(0, moves.MoveAborting, moves.MoveSealed, c.target, c.change...)(&w)
		slot := &w.Slots[0]
		q := records.VolumeRequest{ID: slot.ID, Claim: "data", Volume: slot.Volumes["data"].UID, Verb: records.VerbLost, Token: slot.Identity.LastToken}
		if got := Refusal(w, q, nil); c.why == "" && got != "" || !strings.Contains(got, c.why) {
			t.Errorf("%s: refused: %q, want %q", name, got, c.why)
		}
	}
}

// TestAMoveThatHasNothingLeftEnds: of one that was flipped, whose source has none of the old volumes.
func TestAMoveThatHasNothingLeftEnds(t *testing.T) {
	none := lacks("data")
	check(t, []rule{
		{name: "after it arrived", world: aborting, change: moving(0, moves.MoveFlipped, moves.MoveFailed, moves.MoveArrived, flipped, older, none), want: "end=0 | 0:Moving"},
		{name: "not before", world: aborting, change: moving(0, moves.MoveFlipped, moves.MoveFailed, moves.MoveCopied, flipped, older, none), want: "| 0:Moving"},
		{name: "not while its source has one", world: aborting, change: moving(0, moves.MoveFlipped, moves.MoveFailed, moves.MoveArrived, flipped, older), want: "start=0/Move@n2 | 0:Starting"},
		{name: "nor by what a silent one said", world: abortingSilent, change: moving(0, moves.MoveFlipped, moves.MoveFailed, moves.MoveArrived, flipped, none), want: "start=0/Move@n2 | 0:Starting"},
	})
}

// TestASourceThatFailsHoldsUpNoFlip: when its target has all of what it sealed; else the move is aborted.
func TestASourceThatFailsHoldsUpNoFlip(t *testing.T) {
	check(t, []rule{
		{name: "all is copied", world: aborting, change: moving(0, moves.MoveSealing, moves.MoveFailed, moves.MoveCopied, summed("s1")), want: "flip=0@n2 | 0:Moving"},
		{name: "something else is", world: aborting, change: moving(0, moves.MoveSealing, moves.MoveFailed, moves.MoveCopied, summed("s2")), want: "move=0/Aborting | 0:Moving"},
		{name: "not all is", world: aborting, change: moving(0, moves.MoveSealing, moves.MoveFailed, moves.MoveWarm, summed("s1")), want: "move=0/Aborting | 0:Moving"},
		{name: "after a restore nobody says that it is sealed", world: aborting, change: moving(0, moves.MoveSealing, moves.MoveFailed, moves.MoveCopied, summed("s1"), older), want: "move=0/Aborting | 0:Moving"},
	})
}

// TestACopyThatCannotBeLookedAtIsNotFlipped: its disk may be away, or dead; nor is the move aborted for that.
func TestACopyThatCannotBeLookedAtIsNotFlipped(t *testing.T) {
	away := func(w *World, _ *moves.Move) {
		for i := range proof.FindNode(w.Nodes, "n2").Facts.MoveReports {
			proof.FindNode(w.Nodes, "n2").Facts.MoveReports[i].Error = "the disk is away"
		}
	}
	check(t, []rule{
		{name: "as it was sealed", world: aborting, change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveCopied, summed("s1"), away), want: "| 0:Moving", says: "node n2 says: the disk is away"},
		{name: "with other sums", world: aborting, change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveCopied, summed("s2"), away, func(w *World, _ *moves.Move) {
			proof.FindNode(w.Nodes, "n1").Facts.MoveReports[0].Sums = nil
		}), want: "| 0:Moving"},
	})
}

// TestAfterARestoreNothingStartsWhereVolumesMayHaveLeft: a life there would make volumes beside those that are elsewhere.
func TestAfterARestoreNothingStartsWhereVolumesMayHaveLeft(t *testing.T) {
	const over = "ordered 1 volumes n1 n2 0:over@n1"
	check(t, []rule{
		{name: "its target has not said whether it has them", world: over, change: moving(0, moves.MoveCopying, "", "", older), want: "| 0:Moving",
			says: "the store was restored since it began: waiting until node n2 has said whether it has its volumes"},
		{name: "it has", world: over, change: moving(0, moves.MoveCopying, "", moves.MoveArrived, older), want: "move=0/Stopping | 0:Moving"},
		{name: "it has not", world: over, change: moving(0, moves.MoveCopying, "", moves.MoveCopyingNow, older), want: "start=0/Replace@n1 | 0:Starting"},
		{name: "it is silent, and the source says what it has", world: "ordered 1 volumes n1 n2~ n3 0:over@n1", change: moving(0, moves.MoveCopying, "", "", older), want: "start=0/Replace@n1 | 0:Starting"},
		{name: "without a restore nothing is awaited", world: over, change: moving(0, moves.MoveCopying, "", ""), want: "start=0/Replace@n1 | 0:Starting"},
	})
}
