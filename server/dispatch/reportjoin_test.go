package dispatch

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// What the leader stored is answered and not stored again; what it did not is stored at once and
// answered after that.
func TestAReportThatTheLeaderDoesNotStoreIsStoredAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(n int) []store.Rev
		away   bool // the store, after the leader tried
		writes int  // by itself
	}{
		"it stored it":                        {answer: func(n int) []store.Rev { return slices.Repeat([]store.Rev{1}, n) }},
		"it did not":                          {answer: func(n int) []store.Rev { return make([]store.Rev, n) }, writes: 1},
		"nobody leads here":                   {answer: func(int) []store.Rev { return nil }, writes: 1},
		"it did not, and the store went away": {answer: func(n int) []store.Rev { return make([]store.Rev, n) }, away: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newStill(t)
			r.begin()
			se := r.admit()
			r.server.reports.offer = func(_ context.Context, reports []cache.JudgedReport) []store.Rev {
				if answered := se.answered(); len(answered) > 0 {
					t.Errorf("answered before it was stored: %v", answered)
				}
				return c.answer(len(reports))
			}
			writes := 0
			r.Store.Fail(func(call memstore.Call) (f memstore.Fault) {
				if call.Method == "Commit" && c.away {
					f.Err = store.ErrUnavailable
				} else if call.Method == "Commit" {
					writes++
				}
				return f
			})
			r.server.reports.add(se, []records.Report{running(10, 1)}, 1)
			r.server.StoreReports(t.Context())
			r.Store.Fail(nil)
			stale, answered := se.answered()[spec.LifeID{ID: ident(0), Token: token(10)}]
			if answered == c.away || stale || writes != c.writes {
				t.Errorf("answered: %v, as stale: %v, after %d writes; want %d", answered, stale, writes, c.writes)
			}
			if waits := len(r.server.reports.pending[se]) > 0; waits != c.away {
				t.Errorf("it waits: %v", waits)
			}
		})
	}
}

// SAFETY S7: with a report goes what it was judged by: the session as this one wrote it, the member, and the report
// before it. One that is stored meanwhile is judged again.
func TestAnOfferedReportNamesWhatItWasJudgedBy(t *testing.T) {
	r := newStill(t)
	r.begin()
	se := r.admit()
	r.Record(store.ReportKey(ident(0)), records.Report{ID: ident(0), Token: token(10), Phase: records.PhasePreparing})
	var got []store.Compare
	r.server.reports.offer = func(_ context.Context, reports []cache.JudgedReport) []store.Rev {
		if len(reports) != 1 || reports[0].Report.Session != se.id || reports[0].Report.Node != "n1" {
			t.Fatalf("offered %+v", reports)
		}
		got = reports[0].If
		return nil
	}
	var want []store.Compare
	r.Cache.Look(func(v cache.View) {
		want = []store.Compare{v.Seen(store.SessionKey("n1")), v.Seen(store.MemberKey(ident(0))), v.Seen(store.ReportKey(ident(0)))}
	})
	r.server.reports.add(se, []records.Report{running(10, 1)}, 1)
	r.server.StoreReports(t.Context())
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it was judged by %v; want %v", got, want)
	}
}

// Of what is on its way up to ready nothing follows: it is not offered.
func TestWhatNobodyWaitsForIsNotOffered(t *testing.T) {
	for phase, want := range map[records.Phase]bool{
		records.PhasePreparing: false, records.PhaseRunning: false, records.PhaseStopped: true, records.PhaseFailed: true,
	} {
		r := newStill(t)
		r.begin()
		se := r.admit()
		offered := false
		r.server.reports.offer = func(context.Context, []cache.JudgedReport) []store.Rev { offered = true; return nil }
		r.server.reports.add(se, []records.Report{{ID: ident(0), Token: token(10), Seq: 1, Phase: phase}}, 1)
		r.server.StoreReports(t.Context())
		if _, stored := r.report(0); offered != want || !stored {
			t.Errorf("%s: offered %v, want %v; stored %v", phase, offered, want, stored)
		}
	}
}
