package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// sums are those that a sealed source, or its copy, says.
func sums(sum string) []moves.MoveSum { return []moves.MoveSum{{Claim: "data", Sum: sum}} }

// movers has the agents of all nodes move volumes.
func movers(w *World) {
	say(w)
	for i := range w.Nodes {
		w.Nodes[i].Facts.UID, w.Nodes[i].Facts.Epoch, w.Nodes[i].Facts.Moves = w.Nodes[i].Node.UID, w.Epoch, true
		w.Nodes[i].Facts.MovesBack = true
	}
}

// moving is a move of a member from n1 to n2 in a phase, with what source and target say of it ("": nothing).
func moving(n int, phase moves.MovePhase, source, target moves.MoveState, change ...func(*World, *moves.Move)) func(*World) {
	return func(w *World) {
		movers(w)
		slot := slotOf(w, spec.Identity{Namespace: "default", Set: "db", Ordinal: n})
		m := &moves.Move{
			ID: slot.ID, Move: "m", Phase: phase, From: moves.MoveEnd{Node: "n1", UID: "uid-n1"}, To: moves.MoveEnd{Node: "n2", UID: "uid-n2"}, Epoch: 1,
			Claims: []moves.MoveClaim{{Claim: "data", Old: string(slot.Volumes["data"].UID), New: "copy", Number: 1, Class: spec.LocalClass, SizeBytes: 10}},
		}
		if phase != moves.MoveCopying {
			m.Stopped = slot.Identity.LastToken
		}
		slot.Move = m
		for role, state := range map[moves.MoveRole]moves.MoveState{moves.MoveSource: source, moves.MoveTarget: target} {
			if state == "" {
				continue
			}
			r := moves.MoveReport{ID: slot.ID, Move: "m", Role: role, State: state, Error: "the disk is full"}
			switch state {
			case moves.MoveSealed, moves.MoveCopied:
				r.Sums, r.Error = sums("s1"), ""
			case moves.MoveIsBack, moves.MoveUnsealed, moves.MoveDiscarded:
				r.Error = ""
			}
			f := proof.FindNode(w.Nodes, map[moves.MoveRole]spec.NodeName{moves.MoveSource: "n1", moves.MoveTarget: "n2"}[role]).Facts
			f.MoveReports = append(f.MoveReports, r)
		}
		for _, c := range change {
			c(w, m)
		}
	}
}

func summed(sum string) func(*World, *moves.Move) {
	return func(_ *World, m *moves.Move) { m.Sums = sums(sum) }
}

// flipped has the member's volume at the target.
func flipped(w *World, m *moves.Move) {
	slot := slotOf(w, m.ID)
	v := *slot.Volumes["data"]
	v.UID, v.Node = "copy", "n2"
	slot.Volumes = with(slot.Volumes, "data", &v)
}

// older: the store was restored since the move began.
func older(_ *World, m *moves.Move) { m.Epoch = 0 }

// wantsMove is a person's request.
func wantsMove(n int, verb moves.MoveVerb, to spec.NodeName, changes ...func(*World)) func(*World) {
	return func(w *World) {
		movers(w)
		for _, c := range changes {
			c(w)
		}
		slot := slotOf(w, spec.Identity{Namespace: "default", Set: "db", Ordinal: n})
		slot.MoveAsked = &moves.MoveRequest{ID: slot.ID, Verb: verb, Move: "m", To: moves.MoveEnd{Node: to, UID: spec.UID("uid-" + to)}}
	}
}

func TestAMoveBegins(t *testing.T) {
	tooOld := func(w *World) { proof.FindNode(w.Nodes, "n2").Facts.Moves = false }
	full := func(w *World) { proof.FindNode(w.Nodes, "n2").Moves = MostMoves }
	check(t, []rule{
		{name: "while the member runs", world: "ordered 1 volumes n1 n2 0:ready@n1", change: wantsMove(0, moves.MoveBegin, "n2"), want: "begin=0@n2 |"},
		{name: "while it does not run", world: "ordered 1 volumes n1 n2 0:loop@n1", change: wantsMove(0, moves.MoveBegin, "n2"), want: "begin=0@n2 | 0:CrashLoop"},
		{name: "not where it is", world: "ordered 1 volumes n1 n2 0:ready@n1", change: wantsMove(0, moves.MoveBegin, "n1"), want: "void-move=0 |", says: "its volumes are on node n1 already"},
		{name: "not without volumes", world: "ordered 1 n1 n2 0:ready@n1", change: wantsMove(0, moves.MoveBegin, "n2"), want: "void-move=0 |",
			says: "db-0 has no volume that is bound to a node, so that there is nothing to move; to have it start elsewhere: stead cordon its node, stead restart db-0, and stead uncordon the node"},
		{name: "not to a cordoned node", world: "ordered 1 volumes n1 n2! 0:ready@n1", change: wantsMove(0, moves.MoveBegin, "n2"), want: "void-move=0 |", says: "node n2 is cordoned"},
		{name: "not to a silent node", world: "ordered 1 volumes n1 n2~ 0:ready@n1", change: wantsMove(0, moves.MoveBegin, "n2"), want: "void-move=0 |", says: "node n2 is unreachable"},
		{name: "not to an agent that cannot", world: "ordered 1 volumes n1 n2 0:ready@n1", change: wantsMove(0, moves.MoveBegin, "n2", tooOld), want: "void-move=0 |",
			says: "AgentTooOld: the agent of node n2 is too old to move volumes; upgrade it"},
		{name: "not a surplus member", world: "ordered 1 volumes n1 n2 0:ready@n1 1:ready@n1", change: wantsMove(1, moves.MoveBegin, "n2"), want: "void-move=1 stop=1/ScaleDown | 1:Stopping"},
		{name: "not of an orphaned set", world: "ordered 1 volumes orphaned n1 n2 0:ready@n1", change: wantsMove(0, moves.MoveBegin, "n2"), want: "void-move=0 |"},
		{name: "not beside as many as a node does at a time", world: "ordered 1 volumes n1 n2 0:ready@n1", change: wantsMove(0, moves.MoveBegin, "n2", full), want: "| 0:WaitingForTurn",
			says: "its move to node n2 begins later: node n2 has a part in 4 moves, and at most 4 are done at a time"},
		{name: "not a volume that is to go", world: "ordered 1 volumes n1 n2 0:ready@n1=Lost", change: wantsMove(0, moves.MoveBegin, "n2"), want: "void-move=0 |"},
	})
}

func TestAMoveStopsItsMember(t *testing.T) {
	warm := moving(0, moves.MoveCopying, moves.MoveOffered, moves.MoveWarm)
	check(t, []rule{
		{name: "when little is missing", world: "ordered 1 volumes n1 n2 0:ready@n1", change: warm, want: "stop=0/Move | 0:Stopping"},
		{name: "not before", world: "ordered 1 volumes n1 n2 0:ready@n1", change: moving(0, moves.MoveCopying, moves.MoveOffered, moves.MoveCopyingNow), want: "|"},
		{name: "not while an end is silent", world: "ordered 1 volumes n1 n2~ 0:ready@n1", change: warm, want: "|"},
		{name: "the budget is shared", world: "parallel 2 volumes n1 n2 0:ready@n1 1:starting@n2", change: warm, want: "| 1:Starting 0:WaitingForTurn",
			says: "db-0: its volumes are nearly all on node n2, and it stops for the rest when db-1 is available; at most 1 may be down at a time"},
		{name: "the floor holds it", world: "parallel 2 floor=2 volumes n1 n2 0:ready@n1 1:ready@n2", change: warm, want: "| 0:DisruptionFloor"},
		{name: "a restart by hand shares it", world: "parallel 2 volumes n1 n2 0:ready@n1 1:ready@n2", change: func(w *World) { warm(w); asked(1)(w) }, want: "stop=1/Restart | 1:Stopping 0:WaitingForTurn"},
		{name: "an update does not stop beside it", world: "parallel 2 volumes n1 n2 update=h2 current=h1 0:ready@n1 1:ready@n2", change: warm, want: "stop=0/Move | 0:Stopping 1:WaitingForTurn"},
		{name: "an update goes on while it copies", world: "ordered 1 volumes n1 n2 update=h2 current=h1 0:ready@n1", change: moving(0, moves.MoveCopying, "", moves.MoveCopyingNow), want: "stop=0/Update | 0:Stopping"},
		{name: "one without a life is not started again", world: "ordered 1 volumes n1 n2 0:over@n1", change: warm, want: "move=0/Stopping | 0:Moving"},
		{name: "until then it is", world: "ordered 1 volumes n1 n2 0:over@n1", change: moving(0, moves.MoveCopying, "", moves.MoveCopyingNow), want: "start=0/Replace@n1 | 0:Starting"},
		{name: "one that ends for another reason ends first", world: "ordered 1 volumes n1 n2 0:turning@n1", change: warm, want: "| 0:Stopping"},
		{name: "while the rollout is paused", world: "ordered 1 paused volumes n1 n2 0:ready@n1", change: warm, want: "stop=0/Move | 0:Stopping"},
	})
}

func TestWhileAMemberIsDownByAMove(t *testing.T) {
	guarded := func(w *World) {
		moving(0, moves.MoveStopping, "", moves.MoveWarm)(w)
		guard(w, time.Second)
		proof.FindNode(w.Nodes, "n1").Gone = time.Hour
	}
	check(t, []rule{
		{name: "nothing starts, and its life is proven over", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveStopping, "", moves.MoveWarm), want: "move=0/Sealing | 0:Moving"},
		{name: "but not by time alone", world: "ordered 1 volumes n1~ n2 n3 0:stopping@n1", change: guarded, want: "| 0:NodeSilent",
			says: "waiting until it is proven that its life on node n1 is over; node n1 is unreachable"},
		{name: "it is awaited that it ends", world: "ordered 1 volumes n1 n2 0:stopping@n1", change: moving(0, moves.MoveStopping, "", moves.MoveWarm), want: "| 0:Stopping"},
		{name: "the source seals", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveOffered, moves.MoveWarm), want: "| 0:Moving",
			says: "it moves from node n1 to node n2 (Sealing): node n1 seals its volumes"},
		{name: "its sums are recorded", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveWarm), want: "move=0/Sealing | 0:Moving"},
		{name: "the target has the same", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveCopied, summed("s1")), want: "flip=0@n2 | 0:Moving",
			says: "it moves from node n1 to node n2 (Flipped): node n2 puts its volumes in their place"},
		{name: "not before it has", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveWarm, summed("s1")), want: "| 0:Moving",
			says: "node n2 copies the rest and compares"},
		{name: "also when the source is lost by then", world: "ordered 1 volumes n1~ n2 n3 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveCopied, summed("s1")), want: "flip=0@n2 | 0:Moving"},
		{name: "the target has something else", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveCopied, summed("s2")), want: "move=0/Aborting | 0:Moving",
			says: "the copy on node n2 is not what node n1 sealed"},
		{name: "a target that says so without sums of the source", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveOffered, moves.MoveCopied), want: "| 0:Moving"},
		{name: "nothing is flipped while a life nobody knows runs", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveCopied, summed("s1"), func(w *World, m *moves.Move) {
			slotOf(w, m.ID).Strays = []NodeStray{{Node: "n1", Stray: spec.LifeID{ID: m.ID, Token: spec.Token{Epoch: 1, Number: 9}}}}
		}), want: "| 0:Moving"},
		{name: "no second member goes down", world: "parallel 2 volumes n1 n2 update=h2 current=h1 0:moved@n1 1:ready@n2", change: moving(0, moves.MoveSealing, "", ""), want: "| 0:Moving 1:WaitingForTurn"},
		{name: "nothing starts before it has arrived", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveCopied, flipped), want: "| 0:Moving"},
		{name: "then it starts there", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveArrived, flipped), want: "start=0/Move@n2 | 0:Starting"},
		{name: "on the revision that it is due", world: "ordered 1 volumes n1 n2 update=h2 current=h1 0:turned@n1", change: moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveArrived, flipped), want: "start=0/Update@n2/h2 | 0:Starting"},
		{name: "a target that became silent is waited for", world: "ordered 1 volumes n1 n2~ n3 0:moved@n1", change: moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveCopied, flipped), want: "| 0:NodeSilent"},
	})
}

func TestAMoveEnds(t *testing.T) {
	token := func(w *World, m *moves.Move) { m.Stopped = spec.Token{Epoch: 1, Number: 1} }
	check(t, []rule{
		{name: "when the member is ready there", world: "ordered 1 volumes n1 n2 0:ready@n2", change: moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveArrived, flipped, token), want: "end=0+left |"},
		{name: "not before", world: "ordered 1 volumes n1 n2 0:running@n2", change: moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveArrived, flipped, token), want: "| 0:NotReady"},
		{name: "not by a session that is gone", world: "ordered 1 volumes n1 n2~ n3 0:ready@n2", change: moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveArrived, flipped, token), want: "| 0:NodeSilent"},
		{name: "or is wanted no more", world: "ordered 0 volumes n1 n2 0:volume@n1", change: moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveArrived, flipped), want: "end=0+left |"},
		{name: "or its set has the claim no more", world: "ordered 1 n1 n2 0:volume@n1", change: moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveArrived, flipped), want: "end=0+left | 0:Moving"},
		{name: "a set that is deleted waits for it", world: "ordered 1 deleting volumes n1 n2 0:volume@n1", change: moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveCopied, flipped), want: "|"},
		{name: "one whose source was removed leaves nothing there", world: "ordered 1 volumes n2 0:ready@n2", change: func(w *World) {
			moving(0, moves.MoveFlipped, "", moves.MoveArrived, flipped, token)(w)
		}, want: "end=0 |"},
	})
}

func TestAMoveIsAborted(t *testing.T) {
	withAsked := func(c func(*World)) func(*World) {
		return func(w *World) { c(w); wantsMove(0, moves.MoveAbort, "")(w) }
	}
	fate := func(w *World, m *moves.Move) {
		v := *slotOf(w, m.ID).Volumes["data"]
		v.Fate = records.FateLost
		slotOf(w, m.ID).Volumes = map[spec.ClaimName]*records.Volume{"data": &v}
	}
	made := func(w *World, m *moves.Move) {
		v := *slotOf(w, m.ID).Volumes["data"]
		v.Claim, v.UID = "log", "log-1"
		slotOf(w, m.ID).Volumes = with(slotOf(w, m.ID).Volumes, "log", &v)
	}
	check(t, []rule{
		{name: "by hand", world: "ordered 1 volumes n1 n2 0:ready@n1", change: withAsked(moving(0, moves.MoveCopying, "", "")), want: "move=0/Aborting |"},
		{name: "not by hand once it is flipped", world: "ordered 1 volumes n1 n2 0:moved@n1", change: withAsked(moving(0, moves.MoveFlipped, "", "", flipped)), want: "void-move=0 | 0:Moving",
			says: "its volumes are on node n2 already; to have it back: stead move db-0 --to n1, once it is ready there"},
		{name: "when the target fails", world: "ordered 1 volumes n1 n2 0:ready@n1", change: moving(0, moves.MoveCopying, "", moves.MoveFailed), want: "move=0/Aborting |", says: "node n2: the disk is full"},
		{name: "when the source fails", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveFailed, ""), want: "move=0/Aborting | 0:Moving"},
		{name: "when the target is silent while the member is down", world: "ordered 1 volumes n1 n2~ n3 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveWarm), want: "move=0/Aborting | 0:Moving"},
		{name: "not while it runs", world: "ordered 1 volumes n1 n2~ n3 0:ready@n1", change: moving(0, moves.MoveCopying, "", ""), want: "|"},
		{name: "nor when the source is silent", world: "ordered 1 volumes n1~ n2 n3 0:moved@n1", change: moving(0, moves.MoveSealing, "", moves.MoveWarm), want: "| 0:NodeSilent"},
		{name: "when the member leaves", world: "ordered 0 volumes n1 n2 0:ready@n1", change: moving(0, moves.MoveCopying, "", ""), want: "move=0/Aborting stop=0/ScaleToZero | 0:Stopping"},
		{name: "when its set is deleted", world: "ordered 1 deleting volumes n1 n2 0:ready@n1", change: moving(0, moves.MoveCopying, "", ""), want: "move=0/Aborting stop=0/Delete | 0:Stopping"},
		{name: "when its set is orphaned", world: "ordered 1 orphaned volumes n1 n2 0:ready@n1", change: moving(0, moves.MoveCopying, "", ""), want: "move=0/Aborting |"},
		{name: "when something else is decided of its volume", world: "ordered 1 volumes n1 n2 0:ready@n1", change: moving(0, moves.MoveCopying, "", "", fate), want: "move=0/Aborting |"},
		{name: "when its member got another volume meanwhile", world: "ordered 1 volumes n1 n2 0:ready@n1", change: moving(0, moves.MoveCopying, "", moves.MoveWarm, made), want: "move=0/Aborting |",
			says: "its volume of the claim log was made after the move began"},
		{name: "nothing starts before the source is unsealed", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveAborting, moves.MoveSealed, moves.MoveDiscarded), want: "| 0:Moving"},
		{name: "then it is over", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveAborting, moves.MoveUnsealed, ""), want: "end=0 | 0:Moving"},
		{name: "after a restore only when the target has nothing", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveAborting, moves.MoveUnsealed, "", older), want: "| 0:Moving",
			says: "waiting until node n2 has said that it does not have the volumes"},
		{name: "as it says", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveAborting, moves.MoveUnsealed, moves.MoveDiscarded, older), want: "end=0 | 0:Moving"},
		{name: "after a restore what arrived is flipped", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveArrived, older), want: "flip=0@n2 | 0:Moving"},
		{name: "after a restore the source has to say itself that it is sealed", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveOffered, moves.MoveCopied, summed("s1"), older), want: "| 0:Moving",
			says: "it moves from node n1 to node n2 (Sealing): node n1 seals its volumes"},
		{name: "as it was", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveCopied, summed("s1"), older), want: "flip=0@n2 | 0:Moving"},
		{name: "also of one that was not stopped in that store", world: "ordered 1 volumes n1 n2 0:running@n1", change: moving(0, moves.MoveCopying, moves.MoveSealed, moves.MoveArrived, older), want: "stop=0/Move | 0:Stopping"},
		{name: "or is not wanted any more", world: "ordered 0 volumes n1 n2 0:volume@n1", change: moving(0, moves.MoveCopying, moves.MoveFailed, moves.MoveArrived, older), want: "move=0/Stopping |"},
		{name: "for which a member that waits for what is sealed stops", world: "ordered 1 volumes n1 n2 0:running@n1", change: moving(0, moves.MoveAborting, moves.MoveSealed, moves.MoveArrived, older), want: "stop=0/Move | 0:Stopping"},
		{name: "but none of an orphaned set", world: "ordered 1 orphaned volumes n1 n2 0:running@n1", change: moving(0, moves.MoveAborting, moves.MoveSealed, moves.MoveArrived, older), want: "| 0:NotReady"},
		{name: "the volumes of which are what arrived, all the same", world: "ordered 1 orphaned volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveAborting, moves.MoveSealed, moves.MoveArrived, older), want: "flip=0@n2 | 0:Orphaned"},
		{name: "and of one that is being aborted", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveAborting, moves.MoveSealed, moves.MoveArrived, older), want: "flip=0@n2 | 0:Moving"},
		{name: "also when a policy gives its volume up", world: "ordered 0 volumes n1 n2 0:volume@n1=Delete", change: moving(0, moves.MoveSealing, moves.MoveFailed, moves.MoveArrived, older), want: "flip=0@n2 |"},
		{name: "in the same store that is no proof", world: "ordered 1 volumes n1 n2 0:moved@n1", change: moving(0, moves.MoveSealing, moves.MoveSealed, moves.MoveArrived), want: "move=0/Sealing | 0:Moving"},
		{name: "what was said before a restore does not count", world: "ordered 1 volumes n1 n2 0:moved@n1", change: func(w *World) {
			moving(0, moves.MoveFlipped, moves.MoveSealed, moves.MoveArrived, flipped)(w)
			proof.FindNode(w.Nodes, "n2").Facts.Epoch = 0
		}, want: "| 0:Moving"},
	})
}

func TestAVolumeThatMovesIsNotGivenUp(t *testing.T) {
	for name, move := range map[string]func(*World){
		"it is sealed": moving(0, moves.MoveSealing, moves.MoveSealed, ""), "it arrived before a restore": moving(0, moves.MoveAborting, "", moves.MoveArrived, older),
	} {
		t.Run(name, func(t *testing.T) { refusesToGiveUp(t, move) })
	}
}

func refusesToGiveUp(t *testing.T, move func(*World)) {
	w := world(t, "ordered 1 volumes n1 n2 0:moved@n1")
	move(&w)
	id := w.Slots[0].ID
	for _, verb := range []records.VolumeVerb{records.VerbLost, records.VerbReclaim} {
		q := records.VolumeRequest{ID: id, Claim: "data", Volume: w.Slots[0].Volumes["data"].UID, Verb: verb, Token: w.Slots[0].Identity.LastToken}
		if got, want := Refusal(w, q, nil), "it is being moved from node n1 to node n2; abort that first: stead move db-0 --abort"; got != want {
			t.Errorf("%s: %q; want %q", verb, got, want)
		}
	}
}

// TestADrainMovesMembers: with --move none of those that have volumes there stops to wait.
func TestADrainMovesMembers(t *testing.T) {
	drains := func(w *World) {
		movers(w)
		n := proof.FindNode(w.Nodes, "n1")
		record := *n.Node
		record.Cordon, record.Drain = true, &records.Drain{Move: true}
		n.Node = &record
	}
	rest := func(w *World) {
		drains(w)
		w.MoveRest = map[spec.Identity]MoveRest{w.Slots[0].ID: {time.Minute, "the disk is full"}}
	}
	check(t, []rule{
		{name: "all are copied, at most four at a time", world: "ordered 5 volumes n1 n2 n3 0:ready@n1 1:ready@n1 2:ready@n1 3:ready@n1 4:ready@n1", change: drains,
			want: "begin=4@n2 begin=3@n3 begin=2@n2 begin=1@n3 | 0:WaitingForTurn"},
		{name: "one without volumes stops, and starts elsewhere", world: "ordered 1 n1 n2 0:ready@n1", change: drains, want: "stop=0/Drain | 0:Stopping"},
		{name: "one that no node can take says so", world: "ordered 1 volumes n1 n2! 0:ready@n1", change: drains, want: "| 0:NoNode",
			says: "it stays on node n1, which is drained with --move: no node can take it: node n1 is drained; node n2 is cordoned"},
		{name: "one that does not run", world: "ordered 1 volumes n1 n2 0:over@n1", change: drains, want: "begin=0@n2 | 0:Cordoned"},
		{name: "one whose move was aborted rests", world: "ordered 1 volumes n1 n2 0:ready@n1", change: rest, want: "| 0:BackOff"},
	})
}

// TestAMemberThatMovesDoesNotMakeARolloutStall: copying the last of a large volume may take long.
func TestAMemberThatMovesDoesNotMakeARolloutStall(t *testing.T) {
	for phase, clock := range map[moves.MovePhase]bool{moves.MoveSealing: false, moves.MoveFlipped: false, moves.MoveCopying: true} {
		w := world(t, "ordered 2 volumes n1 n2 rollback update=h2 current=h1 0:moved@n1 1:ready@n2/h2")
		if phase == moves.MoveFlipped {
			moving(0, phase, "", "", flipped)(&w)
		} else {
			moving(0, phase, "", "")(&w)
		}
		w.Reached, w.Standstill = Next(w).Reached, 24*time.Hour
		if p := Next(w); p.Clock != clock {
			t.Errorf("%s: the clock runs: %v; want %v", phase, p.Clock, clock)
		}
	}
}

// TestAPreviewFollowsAMove: to its end.
func TestAPreviewFollowsAMove(t *testing.T) {
	w := world(t, "ordered 2 volumes n1 n2 0:ready@n1 1:ready@n1")
	wantsMove(1, moves.MoveBegin, "n2")(&w)
	f := Preview(w)
	var words []string
	for _, step := range f.Steps {
		words = append(words, brief(Plan{Actions: []Action{step.Action}}))
	}
	want := []string{"begin=1@n2 |", "stop=1/Move |", "move=1/Sealing |", "move=1/Sealing |", "flip=1@n2 |", "start=1/Move@n2 |", "end=1+left |"}
	if !slices.Equal(words, want) {
		t.Errorf("got %q\nwant %q", words, want)
	}
}
