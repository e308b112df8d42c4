package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// hops is how many floor hops are timed beside each measured set.
const hops = 50

// BenchmarkReady is from Apply until the last report that makes a member ready
// stands in the store. revisions/member counts every write of the store between
// the set's own and that report, whoever wrote it. hops/member is the time, API
// call included, in hops of that very store, timed just before and after.
func BenchmarkReady(b *testing.B) {
	for _, policy := range []string{"OrderedReady", "Parallel"} {
		for _, n := range []int{1, 3, 10, 100} {
			b.Run(fmt.Sprint(policy, "/", n), func(b *testing.B) {
				c := newCluster(b)
				c.wanted("warm", policy, 1)
				var took, floor time.Duration
				var revisions store.Rev
				b.ResetTimer()
				for b.Loop() {
					b.StopTimer()
					floor += c.hops() / 2
					b.StartTimer()
					t, r := c.wanted("measured", policy, n)
					b.StopTimer()
					took, revisions = took+t, revisions+r
					floor += c.hops() / 2
					c.remove("measured")
					b.StartTimer()
				}
				members := float64(n) * float64(b.N)
				hop := float64(floor) / hops / float64(b.N)
				b.ReportMetric(float64(revisions)/members, "revisions/member")
				b.ReportMetric(float64(took)/members/hop, "hops/member")
				b.ReportMetric(float64(took.Microseconds())/float64(b.N)/1000, "ms/set")
				b.ReportMetric(hop/1000, "µs/hop")
			})
		}
	}
}

// wanted applies a set and returns how long and how many revisions it took until
// all members were ready.
func (c *cluster) wanted(name, policy string, n int) (time.Duration, store.Rev) {
	c.b.Helper()
	w, end := c.watch()
	defer end()
	ref := spec.SetRef{Namespace: spec.DefaultNamespace, Name: spec.SetName(name)}
	began := time.Now()
	c.apply(name, policy, n)
	var wanted store.Rev
	ready := map[int]bool{}
	for {
		batch, err := w.Next(c.ctx)
		must(c.b, err)
		for _, ev := range batch.Events {
			if ev.Key == store.SetKey(ref) && wanted == 0 {
				wanted = ev.Mod
			}
			if kind, _ := store.Kind(ev.Key); kind != store.KindReport || ev.Delete {
				continue
			}
			r, err := store.Decode[records.Report](ev.KV)
			must(c.b, err)
			if r.ID.Ref() != ref || !r.Ready {
				continue
			}
			ready[r.ID.Ordinal] = true
			if len(ready) == n {
				return time.Since(began), ev.Mod - wanted
			}
		}
	}
}

// watch is all that happens in the store from now on.
func (c *cluster) watch() (store.Watch, context.CancelFunc) {
	c.b.Helper()
	rev, _, err := c.store.Get(c.ctx, store.EpochKey)
	must(c.b, err)
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	w, err := c.store.Watch(ctx, "", rev)
	must(c.b, err)
	return w, func() { w.Close(); cancel() }
}

// hops is the time of that many writes in a row, each synced to the disk and seen
// in a watch before the next one: the floor of anything that is done in order.
func (c *cluster) hops() time.Duration {
	c.b.Helper()
	w, end := c.watch()
	defer end()
	began := time.Now()
	for range hops {
		rev, err := c.store.Commit(c.ctx, store.Txn{Then: []store.Op{store.Put("bench/hop", make([]byte, 300))}})
		must(c.b, err)
		for seen := store.Rev(0); seen < rev; {
			batch, err := w.Next(c.ctx)
			must(c.b, err)
			seen = batch.Rev
		}
	}
	return time.Since(began)
}
