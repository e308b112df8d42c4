package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// TestEveryServerListensForSilence: from when a node or the leader went, and not from when
// somebody asks.
func TestEveryServerListensForSilence(t *testing.T) {
	for name, c := range map[string]struct{ before, then func(*cluster) }{
		"it was silent before": {func(c *cluster) { c.commit(store.Del(store.SessionKey("n1"))) }, func(*cluster) {}},
		"it falls silent":      {func(*cluster) {}, func(c *cluster) { c.commit(store.Del(store.SessionKey("n1"))) }},
		"another leads": {func(c *cluster) { c.commit(store.Del(store.SessionKey("n1"))) }, func(c *cluster) {
			c.commit(store.Put(store.LeaderKey, []byte("b")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(k *cluster) {
				c.before(k)
				l, _ := k.leads(k.store)
				if err := k.cache.Wait(k.t.Context(), k.commit(store.Del(store.LeaderKey))); err != nil {
					k.t.Fatal(err)
				}
				stop := k.run(func(ctx context.Context) error { l.followSilence(ctx); return nil })
				defer stop()
				time.Sleep(time.Minute)
				c.then(k)
				began := time.Now()
				if name == "it was silent before" {
					began = began.Add(-time.Minute)
				}
				time.Sleep(20 * time.Second)
				k.cache.Look(func(v cache.View) {
					if got := l.Nodes(v)[0].Gone; got != time.Since(began) {
						t.Errorf("it is silent for %s, want %s", got, time.Since(began))
					}
				})
			})
		})
	}
}
