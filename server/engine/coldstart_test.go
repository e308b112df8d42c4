package engine

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// coldEngine starts an engine that waits for nodes.
func (c *cluster) coldEngine() (e *Engine, stop func()) {
	cached := cache.New(c.store, slog.New(slog.DiscardHandler))
	e, err := New(Config{
		Store: c.store, Cache: cached, ID: "cold", LeaseTTL: 3 * time.Second, CIDR: netip.MustParsePrefix("10.88.0.0/16"), Now: clock(), Cold: 15 * time.Second,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	stopCache, stopEngine := c.run(cached.Run), c.run(e.Run)
	return e, func() { stopEngine(); stopCache() }
}

func TestALeaderThatHasJustStartedWaitsForTheNodes(t *testing.T) {
	silent := func(c *cluster) {
		c.commit(store.Put(store.NodeKey("n2"), store.Encode(records.Node{Name: "n2", UID: "u2"})),
			store.Put(store.FactsKey("n2"), store.Encode(records.NodeFacts{Name: "n2", UID: "u2", Epoch: 1})))
	}
	for name, c := range map[string]struct {
		before func(*cluster) // the engine starts
		after  func(*cluster)
		want   time.Duration // until the first life
	}{
		"all have said hello since":          {func(*cluster) {}, func(c *cluster) { time.Sleep(4 * time.Second); c.node.join() }, 4 * time.Second},
		"a session of before proves nothing": {func(*cluster) {}, func(*cluster) {}, 15 * time.Second},
		"one is silent":                      {silent, func(c *cluster) { c.node.join() }, 15 * time.Second},
		"there was none": {func(c *cluster) {
			c.commit(store.Del(store.NodeKey("n1")), store.Del(store.FactsKey("n1")), store.Del(store.SessionKey("n1")))
		}, func(c *cluster) { time.Sleep(time.Second); c.node.join() }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(cl *cluster) {
				c.before(cl)
				cl.set(1)
				began := time.Now()
				e, stop := cl.coldEngine()
				defer stop()
				if c.want > time.Second {
					cl.until("db-0 says that nodes are waited for", func(cache.View) bool {
						p, ok := e.Explain(db)
						return ok && len(p.Blocked) == 1 && p.Blocked[0].Reason == causes.BlockedAwaiting
					})
				}
				c.after(cl)
				cl.until("db-0 lives", func(v cache.View) bool { m := v.Member(member(0)); return m != nil })
				if took := time.Since(began); took < c.want || took > c.want+2*time.Second {
					cl.t.Errorf("it began after %v, want %v", took, c.want)
				}
				rev := cl.commit(store.Del(store.SessionKey("n1"))) // the wait is over, whatever comes
				if err := e.cfg.Cache.Wait(cl.t.Context(), rev); err != nil {
					cl.t.Fatal(err)
				}
				e.cfg.Cache.Look(func(v cache.View) {
					if nodes, _ := e.coldStart.missing(v, time.Now(), e.cfg.Cold); len(nodes) > 0 {
						cl.t.Errorf("after the wait it waits for %v", nodes)
					}
				})
			})
		})
	}
}

func TestASessionIsBelievedAfterAColdStartOnlyWhenItBeganSince(t *testing.T) {
	session := store.Put(store.SessionKey("n1"), store.Encode(records.Session{Node: "n1", UID: "x"}))
	look, write := addresses(t, store.Put(store.NodeKey("n1"), store.Encode(records.Node{Name: "n1", UID: "x"})), session)
	var c coldStart
	now := time.Now()
	awaited := func() (n int) {
		look(func(v cache.View) {
			nodes, _ := c.missing(v, now, time.Minute)
			n = len(nodes)
		})
		return n
	}
	look(func(v cache.View) { c.start(v, now) })
	if awaited() != 1 {
		t.Error("a session that was the store's last write before the start is believed")
	}
	write(session)
	if awaited() != 0 {
		t.Error("a session of since is not believed")
	}
}
