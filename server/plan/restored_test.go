package plan

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// heard gives the nodes facts of these epochs, in a store of epoch 2 that has this count.
func heard(count *records.Count, epochs ...int64) func(*World) {
	return func(w *World) {
		w.Epoch, w.Count = 2, count
		for i, epoch := range epochs {
			w.Nodes[i].Facts = &records.NodeFacts{Name: w.Nodes[i].Node.Name, Epoch: epoch}
		}
	}
}

func counted(done bool, nodes ...records.CountNode) *records.Count {
	return &records.Count{Epoch: 2, Nodes: nodes, By: "root", Done: done}
}

func remembered(name spec.NodeName) records.CountNode {
	return records.CountNode{Name: name, UID: spec.UID("uid-" + name), From: records.FromServer}
}

func TestAfterARestore(t *testing.T) {
	late := remembered("late")
	off := late
	off.Off = "root"
	check(t, []rule{
		{name: "nothing starts until every node has said what it runs", world: "parallel 2 n1 n2 n3~ 0:ready",
			change: heard(nil, 2, 2, 1), want: "| 1:Restored", says: "until node n3 has reported"},
		{name: "a node that never said anything is waited for, too", world: "ordered 2 n1 n2 0:ready",
			change: heard(nil, 2), want: "| 1:Restored"},
		{name: "then all goes on", world: "ordered 2 n1 n2 n3~ 0:ready", change: heard(nil, 2, 2, 2), want: "start=1/Create@n2 | 1:Starting"},
		{name: "no address is freed until then", world: "ordered 1 n1 n2 0:ready 1:stopped", change: heard(nil, 2, 1), want: "| 1:Restored"},
		{name: "and then they are", world: "ordered 1 n1 n2 0:ready 1:stopped", change: heard(nil, 2, 2), want: "forget=1+address |"},
		{name: "nobody is scaled away", world: "ordered 1 n1 n2 0:ready 1:ready", change: heard(nil, 2, 1), want: "| 1:Restored"},
		{name: "nor ended with its set", world: "ordered 1 deleting n1 n2 0:ready", change: heard(nil, 2, 1), want: "| 0:Restored"},
		{name: "nor updated", world: "ordered 2 current=h1 update=h2 n1 n2 0:ready 1:ready", change: heard(nil, 2, 1), want: "|"},
		{name: "nor replaced for being broken", world: "ordered 2 current=h1 update=h2 n1 n2 0:ready 1:missing", change: heard(nil, 2, 1), want: "| 1:ImageMissing"},
		{name: "Recreate takes nobody down", world: "ordered 2 Recreate current=h1 update=h2 n1 n2 0:ready 1:ready", change: heard(nil, 2, 1), want: "|"},

		{name: "a node that only a server remembers is waited for", world: "ordered 2 n1 n2 0:ready",
			change: heard(counted(false, late), 2, 2), want: "| 1:Restored", says: "until node late has reported"},
		{name: "also one that the store does not name in its count", world: "ordered 2 n1 n2 0:ready",
			change: heard(counted(false), 2, 1), want: "| 1:Restored", says: "until node n2 has reported"},
		{name: "one that is excused is not waited for, but the end of the count is", world: "ordered 2 n1 n2 0:ready",
			change: heard(counted(false, off), 2, 2), want: "| 1:Restored", says: "waiting until that is recorded"},
		{name: "a count that is done stays done", world: "ordered 2 n1 n2 0:ready",
			change: heard(counted(true, late), 2, 1), want: "start=1/Create@n2 | 1:Starting"},
		{name: "a volume out of range that is kept waits for nothing", world: "ordered 1 volumes n1 n2 0:ready 1:volume", change: heard(nil, 2, 1), want: "|"},
		{name: "what is seen is marked all the same", world: "ordered 1 current=h1? n1 n2 0:ready/h1?", change: heard(nil, 2, 1), want: "ready=0 |"},
		{name: "but not that of another restore", world: "ordered 2 n1 n2 0:ready",
			change: func(w *World) { heard(counted(true, late), 2, 2)(w); w.Epoch = 3 }, want: "| 1:Restored", says: "each of the nodes n1, n2 has"},
	})
}

func TestWhileTheStoreIsHeldNothingIsDecided(t *testing.T) {
	hold := func(w *World) { w.Hold = &records.Hold{Cause: "revision 9 is known", By: "server a"} }
	check(t, []rule{
		{name: "nobody starts", world: "ordered 2 n1 n2 0:ready", change: hold, want: "| 1:Held", says: "server a says that the store went back: revision 9 is known"},
		{name: "nobody stops", world: "ordered 1 n1 n2 0:ready 1:ready", change: hold, want: "| 1:Held"},
		{name: "no life is replaced that is over", world: "ordered 1 n1 n2 0:over", change: hold, want: "| 0:Held"},
		{name: "no volume goes", world: "ordered 1 volumes n1 0:ready 1:volume=Delete", change: hold, want: "| 1:Held"},
		{name: "nor that of a set that is gone", world: "gone volumes n1 0:volume=Delete", change: hold, want: "| 0:Held"},
		{name: "nothing is marked", world: "ordered 1 current=h1? n1 n2 0:ready/h1?", change: hold, want: "|"},
		{name: "what runs and is well is left alone", world: "ordered 2 current=h1 update=h2 n1 n2 0:ready 1:ready", change: hold, want: "|"},
	})
}

func TestAServerThatHasJustStartedDecidesNothing(t *testing.T) {
	wait := func(nodes ...spec.NodeName) func(*World) {
		return func(w *World) { w.Awaited, w.AwaitFor = nodes, 4*time.Second }
	}
	check(t, []rule{
		{name: "nobody starts", world: "ordered 2 n1 n2 0:ready", change: wait("n2"), want: "| 1:WaitingForNodes",
			says: "until node n2 has connected, or 4s have passed"},
		{name: "nobody stops", world: "ordered 1 n1 n2 0:ready 1:ready", change: wait("n2"), want: "| 1:WaitingForNodes"},
		{name: "no volume goes", world: "ordered 1 volumes n1 0:ready 1:volume=Delete", change: wait("n1"), want: "| 1:WaitingForNodes"},
		{name: "of many the first are named", world: "ordered 1 n1", change: wait("n1", "n2", "n3", "n4", "n5", "n6", "n7"), want: "| 0:WaitingForNodes", says: "more has connected"},
		{name: "then all goes on", world: "ordered 2 n1 n2 0:ready", change: wait(), want: "start=1/Create@n2 | 1:Starting"},
	})
}

// TestWhatDecidesNothingWakesInTime: when the wait for nodes is over, or when a deadline
// passes that is told meanwhile.
func TestWhatDecidesNothingWakesInTime(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*World)
		want   time.Duration
	}{
		"a server that waits for nodes": {func(w *World) { w.Awaited, w.AwaitFor = []spec.NodeName{"n3"}, 4*time.Second }, 4 * time.Second},
		"a store that is held":          {func(w *World) { w.Hold = &records.Hold{Cause: "it went back", By: "a"} }, 32 * time.Second},
	} {
		w := world(t, "ordered 2 n1 n2 n3 0:ready 1:ready@n2 replace=60 silent=n2,30")
		c.change(&w)
		if got := Next(w).Wake; got != c.want {
			t.Errorf("%s: wakes after %s, want %s", name, got, c.want)
		}
	}
}
