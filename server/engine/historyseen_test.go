package engine

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// What is recorded after comparing what moved is what would be after comparing everything (SAFETY S18),
// whatever was written, and whether or not it was recorded at once.
func TestAHistoryOfWhatMovedIsThatOfEverything(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d, random := newManualTerm(t), rand.New(rand.NewPCG(seed, 2))
			d.write(d.set("db", 3))
			recorded, skipped := 0, 0
			for step := range 300 {
				d.now = d.now.Add(time.Duration(random.IntN(2000)) * time.Millisecond)
				for range random.IntN(3) {
					d.write(anyHistoryOp(d, random))
				}
				var got, want decision
				var flags [4]bool
				d.cache.Look(func(v cache.View) {
					w := v.World(db)
					if w.Set == nil {
						return
					}
					w.Nodes = d.l.withSilence(v, w.Nodes, d.now)
					d.l.takeChanges(v)
					if only := d.mem.history.toCompare(w, true); only != nil && len(only) < len(w.Slots) {
						skipped++
					}
					got, flags[0], flags[1] = historyDecision(v, w, d.now, &d.mem.history)
					want, flags[2], flags[3] = historyDecision(v, w, d.now, new(newHistorySeen()))
				})
				if !reflect.DeepEqual(got, want) || flags[0] != flags[2] || flags[1] != flags[3] {
					t.Fatalf("seed %d, step %d: %v\n%s", seed, step, flags, cmp.Diff(words(want), words(got)))
				}
				if len(got.Then) > 0 && random.IntN(3) > 0 {
					recorded++
					d.commit(got.Then...)
					d.follow()
				}
			}
			if recorded < 30 || skipped < 30 {
				t.Errorf("%d times something was recorded, %d times not all was compared", recorded, skipped)
			}
		})
	}
}

// words are what d writes, as text.
func words(d decision) (out []string) {
	for _, op := range d.Then {
		out = append(out, op.Key+" "+string(op.Value))
	}
	return out
}

// anyHistoryOp writes a record that a history is made from, or deletes it.
func anyHistoryOp(d *manualTerm, r *rand.Rand) store.Op {
	id, node := member(r.IntN(5)), []spec.NodeName{"n1", "n2"}[r.IntN(2)]
	token := spec.Token{Epoch: 1, Number: 1 + r.Int64N(3)}
	put := func(key string, record any) store.Op { return store.Put(key, store.Encode(record)) }
	ops := []store.Op{
		put(store.SessionKey(node), records.Session{Node: node, UID: "x", Boot: "b"}),
		put(store.NodeKey(node), records.Node{Name: node, UID: "x"}),
		put(store.FactsKey(node), records.NodeFacts{Name: node, UID: "x", Epoch: 1, Guards: true}),
		put(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: token}),
		d.set("db", 1+r.IntN(4)),
	}
	for range 4 {
		ops = append(ops, put(store.MemberKey(id), records.Member{ID: id, Token: token, Goal: []records.Goal{records.GoalRun, records.GoalStop}[r.IntN(2)],
			Node: node, NodeUID: "x", Boot: "b", Bound: time.Duration(r.IntN(2)) * time.Second, Revision: "h", Reason: records.ReasonUpdate}),
			put(store.ReportKey(id), records.Report{ID: id, Token: token, Node: node, Phase: []records.Phase{records.PhaseRunning, records.PhaseStopped}[r.IntN(2)], Ready: r.IntN(2) == 0}))
	}
	if r.IntN(50) == 0 { // somebody took the history away
		return store.Del(store.HistoryBaseKey(db))
	}
	op := ops[r.IntN(len(ops))]
	if set := store.SetKey(db); r.IntN(6) == 0 && op.Key != set {
		return store.Del(op.Key)
	}
	return op
}
