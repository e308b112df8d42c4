package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// links are those of the store's chain, and the key's revision.
func (c *cluster) links() ([]records.Link, store.Rev) {
	c.t.Helper()
	_, kvs, err := c.store.Get(c.t.Context(), store.ContinuityKey)
	if err != nil {
		c.t.Fatal(err)
	}
	kv, ok := kvs[store.ContinuityKey]
	if !ok {
		return nil, 0
	}
	chain, err := store.Decode[records.Chain](kv)
	if err != nil {
		c.t.Fatal(err)
	}
	return chain.Links, kv.Mod
}

// leads begins a term that the test works by hand, with the cluster's cache; what it logs
// is returned, too.
func (c *cluster) leads(s store.Store) (*leader, *bytes.Buffer) {
	c.t.Helper()
	rev := c.commit(store.Put(store.LeaderKey, []byte("a")))
	var log bytes.Buffer
	e, err := New(Config{
		Store: s, Cache: c.cache, ID: "a", CIDR: netip.MustParsePrefix("10.88.0.0/24"),
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err == nil {
		err = c.cache.Wait(c.t.Context(), rev)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	l := e.leader(store.Leadership{Value: "a", Created: rev})
	l.startQuarantines()
	return l, &log
}

func TestATermStartsWithALinkBeforeAnythingElse(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.set(1)
		_, stop := c.engine("a", c.store)
		c.until("db-0 is ready", ready(1))
		_, kvs, err := c.store.Get(c.t.Context(), store.LeaderKey, store.MemberKey(member(0)))
		if err != nil {
			c.t.Fatal(err)
		}
		links, mod := c.links()
		if begun := kvs[store.MemberKey(member(0))].Create; len(links) != 1 || links[0].Number != 1 || len(links[0].Nonce) < 16 ||
			mod <= kvs[store.LeaderKey].Create || begun <= mod {
			c.t.Errorf("the term began at %d, the chain at %d is %+v, the first life began at %d", kvs[store.LeaderKey].Create, mod, links, begun)
		}
		stop()
		_, stop = c.engine("b", c.store)
		defer stop()
		time.Sleep(time.Minute)
		if links, _ := c.links(); len(links) < 2 || links[1].Number != 2 || links[1].Nonce == links[0].Nonce {
			c.t.Errorf("in the second term the chain is %+v", links)
		}
	})
}

func TestTheChainGrowsWithTheStoreAndNotOtherwise(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		time.Sleep(2 * chainEvery)
		first, rev := c.links()
		if len(first) != 1 {
			c.t.Fatalf("the chain is %+v", first)
		}
		time.Sleep(time.Hour)
		if links, now := c.links(); now != rev {
			c.t.Errorf("nothing was written for an hour, and the chain grew to %+v", links)
		}
		for n := 2; n <= chainLinks+20; n++ {
			c.commit(store.Put("x", nil), store.Put("y", nil))
			c.commit(store.Put("x", nil))
			time.Sleep(2 * chainEvery)
			links, _ := c.links()
			if links[len(links)-1].Number != int64(n) || len(links) != min(n, chainLinks) {
				c.t.Fatalf("after %d changes there are %d links to %+v", n-1, len(links), links[len(links)-1])
			}
			if at := slices.Index(links, first[0]); n <= chainLinks && at != 0 {
				c.t.Fatalf("the first link, %+v, became %+v", first[0], links[0])
			}
		}
	})
}

// meanwhile is a store into which something is written just before a commit.
type meanwhile struct {
	store.Store
	act func()
}

func (m *meanwhile) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	m.act()
	return m.Store.Commit(ctx, t)
}

func TestADeposedLeaderAddsNoLink(t *testing.T) {
	for name, between := range map[string]func(c *cluster){
		"another leads": func(c *cluster) {
			c.commit(store.Del(store.LeaderKey))
			c.commit(store.Put(store.LeaderKey, []byte("b")))
		},
		"the store was restored": func(c *cluster) { c.commit(store.Put(store.EpochKey, []byte("9"))) },
		"another has added one meanwhile": func(c *cluster) {
			c.commit(store.Put(store.ContinuityKey, store.Encode(records.Chain{Links: []records.Link{{Number: 1, Nonce: "b"}}})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				l, _ := c.leads(&meanwhile{c.store, func() { between(c) }})
				if _, err := l.link(c.t.Context()); !errors.Is(err, store.ErrConflict) {
					c.t.Errorf("got %v, want a conflict", err)
				}
			})
		})
	}
}

func TestAHeldStoreGetsNoLink(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.commit(store.Put(store.HoldKey, store.Encode(records.Hold{Cause: "why"})))
		e, stop := c.engine("a", c.store)
		defer stop()
		c.set(1)
		time.Sleep(time.Minute)
		if links, _ := c.links(); len(links) > 0 {
			t.Errorf("the chain is %+v", links)
		}
		if n := e.Stats().Blocked[causes.BlockedHeld]; n != 1 {
			t.Errorf("%d members are said to be held; want one: the term goes on without a link", n)
		}
	})
}

func TestATermWaitsForItsFirstLink(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  error
		method string
		last   time.Duration // of the fault
		told   int
	}{
		{"what is over soon is not told", store.ErrUnavailable, "Get", 3 * time.Second, 0},
		{"the store cannot be read", store.ErrUnavailable, "Get", time.Minute, 1},
		{"the store cannot be written", store.ErrUnavailable, "Commit", time.Minute, 1},
		{"somebody writes always", store.ErrConflict, "Commit", time.Minute, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inCluster(t, func(k *cluster) {
				l, log := k.leads(k.store)
				began := time.Now()
				k.mem.Fail(func(call memstore.Call) (f memstore.Fault) {
					if call.Method == c.method && time.Since(began) < c.last {
						f.Err = c.fault
					}
					return f
				})
				if !l.startChain(k.t.Context()) || time.Since(began) < c.last || l.linked == 0 {
					t.Errorf("the term began after %s with the link %d", time.Since(began), l.linked)
				}
				if got := strings.Count(log.String(), "level=WARN"); got != c.told {
					t.Errorf("it was told %d times, want %d:\n%s", got, c.told, log)
				}
			})
		})
	}
}

func TestAChainThatCannotBeReadStartsAboveAllItHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		defer s.Close()
		if _, _, err := Init(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		c, end := newCluster(t, s)
		defer end()
		c.poll = time.Second
		rev := c.commit(store.Put(store.ContinuityKey, []byte("{")))
		_, stop := c.engine("a", s)
		defer stop()
		synctest.Wait()
		time.Sleep(time.Second)
		if links, _ := c.links(); len(links) != 2 || links[1].Number <= int64(rev) {
			t.Errorf("at revision %d the chain became %+v", rev, links)
		}
	})
}
