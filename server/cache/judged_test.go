package cache

import (
	"log/slog"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// A view with reports laid over it shows each set as the cache does when they are stored, and
// revisions as before.
func TestAViewWithReportsIsTheViewAfterThem(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	s := memstore.New()
	defer s.Close()
	laid := 0
	for step := range 1500 {
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{randomOp(r)}}); err != nil {
			t.Fatal(err)
		}
		if step%5 != 0 {
			continue
		}
		rev, kvs, err := s.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		c := New(s, slog.New(slog.DiscardHandler))
		if err := c.Load(rev, kvs); err != nil {
			t.Fatal(err)
		}
		var reports []JudgedReport
		c.Look(func(v View) {
			for i := range 6 {
				id := spec.Identity{Namespace: "default", Set: refOf(i % 2).Name, Ordinal: i / 2}
				if m := v.Member(id); m != nil && r.IntN(2) == 0 {
					reports = append(reports, JudgedReport{
						Report: &records.Report{ID: id, Token: m.Token, Seq: int64(step), Phase: records.PhaseStopped},
						If:     []store.Compare{v.Seen(store.MemberKey(id)), v.Seen(store.ReportKey(id))},
					})
				}
			}
		})
		laid += len(reports)
		// worlds are those of all sets, without their revision.
		worlds := func(v View) (list []plan.World) {
			for i := range 2 {
				w := v.World(refOf(i))
				w.Rev = 0
				list = append(list, w)
			}
			return list
		}
		var before, got, want []plan.World
		c.Look(func(v View) {
			before = worlds(v)
			with := WithReports(v, reports)
			got = worlds(with)
			for i := range reports {
				if key := store.ReportKey(reports[i].Report.ID); with.Seen(key) != v.Seen(key) || !reports[i].Holds(v) || with.Report(reports[i].Report.ID) != reports[i].Report {
					t.Fatalf("step %d: of %s it says %v and %v", step, key, with.Seen(key), with.Report(reports[i].Report.ID))
				}
			}
			if again := worlds(v); !reflect.DeepEqual(before, again) {
				t.Fatalf("step %d: the view itself changed", step)
			}
		})
		b := store.Batch{Rev: rev + 1}
		for i := range reports {
			b.Events = append(b.Events, store.Event{KV: store.KV{Key: store.ReportKey(reports[i].Report.ID), Value: store.Encode(reports[i].Report), Mod: rev + 1, Create: rev + 1}})
		}
		if err := c.Apply(b); err != nil {
			t.Fatal(err)
		}
		c.Look(func(v View) {
			want = worlds(v)
			for i := range reports {
				if reports[i].Holds(v) {
					t.Fatalf("step %d: a report that was replaced is judged still", step)
				}
			}
		})
		if unreadable := len(want[0].Broken)+len(want[1].Broken) != len(before[0].Broken)+len(before[1].Broken); unreadable {
			continue // what could not be read was written over
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: with %d reports it shows\n%+v\nand after them\n%+v", step, len(reports), got, want)
		}
	}
	if laid < 100 {
		t.Errorf("%d reports were laid over views; the test shows little", laid)
	}
}
