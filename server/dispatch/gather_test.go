package dispatch

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// What nobody waits for is written with the next report, or after a while; mostly a newer one of
// the life is written in its place. Anything else is written at once.
func TestWhatNobodyWaitsForIsWrittenWithTheNext(t *testing.T) {
	say := func(seq int64, phase records.Phase, ready bool) records.Report {
		return records.Report{ID: ident(0), Token: token(10), Seq: seq, Phase: phase, Ready: ready}
	}
	ill := say(2, records.PhasePreparing, false)
	ill.Cause = "ImageMissing"
	other := say(1, records.PhaseRunning, true)
	other.ID = ident(1)
	for name, c := range map[string]struct {
		stop   bool             // the life is asked to end
		first  []records.Report // written before
		came   []records.Report // one after the other
		writes int64            // at once
		later  int64            // of these and what follows, after a while
	}{
		"on its way up":                    {came: []records.Report{say(1, records.PhasePreparing, false), say(2, records.PhaseStarting, false)}, later: 1},
		"ready before it was written":      {came: []records.Report{say(1, records.PhasePreparing, false), say(2, records.PhaseRunning, true)}, writes: 1, later: 1},
		"over before it was written":       {came: []records.Report{say(1, records.PhasePreparing, false), say(2, records.PhaseFailed, false)}, writes: 1, later: 1},
		"something is wrong":               {came: []records.Report{ill}, writes: 1, later: 1},
		"with another":                     {came: []records.Report{say(1, records.PhasePreparing, false), other}, writes: 1, later: 1},
		"not ready any more":               {first: []records.Report{say(1, records.PhaseRunning, true)}, came: []records.Report{say(2, records.PhaseRunning, false)}, writes: 1, later: 1},
		"on its way down, as it was asked": {stop: true, first: []records.Report{say(1, records.PhaseRunning, true)}, came: []records.Report{say(2, records.PhaseStopping, false)}, later: 1},
		"down and over before it was written": {stop: true, first: []records.Report{say(1, records.PhaseRunning, true)},
			came: []records.Report{say(2, records.PhaseStopping, false), say(3, records.PhaseStopped, false)}, writes: 1, later: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newStill(t)
				r.begin()
				r.live(1, 10, "n1", "uid1")
				if c.stop {
					m := testMember(0, 10, "n1", "uid1")
					m.Goal = records.GoalStop
					r.Record(store.MemberKey(ident(0)), m)
				}
				se := r.admit()
				for _, report := range c.first {
					r.server.reports.add(se, []records.Report{report}, 1)
					r.server.StoreReports(t.Context())
				}
				var writes atomic.Int64
				r.Store.Fail(func(call memstore.Call) memstore.Fault {
					if call.Method == "Commit" {
						writes.Add(1)
					}
					return memstore.Fault{}
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go r.server.reports.run(ctx)
				for _, report := range c.came {
					r.server.reports.add(se, []records.Report{report}, 1)
					time.Sleep(gatherTime / 10)
					synctest.Wait()
				}
				if writes.Load() != c.writes {
					t.Errorf("%d writes at once; want %d", writes.Load(), c.writes)
				}
				time.Sleep(gatherTime)
				synctest.Wait()
				last := c.came[len(c.came)-1]
				got, stored := r.report(last.ID.Ordinal)
				if writes.Load() != c.later || !stored || got.Seq != last.Seq || got.Phase != last.Phase {
					t.Errorf("%d writes after a while, want %d; stored is %+v", writes.Load(), c.later, got)
				}
				r.Store.Fail(nil)
			})
		})
	}
}

// What another session reported is stored anew at once, however little it says (SAFETY S15).
func TestWhatASessionSaysFirstOfALifeIsNotMinor(t *testing.T) {
	m := &records.Member{ID: ident(0), Token: token(10), Goal: records.GoalRun}
	r := records.Report{ID: ident(0), Token: token(10), Phase: records.PhaseStarting, Session: 2}
	last := r
	if !isMinor(r, m, nil) || !isMinor(r, m, &last) {
		t.Error("the first report of a life on its way up is not minor")
	}
	last.Session = 1
	if isMinor(r, m, &last) {
		t.Error("what a session says first of a life that another reported is minor")
	}
	last = r
	last.Cause = "ImageMissing"
	if isMinor(r, m, &last) {
		t.Error("that nothing is wrong any more is minor")
	}
}

// Of many reports that nothing was decided about the next ones are gathered while more are under way; a few wait for nothing.
func TestManyReportsAreGatheredForAFewWrites(t *testing.T) {
	for _, c := range []struct {
		reports    int
		took, want time.Duration
	}{
		{0, time.Second, 0}, {1, time.Millisecond, 0}, {manyReports - 1, time.Millisecond, 0},
		{manyReports, time.Millisecond, 4 * time.Millisecond}, {100, time.Second, 10 * time.Millisecond},
	} {
		if got := restAfter(c.reports, c.took); got != c.want {
			t.Errorf("after %d reports in %s: %s, want %s", c.reports, c.took, got, c.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := newStill(t)
		r.begin()
		say := func(from, n int) (list []records.Report) {
			for i := from; i < from+n; i++ {
				list = append(list, records.Report{ID: ident(i), Token: token(10), Seq: 1, Phase: records.PhaseRunning, Ready: true})
			}
			return list
		}
		for i := range 40 {
			r.live(i, 10, "n1", "uid1")
		}
		se := r.admit()
		var writes atomic.Int64
		r.Store.Fail(func(call memstore.Call) memstore.Fault {
			if call.Method == "Commit" {
				writes.Add(1)
				time.Sleep(time.Millisecond)
			}
			return memstore.Fault{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.server.reports.run(ctx)
		r.server.reports.add(se, say(0, manyReports), 1)
		for i := range 4 { // one each millisecond, while the first are written and rested of
			time.Sleep(time.Millisecond)
			r.server.reports.add(se, say(manyReports+i, 1), 1)
		}
		time.Sleep(10 * time.Millisecond)
		if writes.Load() != 2 {
			t.Errorf("%d writes, want one of many and one of all that came meanwhile", writes.Load())
		}
		r.server.reports.add(se, say(30, 1), 1)
		time.Sleep(2 * time.Millisecond)
		if writes.Load() != 3 {
			t.Errorf("%d writes, want that of one report at once", writes.Load())
		}
		r.Store.Fail(nil)
	})
}
