package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
)

// onEtcd is a fresh embedded etcd that ends with the test.
func onEtcd(t testing.TB) store.Store {
	embedded, err := etcdembed.Start(t.Context(), etcdembed.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := etcdstore.New(etcdstore.Config{Client: embedded.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(); _ = embedded.Close() })
	if _, _, err := Init(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASetComesAndGoesOnRealEtcd(t *testing.T) {
	c, stop := newCluster(t, onEtcd(t))
	defer stop()
	_, stopEngine := c.engine("a", c.store)
	defer stopEngine()
	c.until("led", func(v cache.View) bool { return v.Leader().Value == "a" })
	c.set(3, volumes)
	c.until("ready", ready(3))
	c.set(1)
	c.until("scaled down", ready(1))
	c.set(1, deleting)
	c.until("removed", func(v cache.View) bool { set := v.Set(db); return set == nil })
}

// BenchmarkReady is the time from wanted to all ready, on embedded etcd with fsync
// and a node that needs no time, beside the floor: as many watched writes in a row.
func BenchmarkReady(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		for name, policy := range map[string]func(*records.Set){"ordered": func(*records.Set) {}, "parallel": parallel} {
			b.Run(fmt.Sprint(name, n), func(b *testing.B) {
				c, stop := newCluster(b, onEtcd(b))
				defer stop()
				_, stopEngine := c.engine("a", c.store)
				defer stopEngine()
				c.until("led", func(v cache.View) bool { return v.Leader().Value == "a" })
				floor := c.hop()
				for b.Loop() {
					begin, wanted := time.Now(), c.set(n, policy)
					c.until("ready", ready(n))
					took := time.Since(begin)
					c.cache.Look(func(v cache.View) {
						b.ReportMetric(float64(lastReady(v, n)-wanted)/float64(n), "revisions/member")
					})
					b.ReportMetric(float64(took)/float64(n)/float64(floor), "hops/member")
					b.ReportMetric(took.Seconds(), "s/set")
					b.StopTimer()
					c.set(0)
					c.until("gone", ready(0))
					b.StartTimer()
				}
			})
		}
	}
}

// hop is the mean time from a write to its sight in the cache.
func (c *cluster) hop() time.Duration {
	const hops = 100
	begin := time.Now()
	for range hops {
		if err := c.cache.Wait(c.t.Context(), c.commit(store.Put(store.ConfigKey("default", "hop"), []byte("{}")))); err != nil {
			c.t.Fatal(err)
		}
	}
	return time.Since(begin) / hops
}
