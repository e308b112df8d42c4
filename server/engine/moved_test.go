package engine

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// A set that was folded by what moved is folded as if all of it were read anew, whatever was written.
func TestAFoldThatMovedIsThatOfEverything(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d, random := newManualTerm(t), rand.New(rand.NewPCG(seed, 3))
			d.write(d.set("db", 30))
			moves, folded := 0, 0
			for step := range 300 {
				for range random.IntN(3) {
					d.write(anyMemberOp(d, random))
				}
				if random.IntN(5) == 0 {
					continue // what moved is gathered until the next look
				}
				d.cache.Look(func(v cache.View) {
					d.l.takeChanges(v)
					set := cache.OfSet(v, db)
					w := set.World()
					w.Reached.Newest = spec.Token{Epoch: 9} // whoever was up before
					if w.Set == nil || !plan.Foldable(w) {
						return
					}
					if !d.mem.members.moved.all && d.mem.members.fold.Fits(w) {
						moves++
					}
					got := d.mem.members.in(set, w)
					want := newFoldedMembers().in(set, w)
					if !reflect.DeepEqual(got.Slots, want.Slots) || !reflect.DeepEqual(plan.Next(got), plan.Next(want)) {
						t.Fatalf("step %d:\nmoved %+v of %v\nwhole %+v of %v", step, got.Folded, got.Slots, want.Folded, want.Slots)
					}
					folded += v.World(db).Set.Replicas() - len(got.Slots)
				})
			}
			if moves < 50 || folded < 100 {
				t.Errorf("%d times it moved, %d members were folded; too little happened", moves, folded)
			}
		})
	}
}

// anyMemberOp writes a record that says how a member is folded, or deletes it.
func anyMemberOp(d *manualTerm, r *rand.Rand) store.Op {
	id, node := member(r.IntN(30)), []spec.NodeName{"n1", "n2"}[r.IntN(2)]
	token := spec.Token{Epoch: 1, Number: 1 + r.Int64N(2)}
	put := func(key string, record any) store.Op { return store.Put(key, store.Encode(record)) }
	session := spec.SessionID(1 + r.IntN(10)/9)
	ops := []store.Op{
		put(store.SessionKey(node), records.Session{Node: node, UID: "x", Boot: "b", ID: session}),
		put(store.NodeKey(node), records.Node{Name: node, UID: "x"}),
		put(store.FactsKey(node), records.NodeFacts{Name: node, UID: "x", Epoch: 1, Strays: []spec.LifeID{{ID: id, Token: token}}}),
		put(store.FactsKey(node), records.NodeFacts{Name: node, UID: "x", Epoch: 1}),
		put(store.RequestKey(id), records.Request{ID: id, Token: token}),
		d.set("db", 25+r.IntN(6)),
	}
	for range 6 {
		ops = append(ops,
			put(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: token, ReadyOnce: "uid-db", ReadyToken: token, AvailableOn: "h"}),
			put(store.MemberKey(id), records.Member{ID: id, Token: token, Goal: records.GoalRun, Node: node, NodeUID: "x", Boot: "b", Revision: "h"}),
			put(store.ReportKey(id), records.Report{ID: id, Token: token, Node: node, Session: 1, Phase: records.PhaseRunning, Ready: true}))
	}
	op := ops[r.IntN(len(ops))]
	if set := store.SetKey(db); r.IntN(8) == 0 && op.Key != set {
		return store.Del(op.Key)
	}
	return op
}
