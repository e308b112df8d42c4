package engine

import (
	"fmt"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// of is a unit of so many guards and operations.
func of(action plan.Action, guards, ops int) decision {
	u := decision{action: action}
	for i := range guards {
		u.If = append(u.If, store.Seen(fmt.Sprintf("g/%d", i), 1))
	}
	for i := range ops {
		u.remove(fmt.Sprintf("o/%d", i))
	}
	return u
}

func TestStartsGoWithTheirRevisionAsFarAsTheyFit(t *testing.T) {
	const most = store.MaxOps / 2
	for _, c := range []struct {
		name string
		list []decision
		want int // starts
	}{
		{"alone", nil, 0},
		{"all fit", []decision{of(plan.Start{}, 10, 5), of(plan.Start{}, 10, 5)}, 2},
		{"as many guards as fit", []decision{of(plan.Start{}, most-1, 1)}, 1},
		{"more guards", []decision{of(plan.Start{}, most, 1)}, 0},
		{"as many writes as fit", []decision{of(plan.Start{}, 1, most-1)}, 1},
		{"more writes", []decision{of(plan.Start{}, 1, most)}, 0},
		{"one that fits follows one that does not", []decision{of(plan.Start{}, most, 1), of(plan.Start{}, 1, 1)}, 1},
		{"others go later", []decision{of(plan.Stop{}, 1, 1), of(plan.Start{}, 1, 1)}, 1},
	} {
		got := joinRevision(append([]decision{of(plan.AddRevision{}, 1, 1)}, c.list...))
		if len(got) != 1 || len(got[0].alsoStarts) != c.want || len(got[0].Then) > most || len(got[0].If) > most {
			t.Errorf("%s: %d units, the first with %d starts; want %d", c.name, len(got), len(got[0].alsoStarts), c.want)
		}
	}
}

func TestTheReportOfALifeGoesWithTheNext(t *testing.T) {
	d := newManualTerm(t)
	d.write(base(stage{report: records.PhaseStopped, without: []string{store.LeaderKey}})...)
	d.put(d.look())
	d.cache.Look(func(v cache.View) {
		m := v.Member(member(0))
		if rev := v.ModRev(store.ReportKey(member(0))); rev != 0 || m.Token == (spec.Token{Epoch: 1, Number: 1}) {
			t.Errorf("life %s with the report of revision %d; want the next life and none", m.Token, rev)
		}
	})
}

func TestASetGoesWithItsRevisionsOrAfterThem(t *testing.T) {
	for n, turns := range map[int]int{1: 1, maxRevisions: 1, maxRevisions + 1: 2} {
		d := newManualTerm(t)
		d.write(d.set("db", 1))
		for i := range n {
			hash := spec.RevisionHash(fmt.Sprint("h", i))
			d.write(store.Put(store.RevisionKey(db, hash), store.Encode(records.Revision{Ref: db, Hash: hash, Number: int64(i)})))
		}
		d.next = func(plan.World) plan.Plan { return plan.Plan{Actions: []plan.Action{plan.RemoveSet{}}} }
		for turn := range turns + 1 {
			d.cache.Look(func(v cache.View) {
				if set := v.Set(db); (set == nil) != (turn == turns) {
					t.Errorf("after %d turns the set with %d revisions is gone: %v; want %d turns", turn, n, set == nil, turns)
				}
				if left := len(v.World(db).Revisions); turn == turns && left > 0 {
					t.Errorf("%d revisions are left", left)
				}
			})
			if turn < turns {
				d.put(d.look())
			}
		}
	}
}
