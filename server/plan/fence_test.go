package plan

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
)

// TestProofByDeadline: a guarded life on a node without a session is over after its bound
// and a margin, and only if all holds that the proof rests on (SAFETY S5, S6, S8).
func TestProofByDeadline(t *testing.T) {
	facts := func(change func(*records.NodeFacts)) func(*World) {
		return func(w *World) { change(proof.FindNode(w.Nodes, "n2").Facts) }
	}
	member := func(change func(*records.Member)) func(*World) {
		return func(w *World) { change(w.Slots[1].Member) }
	}
	const lost = "ordered 2 n1 n2 n3 0:ready 1:ready@n2 replace=60 silent=n2,62"
	check(t, []rule{
		{name: "over", world: lost, want: "start=1/Replace@n3 | 1:Starting", says: "token 1.11 was guarded and has ended by itself"},
		{name: "a moment before", world: "ordered 2 n1 n2 n3 0:ready 1:ready@n2 replace=60 silent=n2,61", want: "| 1:NodeSilent", says: "counts as over after 1m2s without contact"},
		{name: "the margin grows with the bound", world: "ordered 2 n1 n2 n3 0:ready 1:ready@n2 replace=3600 silent=n2,3636", want: "| 1:NodeSilent", says: "1h0m37s"},
		{name: "and is over then", world: "ordered 2 n1 n2 n3 0:ready 1:ready@n2 replace=3600 silent=n2,3637", want: "start=1/Replace@n3 | 1:Starting"},
		{name: "not guarded", world: "ordered 2 n1 n2 n3 0:ready 1:ready@n2 silent=n2,999999", want: "| 1:NodeSilent", says: "may still be running there"},
		{name: "not guarded, on a node that guards", world: lost, change: func(w *World) { w.Slots[1].Member.Bound, w.Slots[1].Report.Bound = 0, 0 },
			want: "| 1:NodeSilent", says: "may still be running there"},
		{name: "never reported", world: "ordered 2 n1 n2 n3 0:ready 1:assigned@n2 replace=60 silent=n2,62", want: "start=1/Replace@n3 | 1:Starting"},
		{name: "it was told to stop, and is not wanted", world: "ordered 1 n1 n2 n3 0:ready 1:stopping@n2 replace=60 silent=n2,62", want: "forget=1+address |", says: "has ended by itself"},
		{name: "the node has a session", world: lost, change: func(w *World) {
			proof.FindNode(w.Nodes, "n2").Session = &records.Session{Node: "n2", UID: "uid-n2", Boot: "boot1", ID: 5}
		}, want: "|"},
		{name: "another machine has its name", world: lost, change: func(w *World) { proof.FindNode(w.Nodes, "n2").Node.UID = "other" }, want: "| 1:NodeSilent", says: "may still be running there"},
		{name: "the session of another machine", world: lost, change: func(w *World) {
			proof.FindNode(w.Nodes, "n2").Session = &records.Session{Node: "n2", UID: "other"}
		}, want: "| 1:NodeSilent", says: "may still be running there"},
		{name: "the node is not known", world: lost, change: func(w *World) { w.Nodes = append(w.Nodes[:1:1], w.Nodes[2]) }, want: "| 1:NodeSilent", says: "may still be running there"},
		{name: "it did not say that it guards", world: lost, change: facts(func(f *records.NodeFacts) { f.Guards = false }), want: "| 1:NodeSilent", says: "did not report that it guards"},
		{name: "it guards with another bound", world: lost, change: func(w *World) { w.Slots[1].Report.Bound = time.Hour }, want: "| 1:NodeSilent", says: "did not report that it guards"},
		{name: "it reported without a guard", world: lost, change: func(w *World) { w.Slots[1].Report.Bound = 0 }, want: "| 1:NodeSilent", says: "did not report that it guards"},
		{name: "the node never said anything", world: lost, change: func(w *World) { proof.FindNode(w.Nodes, "n2").Facts = nil }, want: "| 1:NodeSilent", says: "restored"},
		{name: "facts of another machine", world: lost, change: facts(func(f *records.NodeFacts) { f.UID = "other" }), want: "| 1:NodeSilent", says: "restored"},
		{name: "facts of an older epoch", world: lost, change: facts(func(f *records.NodeFacts) { f.Epoch = 0 }), want: "| 1:NodeSilent", says: "restored"},
		{name: "a life of an older epoch", world: lost, change: member(func(m *records.Member) { m.Token.Epoch = 0 }), want: "| 1:NodeSilent", says: "restored"},
		{name: "half of the nodes are silent", world: "parallel 4 n1 n2 n3 n4 0:ready 1:ready@n2 2:ready@n3 3:ready@n4 replace=60 silent=n2,62 silent=n3,10",
			want: "start=1/Replace@n1 | 1:Starting 2:NodeSilent"},
		{name: "more than half of the nodes are silent", world: "parallel 3 n1 n2 n3 0:ready 1:ready@n2 2:ready@n3 replace=60 silent=n2,9999 silent=n3,1",
			want: "| 1:NodeSilent 2:NodeSilent", says: "stead node fence n2 --i-have-powered-off"},
	})
}

// TestAGuardedLifeStartsWhereItIsGuarded: and records its bound.
func TestAGuardedLifeStartsWhereItIsGuarded(t *testing.T) {
	unguarded := func(w *World) { proof.FindNode(w.Nodes, "n1").Facts.Guards = false }
	silentToo := func(w *World) { unguarded(w); proof.FindNode(w.Nodes, "n2").Session = nil }
	check(t, []rule{
		{name: "on the node that guards", world: "ordered 1 n1 n2 replace=60", change: unguarded, want: "start=0/Create@n2 | 0:Starting"},
		{name: "none does", world: "ordered 1 n1 replace=60", change: unguarded, want: "| 0:NoGuard", says: "node n1 does not guard lives, which nodeLoss Replace requires"},
		{name: "none that is there", world: "ordered 1 n1 n2 replace=60", change: silentToo, want: "| 0:NoGuard", says: "node n2 is unreachable"},
		{name: "a node that said nothing", world: "ordered 1 n1 replace=60", change: func(w *World) { w.Nodes[0].Facts = nil }, want: "| 0:NoGuard"},
		{name: "without a bound anywhere", world: "ordered 1 n1", want: "start=0/Create@n1 | 0:Starting"},
	})
	for line, want := range map[string]time.Duration{"ordered 1 n1": 0, "ordered 1 n1 replace=60": time.Minute} {
		if got := Next(world(t, line)).Actions[0].(Start).Member.Bound; got != want {
			t.Errorf("%s: a life with the bound %s was begun, want %s", line, got, want)
		}
	}
}

// TestADeadlineIsWaitedFor: the planner asks to be called again when it is over.
func TestADeadlineIsWaitedFor(t *testing.T) {
	w := world(t, "ordered 2 n1 n2 n3 0:ready 1:ready@n2 replace=60 silent=n2,22")
	p := Next(w)
	if p.Wake != 40*time.Second || p.Blocked[0].Left != 40*time.Second {
		t.Errorf("wakes after %s, left are %s; want 40s", p.Wake, p.Blocked[0].Left)
	}
	then := w
	then.Nodes = append([]Node(nil), w.Nodes...)
	proof.FindNode(then.Nodes, "n2").Gone += time.Second
	if now := Next(then); now.Blocked[0].Text != p.Blocked[0].Text || now.Wake != 39*time.Second {
		t.Errorf("got %+v, wake %s; want the same words, for they are stored, and 39s", now.Blocked[0], now.Wake)
	}
}

// TestWhoIsNotWaitedForByTimeLeavesTheWaitOfOthers: the planner is asked again for them.
func TestWhoIsNotWaitedForByTimeLeavesTheWaitOfOthers(t *testing.T) {
	w := world(t, "parallel 3 n1 n2 n3 n4 n5 0:ready 1:ready@n2 2:ready@n3 replace=60 silent=n2,22 silent=n3,22")
	w.Slots[2].Member.Bound = 0
	if p := Next(w); p.Wake != 40*time.Second || p.Blocked[1].Left != 0 {
		t.Errorf("wakes after %s, left are %s for who is not guarded; want 40s and nothing", p.Wake, p.Blocked[1].Left)
	}
}

// TestALifeThatIsOverByItsDeadlineHasLeft: before it is replaced, once, and what
// its node last said of it is not told again when that is back.
func TestALifeThatIsOverByItsDeadlineHasLeft(t *testing.T) {
	w := world(t, "ordered 2 n1 n2 n3 0:ready 1:ready@n2 replace=60")
	told := InitialHistory(w)
	DiffHistory(w, &told, nil)
	silence(&w, "n2", 61*time.Second)
	for _, c := range DiffHistory(w, &told, nil) {
		if c.Kind == records.ChangeLeft {
			t.Errorf("%+v is told though it may run", c)
		}
	}
	silence(&w, "n2", 62*time.Second)
	left := DiffHistory(w, &told, nil)
	if len(left) != 1 || left[0].Kind != records.ChangeLeft || left[0].Member != "db-1" || left[0].Token != "1.11" {
		t.Errorf("got %+v; want that db-1 left", left)
	}
	proof.FindNode(w.Nodes, "n2").Session = &records.Session{Node: "n2", UID: "uid-n2", Boot: "boot1"}
	if more := DiffHistory(w, &told, nil); len(more) > 0 {
		t.Errorf("got %+v after it left", more)
	}
}
