package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// BenchmarkStep is one step of an ordered rolling update, in sets of several sizes: a report comes, is decided
// about, and is stored with what follows in one transaction, which the cache shows. All members are on one node; the store is in
// memory. It is to cost no more in a large set than in a small one.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRolling(b, n)
			for range 50 { // from here on it is as in the middle of an update
				r.step()
			}
			b.ReportAllocs()
			for b.Loop() {
				r.step()
			}
		})
	}
}

// rolling is an update of the set db that never ends, of members that do at once what is asked.
type rolling struct {
	*manualTerm
	n, next int // members, and the one whose report comes next
	updates int
	watch   store.Watch
}

// newRolling has n members ready, and an update begun.
func newRolling(b *testing.B, n int) *rolling {
	r := &rolling{manualTerm: newManualTermIn(b, "10.88.0.0/16"), n: n}
	w, err := r.mirror.mem.Watch(b.Context(), "", r.seen)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Close)
	r.watch = w
	r.write(r.record(spec.Parallel))
	for began := 0; began < n; {
		r.settle()
		var ops []store.Op
		r.cache.Look(func(v cache.View) {
			began = len(v.World(db).Slots)
			for _, slot := range v.World(db).Slots {
				if m := slot.Member; m != nil && slot.Report == nil && len(ops) < store.MaxOps {
					ops = append(ops, store.Put(store.ReportKey(m.ID), store.Encode(records.Report{
						ID: m.ID, Token: m.Token, Node: m.Node, Seq: 1, Phase: records.PhaseRunning, Ready: true, ReadyOnce: true,
					})))
				}
			}
		})
		if len(ops) > 0 {
			began = 0
			r.write(ops...)
		}
	}
	r.settle()
	r.begin()
	return r
}

// record is that of the set, with the template of the present update.
func (r *rolling) record(policy spec.ManagementPolicy) store.Op {
	n := int32(r.n)
	return store.Put(store.SetKey(db), store.Encode(records.Set{
		Ref: db, UID: "u1", Generation: int64(1 + r.updates), InitialReplicas: r.n,
		Spec: spec.SetSpec{Replicas: &n, PodManagementPolicy: policy, Template: spec.Template{Spec: spec.MemberSpec{
			Containers: []spec.Container{{Name: "c", Image: fmt.Sprint("i", r.updates)}},
		}}},
	}))
}

// begin begins another update.
func (r *rolling) begin() {
	r.updates++
	r.write(r.record(spec.OrderedReady))
	r.settle()
	r.next = r.n - 1
}

// settle has all decided and written that may be now, and what waits for some time.
func (r *rolling) settle() {
	for range 3 {
		r.l.reconcile(r.t.Context(), db)
		r.catchUp()
		r.now = r.now.Add(10 * time.Second)
	}
}

// write is what another did, and the cache shows it.
func (r *rolling) write(ops ...store.Op) {
	r.t.Helper()
	r.commit(ops...)
	r.catchUp()
}

// catchUp has the cache show what is stored, at the cost of what that is.
func (r *rolling) catchUp() {
	r.t.Helper()
	end, _, err := r.mirror.mem.Get(r.t.Context())
	for err == nil && r.seen < end {
		var b store.Batch
		b, err = r.watch.Next(r.t.Context())
		if err == nil {
			r.seen, err = b.Rev, r.cache.Apply(b)
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// step is the report of the member whose turn it is: that it stopped, or that its next life is ready.
func (r *rolling) step() {
	r.t.Helper()
	phase := records.PhaseRunning
	r.cache.Look(func(v cache.View) {
		m := v.Member(member(r.next))
		if m.Goal == records.GoalStop {
			phase = records.PhaseStopped
		}
	})
	r.now = r.now.Add(time.Millisecond)
	if r.next == 0 && phase == records.PhaseRunning { // nothing follows but that the update is complete
		r.write(store.Put(store.ReportKey(member(0)), store.Encode(r.says(0, phase).Report)))
		r.settle()
		r.begin()
		return
	}
	stored := r.l.join(r.t.Context(), []cache.JudgedReport{r.says(r.next, phase)})
	if len(stored) != 1 || stored[0] == 0 {
		r.t.Fatalf("the report of member %d was not stored with anything", r.next)
	}
	r.catchUp()
	if phase == records.PhaseRunning {
		r.next--
	}
}
