package dispatch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// admit is a session of n1 whose answers nobody sends.
func (r *rig) admit() *session { return r.hand(n1).se }

// answered are the reports that were answered since, and whether as stale.
func (se *session) answered() map[spec.LifeID]bool {
	out := map[spec.LifeID]bool{}
	se.out.mu.Lock()
	defer se.out.mu.Unlock()
	for l, answer := range se.out.stored {
		out[l] = answer.GetStale()
	}
	clear(se.out.stored)
	return out
}

func TestOfTheReportsThatWaitTheNewestIsStoredAndTheEndOfALife(t *testing.T) {
	stopped := func(seq int64) records.Report {
		return records.Report{ID: ident(0), Token: token(10), Seq: seq, Phase: records.PhaseStopped}
	}
	for name, c := range map[string]struct {
		came []records.Report
		back *records.Report // was on its way to the store meanwhile, and was not taken
		want records.Report
	}{
		"the first":                            {[]records.Report{running(10, 0)}, nil, running(10, 0)},
		"a newer one":                          {[]records.Report{running(10, 1), running(10, 2)}, nil, running(10, 2)},
		"an older one that is late":            {[]records.Report{running(10, 2), running(10, 1)}, nil, running(10, 2)},
		"the end, whenever it was said":        {[]records.Report{running(10, 5), stopped(3)}, nil, stopped(3)},
		"one that the store did not take":      {nil, ptr(running(10, 1)), running(10, 1)},
		"a newer one than the store takes now": {[]records.Report{running(10, 2)}, ptr(running(10, 1)), running(10, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newStill(t)
			r.begin()
			se := r.admit()
			for _, report := range c.came {
				r.server.reports.add(se, []records.Report{report}, 1)
			}
			if c.back != nil {
				r.server.reports.requeue(pendingReport{se: se, report: *c.back})
			}
			r.server.StoreReports(t.Context())
			if got, ok := r.report(0); !ok || got.Seq != c.want.Seq || got.Phase != c.want.Phase {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestWhatWaitsOfASessionIsBounded(t *testing.T) {
	lives := func(n int) (out []records.Report) {
		for i := range n {
			out = append(out, records.Report{ID: ident(i), Token: token(1), Phase: records.PhaseStopped})
		}
		return out
	}
	large := lives(100)
	for i := range large {
		large[i].Message = strings.Repeat("m", 60<<10)
	}
	for name, c := range map[string]struct {
		within func(*rig, *session)
		over   func(*rig, *session)
	}{
		"so many lives": {
			func(r *rig, se *session) { r.server.reports.add(se, lives(maxPending), 1) },
			func(r *rig, se *session) { r.server.reports.add(se, lives(maxPending+1), 1) },
		},
		"so many bytes": {
			func(r *rig, se *session) { r.server.reports.add(se, nil, pendingBytes) },
			func(r *rig, se *session) { r.server.reports.add(se, nil, 1) },
		},
		"those count, too, that its node may not have written now": {
			func(r *rig, se *session) {
				r.server.writes.charge("n1", allowanceBytes+100*allowanceSecond)
				r.server.reports.add(se, large, 100*60<<10)
				r.server.StoreReports(r.t.Context())
			},
			func(r *rig, se *session) { r.server.reports.add(se, nil, pendingBytes-99*60<<10) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newStill(t)
			se := r.admit()
			c.within(r, se)
			if se.ctx.Err() != nil || r.server.Refusals()[LimitReports] != 0 {
				t.Fatalf("within the bound: %v", context.Cause(se.ctx))
			}
			c.over(r, se)
			if cause := context.Cause(se.ctx); status.Code(cause) != codes.ResourceExhausted || r.server.Refusals()[LimitReports] != 1 {
				t.Errorf("above the bound: %v, refusals %v", cause, r.server.Refusals())
			}
		})
	}
}

// What the store knows nothing of is answered, so that the node forgets it; not what it
// cannot read, for the answer would be the end of what may be the only proof.
func TestAReportOfAMemberThatCannotBeReadIsNotAnswered(t *testing.T) {
	r := newStill(t)
	r.Put(store.MemberKey(ident(1)), []byte("{damaged"))
	se := r.admit()
	reports := []records.Report{running(10, 1), running(10, 1)}
	reports[1].ID = ident(1)
	r.server.reports.add(se, reports, 1)
	r.server.StoreReports(t.Context())
	if got := se.answered(); len(got) != 1 || !got[spec.LifeID{ID: ident(0), Token: token(10)}] {
		t.Errorf("answered is %v; want db-0 as stale, and nothing of db-1", got)
	}
}

// A node that says that a life is over, and goes: it may be the only proof for long.
func TestWhatANodeSaidBeforeItWentIsStored(t *testing.T) {
	r := newStill(t)
	r.begin()
	se := r.admit()
	r.server.reports.add(se, []records.Report{running(10, 1)}, 1)
	se.cancel(nil)
	r.server.StoreReports(t.Context())
	if _, stored := r.report(0); !stored {
		t.Error("it is not stored")
	}
}

// While the store is held reports wait, but those of a session that is over do not: a hold
// ends with a restore, after which they could not be stored.
func TestWhileTheStoreIsHeldOnlyReportsOfLivingSessionsWait(t *testing.T) {
	for _, over := range []bool{false, true} {
		r := newStill(t)
		r.begin()
		se := r.admit()
		r.Record(store.HoldKey, records.Hold{Cause: "why", By: "server s2"})
		r.server.reports.add(se, []records.Report{running(10, 1)}, 1)
		if over {
			se.cancel(nil)
		}
		r.server.StoreReports(t.Context())
		if waits := len(r.server.reports.pending[se]) == 1; waits == over {
			t.Errorf("the session is over: %v, and its report waits: %v", over, waits)
		}
		if _, stored := r.report(0); stored {
			t.Error("the report was stored")
		}
	}
}

func TestWhatANodeMayNotHaveWrittenNowIsStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStill(t)
		r.begin()
		se := r.admit()
		r.server.writes.charge("n1", allowanceBytes+3*allowanceSecond)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.server.reports.run(ctx)
		r.server.reports.add(se, []records.Report{running(10, 1)}, 1)
		synctest.Wait()
		if _, stored := r.report(0); stored {
			t.Error("its node has had more written than it may, and it is stored at once")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if _, stored := r.report(0); !stored {
			t.Error("it is not stored later")
		}
		r.server.writes.charge("n1", allowanceBytes+3*allowanceSecond)
		se.cancel(nil)
		r.server.reports.add(se, []records.Report{running(10, 2)}, 1)
		synctest.Wait()
		if n := len(r.server.reports.pending); n > 0 {
			t.Errorf("reports of %d sessions wait; want none of one that is over", n)
		}
	})
}

// A store that is away is tried ever more seldom, at least every two seconds, which is said
// once each time that it goes.
func TestReportsAreTriedEverMoreSeldomWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStill(t)
		r.begin()
		se := r.admit()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.server.reports.run(ctx)
		for outage := 1; outage <= 2; outage++ {
			var tries []time.Duration
			begun := time.Now()
			r.Store.Fail(func(c memstore.Call) memstore.Fault {
				if c.Method != "Commit" {
					return memstore.Fault{}
				}
				tries = append(tries, time.Since(begun))
				return memstore.Fault{Err: store.ErrUnavailable}
			})
			report := running(10, int64(outage))
			report.Message = fmt.Sprint("outage ", outage)
			r.server.reports.add(se, []records.Report{report}, 1)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			r.Store.Fail(nil)
			time.Sleep(3 * time.Second)
			synctest.Wait()
			want := "[0s 50ms 150ms 350ms 750ms 1.55s 3.15s 5.15s 7.15s 9.15s]"
			if got := fmt.Sprint(tries); got != want {
				t.Errorf("outage %d: tried at %s; want %s", outage, got, want)
			}
			if got := strings.Count(r.logs.String(), "reports not stored"); got != outage {
				t.Errorf("outage %d: it was said %d times", outage, got)
			}
			if got, stored := r.report(0); !stored || got.Message != report.Message {
				t.Errorf("outage %d: afterwards is stored %+v", outage, got)
			}
		}
	})
}

// What becomes of a report whose transaction failed.
func TestAReportThatCouldNotBeWritten(t *testing.T) {
	commit := func(err error, times int) func(*rig, *session) func(memstore.Call) memstore.Fault {
		return func(*rig, *session) func(memstore.Call) memstore.Fault {
			return func(c memstore.Call) memstore.Fault {
				if c.Method == "Commit" && times > 0 {
					times--
					return memstore.Fault{Err: err}
				}
				return memstore.Fault{}
			}
		}
	}
	// then does something to the store at the first commit, which fails.
	then := func(change func(*rig, *session) store.Op) func(*rig, *session) func(memstore.Call) memstore.Fault {
		return func(r *rig, se *session) func(memstore.Call) memstore.Fault {
			return func(c memstore.Call) memstore.Fault {
				if c.Method != "Commit" {
					return memstore.Fault{}
				}
				r.Store.Fail(nil)
				if _, err := r.Store.Commit(t.Context(), store.Txn{Then: []store.Op{change(r, se)}}); err != nil {
					t.Error(err)
				}
				return memstore.Fault{Err: store.ErrUnknown}
			}
		}
	}
	for name, c := range map[string]struct {
		fail                 func(*rig, *session) func(memstore.Call) memstore.Fault
		stored, waits, ended bool
		log                  string
	}{
		"the store is away":                  {fail: commit(store.ErrUnavailable, 1), waits: true},
		"it is too large":                    {fail: commit(store.ErrTooLarge, 1), log: "report dropped"},
		"nobody knows whether it was":        {fail: commit(store.ErrUnknown, 1), stored: true},
		"... and the store goes away":        {fail: commit(store.ErrUnknown, 2), waits: true},
		"something else changed":             {fail: commit(store.ErrConflict, 1), stored: true},
		"... again and again":                {fail: commit(store.ErrConflict, attempts), stored: true},
		"... more often than it is tried":    {fail: commit(store.ErrConflict, attempts+1), waits: true},
		"the session is over":                {fail: then(func(*rig, *session) store.Op { return store.Del(store.SessionKey("n1")) }), ended: true},
		"the member's record cannot be read": {fail: then(func(*rig, *session) store.Op { return store.Put(store.MemberKey(ident(0)), []byte("{")) }), log: "report dropped"},
		"the report's record cannot be read": {fail: then(func(*rig, *session) store.Op { return store.Put(store.ReportKey(ident(0)), []byte("{")) }), stored: true},
		"another session has the node": {fail: then(func(_ *rig, se *session) store.Op {
			return store.Put(store.SessionKey("n1"), store.Encode(records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: se.id, Server: "s2"}))
		}), ended: true},
		"nobody can tell, for reads fail": {fail: func(*rig, *session) func(memstore.Call) memstore.Fault {
			return func(c memstore.Call) memstore.Fault {
				if c.Method == "Commit" || c.Method == "Get" {
					return memstore.Fault{Err: store.ErrUnknown}
				}
				return memstore.Fault{}
			}
		}, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newStill(t)
			r.begin()
			se := r.admit()
			r.Store.Fail(c.fail(r, se))
			r.server.reports.add(se, []records.Report{running(10, 1)}, 1)
			r.server.StoreReports(t.Context())
			r.Store.Fail(nil)
			answer, answered := se.answered()[spec.LifeID{ID: ident(0), Token: token(10)}]
			if answered != c.stored || answer {
				t.Errorf("answered: %v, as stale: %v; want %v, false", answered, answer, c.stored)
			}
			if kv, _ := r.Get(store.ReportKey(ident(0))); c.stored != strings.Contains(string(kv.Value), "Running") {
				t.Errorf("stored is %q", kv.Value)
			}
			if waits := len(r.server.reports.pending[se]) > 0; waits != c.waits {
				t.Errorf("it waits: %v, want %v", waits, c.waits)
			}
			if ended := status.Code(context.Cause(se.ctx)) == codes.Aborted; ended != c.ended {
				t.Errorf("the session ended: %v (%v), want %v", ended, context.Cause(se.ctx), c.ended)
			}
			if !strings.Contains(r.logs.String(), c.log) || c.log == "" && strings.Contains(r.logs.String(), "dropped") {
				t.Errorf("the log says %q, want %q", r.logs, c.log)
			}
		})
	}
}
