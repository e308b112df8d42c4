package dispatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// A node hears at once of sets that it has a member of, and of all others a little later; without a
// change it is left alone.
func TestASessionWakesAtOnceForTheSetsOfItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStill(t)
		r.begin()
		r.Record(store.StatusKey(refDB), records.SetStatus{ServiceName: "dbs"})
		p := newSnapshotPublisher(r.Cache, "d")
		near, stop := p.watchers.add("n1", true)
		defer stop()
		far, stopFar := p.watchers.add("n9", true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.run(ctx) }()
		after := func(s *watcher) time.Duration { // until it is notified
			began := time.Now()
			select {
			case <-s.moved.C():
				return time.Since(began)
			case <-time.After(time.Minute):
				return time.Minute
			}
		}
		if a, b := after(near), after(far); a > 0 || b > 0 {
			t.Errorf("what was loaded: after %s and %s", a, b)
		}
		after(near) // of all that was gathered at first
		after(far)
		if took := after(near); took < time.Minute {
			t.Errorf("woken for nothing after %s", took)
		}
		r.live(1, 11, "n1", "uid1")
		if took := after(near); took > intervalAfter(2) {
			t.Errorf("its own set: after %s", took)
		}
		if took := after(far); took < farInterval/2 || took > farInterval+snapshotInterval {
			t.Errorf("another's set: after %s", took)
		}
		after(near)
		r.Record(store.ConfigKey("default", "conf"), records.ConfigRecord{Meta: records.Meta{Namespace: "default", Name: "conf"}})
		if took := after(near); took > farInterval+snapshotInterval { // for a pong may wait for it
			t.Errorf("anything else: after %s", took)
		}
		stopFar()
		if len(p.watchers.nodes) != 1 {
			t.Errorf("%d nodes are waited for", len(p.watchers.nodes))
		}
		cancel()
		<-done
	})
}

func TestWhatGoesToManyIsGatheredForLonger(t *testing.T) {
	for woken, want := range map[int]time.Duration{
		0: 10 * time.Millisecond, 1: 10500 * time.Microsecond, 50: 35 * time.Millisecond, 80: 50 * time.Millisecond, 10_000: 50 * time.Millisecond,
	} {
		if got := intervalAfter(woken); got != want {
			t.Errorf("after %d were woken the next round is after %s, want %s", woken, got, want)
		}
	}
	ws := newWatchers()
	for _, node := range []spec.NodeName{"n1", "n1", "n2"} {
		_, stop := ws.add(node, false)
		defer stop()
	}
	if all, one, none := ws.wakeAll(), ws.wakeNodes(map[spec.NodeName]bool{"n1": true}), ws.wakeNodes(map[spec.NodeName]bool{"n9": true}); all != 3 || one != 2 || none != 0 {
		t.Errorf("woken: %d of all, %d of one node, %d of one that has none", all, one, none)
	}
}
