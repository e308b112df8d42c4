package engine

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// jobOps are the records of a set whose first job is due, or, with a run, of member 0 in which it ran, and which says what came of it.
func (st *stage) jobOps() (ops []store.Op) {
	if st.jobs == nil {
		return nil
	}
	return append(ops, store.Put(store.JobsKey(db), store.Encode(st.jobs)), store.Put(store.BootstrappedKey("u1"), []byte("{}")),
		store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: "x", Epoch: 1, Hooks: true, Jobs: true})))
}

// withJob gives a set a job.
func withJob(set *records.Set) {
	set.Spec.Jobs = []spec.Job{{Name: "create", After: hooks.AfterBootstrapped, Container: "db", Exec: &spec.ExecAction{Command: []string{"create"}}}}
}

// jobRan is a record of a run of order 1.1 in member 0.
func jobRan() *hooks.Jobs {
	return &hooks.Jobs{Ref: db, Epoch: 1, Round: []int{0}, Run: &hooks.JobRun{
		Job: "create", ID: spec.Sequence{Epoch: 1, Rev: 1}, In: &spec.LifeID{ID: member(0), Token: spec.Token{Epoch: 1, Number: 1}},
	}}
}

// What has run outlives the set as long as a volume of it is kept, and goes with the last.
func TestWhatJobsHaveRunIsKeptWithTheData(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		c.set(3, volumes, parallel)
		c.until("bootstrapped", func(v cache.View) bool { return v.Bootstrapped("u1") })
		c.commit(store.Put(store.JobsKey(db), store.Encode(hooks.Jobs{Ref: db, Epoch: 1, Complete: true, Ordinals: []int{0, 1, 2}, Done: []string{"create"}})))
		c.remove()
		kept := func() (kept bool) {
			c.cache.Look(func(v cache.View) { kept = cache.JobsOf(v, db) != nil })
			return kept
		}
		if !kept() {
			t.Error("what has run went with the set, and its volumes are kept")
		}
		c.giveUp(0, 1, 2)
		c.until("forgotten", func(v cache.View) bool { return v.ModRev(store.WasBootstrappedKey(db)) == 0 })
		if kept() {
			t.Error("no volume is left, and what has run is kept")
		}
	})
}
