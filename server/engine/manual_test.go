package engine

import (
	"bytes"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// manualTerm is a term worked by hand, on a cache and with a clock that are moved by hand.
type manualTerm struct {
	*mirror
	l   *leader
	mem *setMemory // of the set db
	log bytes.Buffer
	// next decides, if given, in the place of plan.Next.
	next func(plan.World) plan.Plan
}

func newManualTerm(t testing.TB) *manualTerm { return newManualTermIn(t, "10.88.0.0/24") }

// newManualTermIn is newManualTerm with another range of members' addresses.
func newManualTermIn(t testing.TB, cidr string) *manualTerm {
	d := &manualTerm{mirror: newMirror(t)}
	e, err := New(Config{
		Store: d.cache.Writer(d.mirror.mem), Cache: d.cache, ID: "a", CIDR: netip.MustParsePrefix(cidr),
		Now: func() time.Time { return d.now }, Logger: slog.New(slog.NewTextHandler(&d.log, nil)),
		Next: func(w plan.World) plan.Plan {
			if d.next != nil {
				return d.next(w)
			}
			return plan.Next(w)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.write(store.Put(store.EpochKey, epochAt(1)), store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: "x", Epoch: 1, Guards: true, CPUMillis: 1000})))
	var term store.Leadership
	d.cache.Look(func(v cache.View) { term = v.Leader() })
	d.l = e.leader(term)
	d.mem = d.l.remembered(db)
	return d
}

// write is what another did, and the cache shows it.
func (d *manualTerm) write(ops ...store.Op) {
	d.t.Helper()
	d.commit(ops...)
	d.follow()
}

// set is the record of a set of that name with so many members.
func (d *manualTerm) set(name spec.SetName, replicas int) store.Op {
	n := int32(replicas)
	ref := spec.SetRef{Namespace: "default", Name: name}
	return store.Put(store.SetKey(ref), store.Encode(records.Set{
		Ref: ref, UID: spec.UID("uid-" + name), Generation: 1, InitialReplicas: replicas,
		Spec: spec.SetSpec{Replicas: &n, PodManagementPolicy: spec.OrderedReady},
	}))
}

// look decides about the set db.
func (d *manualTerm) look() (t evaluation) {
	d.cache.Look(func(v cache.View) { t = d.l.evaluate(v, db, d.mem, d.now) })
	return t
}

// put commits what was decided, and the cache shows it.
func (d *manualTerm) put(t evaluation) {
	d.t.Helper()
	d.l.commit(d.t.Context(), &t)
	d.follow()
}

// after lets time pass.
func (d *manualTerm) after(at time.Duration) { d.now = time.Unix(1000, 0).Add(at) }

// asked is an action that relies on nothing, and of which somebody waits for the end.
func asked() plan.Action { return plan.VoidRequest{ID: member(0), Claim: "data"} }

// marked is one for which nobody waits.
func marked() plan.Action {
	return plan.MarkReady{Identity: records.IdentityRecord{ID: member(0)}}
}
