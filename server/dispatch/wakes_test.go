package dispatch

import (
	"context"
	"sync/atomic"
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
	const ms = time.Millisecond
	for n, want := range map[int]struct{ round, near, brief time.Duration }{
		0:      {10 * ms, 0, 100 * ms},
		1:      {10500 * time.Microsecond, 500 * time.Microsecond, 100 * ms},
		50:     {35 * ms, 25 * ms, 100 * ms},
		200:    {50 * ms, 100 * ms, 200 * ms},
		10_000: {50 * ms, 250 * ms, time.Second},
	} {
		if round, near, brief := intervalAfter(n), nearAfter(n), briefAfter(n); round != want.round || near != want.near || brief != want.brief {
			t.Errorf("of %d sessions: %s, %s, %s; want %+v", n, round, near, brief, want)
		}
	}
	ws := newWatchers()
	for _, node := range []spec.NodeName{"n1", "n1", "n2"} {
		_, stop := ws.add(node, false)
		defer stop()
	}
	one, none := ws.noteNear(map[spec.NodeName]bool{"n1": true}), ws.noteNear(map[spec.NodeName]bool{"n9": true})
	if woken, again, all := ws.wakeNear(), ws.wakeNear(), ws.wakeAll(); one != 2 || none != 0 || woken != 2 || again != 0 || all != 3 {
		t.Errorf("of one node %d and of one that has none %d; woken %d, then %d; of all %d", one, none, woken, again, all)
	}
}

// In a cluster of many hosts those of a set that changes again and again are woken for it four times a second, all once a second; but
// each tenth of a second whoever waits for a revision, or asked for the set.
func TestManySessionsAreWokenSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStill(t)
		r.begin()
		r.Record(store.StatusKey(refDB), records.SetStatus{ServiceName: "dbs"})
		p := newSnapshotPublisher(r.Cache, "d")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		defer func() { cancel(); <-done }()
		count := func(node spec.NodeName, sets map[spec.SetRef]bool, pong bool) *atomic.Int64 {
			w, stop := p.watchers.add(node, false)
			t.Cleanup(stop)
			p.watchers.ask(w, sets)
			w.pong.Store(pong)
			n := &atomic.Int64{}
			go func() {
				for {
					select {
					case <-ctx.Done():
						return
					case <-w.moved.C():
						n.Add(1)
					}
				}
			}()
			return n
		}
		near, far := count("n1", nil, false), count("n9", nil, false)
		asking, waiting := count("n9", map[spec.SetRef]bool{refDB: true}, false), count("n9", nil, true)
		for range 1000 {
			count("n1", nil, false)
		}
		go func() { defer close(done); p.run(ctx) }()
		synctest.Wait()
		time.Sleep(2 * time.Second) // what was loaded is sent
		all := []*atomic.Int64{near, far, asking, waiting}
		for _, n := range all {
			n.Store(0)
		}
		const changes = 100
		for i := range changes {
			r.live(1+i, int64(100+i), "n1", "uid1")
			time.Sleep(10 * time.Second / changes)
		}
		synctest.Wait()
		for i, most := range []int64{55, 11, 110, 110} {
			if got := all[i].Load(); got > most || got < most*3/4 {
				t.Errorf("session %d of a node that (0) has members of the set, (1) has none, (2) asked for it, (3) waits for a revision: woken %d times in ten seconds, want at most %d", i, got, most)
			}
		}
	})
}
