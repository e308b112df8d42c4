package box

import (
	"testing"
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// revisions is how many revisions of the store it took from the set's record to the
// last report that a member is ready.
func (c *cluster) revisions(set string) int64 {
	c.t.Helper()
	_, kvs, err := c.store.Snapshot(c.t.Context(), "")
	if err != nil {
		c.t.Fatal(err)
	}
	var from, to store.Rev
	for _, kv := range kvs {
		if kv.Key == store.SetKey(ref(spec.SetName(set))) {
			from = kv.Create
		}
		if at, ok := store.RefOfKey(kv.Key); ok && at == ref(spec.SetName(set)) && kv.Key[:len(store.KindReport)] == store.KindReport {
			to = max(to, kv.Mod)
		}
	}
	return int64(to - from)
}

// The way from wanted to ready costs a member two revisions in order, its start and
// its report, and a fraction of one in parallel (DESIGN 5 and 11). A slow machine may
// store a report before the one that says ready, so that these are bounds on a third
// write a member, and in parallel below the two that it would cost each alone; make bench
// tells the number.
func TestWhatAMemberCostsTheStore(t *testing.T) {
	t.Parallel()
	const members = 40
	for name, s := range map[string]struct {
		open func(*testing.T) store.Store
		most float64 // revisions a member
		set  shape
	}{
		"ordered, in memory":  {func(t *testing.T) store.Store { return inMemory(t) }, 2.5, shape{name: "db"}},
		"ordered, etcd":       {onEtcd, 2.5, shape{name: "db", volumes: true}},
		"parallel, in memory": {func(t *testing.T) store.Store { return inMemory(t) }, 1.5, shape{name: "db", parallel: true}},
		"parallel, etcd":      {onEtcd, 1.5, shape{name: "db", parallel: true, volumes: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCalmCluster(t, s.open(t), time.Minute, "a", "b")
			s.set.replicas = members
			c.apply(s.set)
			c.ready("db", members)
			got := float64(c.revisions("db")) / members
			t.Logf("%.2f revisions a member", got)
			if got > s.most || got <= 0 {
				t.Errorf("%.2f revisions a member, want at most %.1f", got, s.most)
			}
		})
	}
}
