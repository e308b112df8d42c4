package cache

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

var (
	db  = spec.SetRef{Namespace: "default", Name: "db"}
	db0 = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
)

// switched is a store whose body can be exchanged, as a restore does.
type switched struct{ store.Store }

// commit writes ops and returns the revision.
func commit(t *testing.T, s store.Store, ops ...store.Op) store.Rev {
	t.Helper()
	rev, err := s.Commit(t.Context(), store.Txn{Then: ops})
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// start runs a cache of s until the test ends, and waits until it is loaded.
func start(t *testing.T, s store.Store) (*Cache, chan error) {
	t.Helper()
	c := New(s, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { done <- c.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	wait(t, c, 1)
	return c, done
}

func wait(t *testing.T, c *Cache, rev store.Rev) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.Wait(ctx, rev); err != nil {
		t.Fatal(err)
	}
}

func put(key string, record any) store.Op { return store.Put(key, store.Encode(record)) }

func token(n int64) spec.Token { return spec.Token{Epoch: 1, Number: n} }

func TestAReportOfAnotherTokenIsAbsentInTheWorld(t *testing.T) {
	s := memstore.New()
	c, _ := start(t, s)
	commit(t, s, put(store.MemberKey(db0), records.Member{ID: db0, Token: token(7), Node: "n"}))
	rev := commit(t, s, put(store.ReportKey(db0), records.Report{ID: db0, Token: token(6), Phase: records.PhaseStopped}))
	wait(t, c, rev)
	c.Look(func(v View) {
		w := v.World(db)
		if len(w.Slots) != 1 || w.Slots[0].Member == nil || w.Slots[0].Report != nil {
			t.Errorf("slots %+v; want one with a member and no report", w.Slots)
		}
		if r := v.Report(db0); r == nil || r.Token != token(6) {
			t.Errorf("stored report %+v; want the one of token 1.6", r)
		}
	})
	rev = commit(t, s, put(store.ReportKey(db0), records.Report{ID: db0, Token: token(7), Phase: records.PhaseRunning}))
	wait(t, c, rev)
	c.Look(func(v View) {
		if r := v.World(db).Slots[0].Report; r == nil || r.Token != token(7) {
			t.Errorf("report %+v; want the one of token 1.7", r)
		}
	})
}

// A watch may tell once more what the snapshot holds: the cache does not go back (S18).
func TestABatchThatIsContainedAlreadyChangesNothing(t *testing.T) {
	c := New(memstore.New(), slog.New(slog.DiscardHandler))
	event := func(n int64, mod store.Rev) store.KV {
		m := records.Member{ID: db0, Token: token(n), Node: "n"}
		return store.KV{Key: store.MemberKey(db0), Value: store.Encode(m), Create: 1, Mod: mod}
	}
	if err := c.Load(10, []store.KV{event(7, 10)}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []struct {
		rev        store.Rev
		told, want int64
	}{{9, 6, 7}, {10, 6, 7}, {11, 8, 8}} {
		if err := c.Apply(store.Batch{Rev: b.rev, Events: []store.Event{{KV: event(b.told, b.rev)}}}); err != nil {
			t.Fatal(err)
		}
		c.Look(func(v View) {
			if m := v.Member(db0); m.Token != token(b.want) || v.Rev() != max(b.rev, 10) {
				t.Errorf("after a batch of revision %d: token %s at revision %d, want token %d", b.rev, m.Token, v.Rev(), b.want)
			}
		})
	}
}

func TestABrokenRecordIsNamedAndHeals(t *testing.T) {
	s := memstore.New()
	commit(t, s, put(store.SetKey(db), records.Set{Ref: db, UID: "u"}))
	commit(t, s, store.Put(store.MemberKey(db0), []byte(`{"id":`)))
	c, _ := start(t, s)
	broken := func() (keys []string) {
		c.Look(func(v View) { keys = v.World(db).Broken })
		return keys
	}
	if got := broken(); len(got) != 1 || got[0] != store.MemberKey(db0) {
		t.Fatalf("broken %q; want the member's key", got)
	}
	other := db0
	other.Ordinal = 1
	wait(t, c, commit(t, s, put(store.MemberKey(db0), records.Member{ID: other})))
	if got := broken(); len(got) != 1 {
		t.Fatalf("broken %q; want the record that belongs to another key", got)
	}
	wait(t, c, commit(t, s, put(store.MemberKey(db0), records.Member{ID: db0})))
	if got := broken(); len(got) != 0 {
		t.Fatalf("broken %q; want none after it was rewritten", got)
	}
	wait(t, c, commit(t, s, store.Put(store.MemberKey(db0), []byte(`!`))))
	wait(t, c, commit(t, s, store.Del(store.MemberKey(db0))))
	if got := broken(); len(got) != 0 {
		t.Fatalf("broken %q; want none after it was deleted", got)
	}
}

func TestAnUnreadableAddressIsNotFree(t *testing.T) {
	s := memstore.New()
	commit(t, s, store.Put("addresses/10.88.0.1", []byte("junk")))
	c, _ := start(t, s)
	c.Look(func(v View) {
		if v.Addresses()["10.88.0.1"] == nil || v.ModRev("addresses/10.88.0.1") == 0 {
			t.Error("the address is missing, so that it would be given away")
		}
	})
}

func TestAfterALostWatchTheCacheIsLoadedAnew(t *testing.T) {
	s := memstore.New()
	c, _ := start(t, s)
	sub := c.Subscribe()
	defer sub.Close()
	<-sub.C()
	if !sub.Take().All {
		t.Fatal("the first Take does not say All")
	}
	s.Break()
	rev := commit(t, s, put(store.SetKey(db), records.Set{Ref: db, UID: "u"}))
	wait(t, c, rev)
	var seen Changes
	for end := time.Now().Add(time.Minute); !seen.All; {
		select {
		case <-sub.C():
			seen = sub.Take()
		case <-time.After(time.Second):
			s.Break() // the watch may not have begun before
		}
		if time.Now().After(end) {
			t.Fatal("no Changes with All after the watch was lost")
		}
	}
	c.Look(func(v View) {
		if set, mod := v.Set(db), v.ModRev(store.SetKey(db)); set == nil || mod != rev {
			t.Errorf("set %+v at %d; want it at %d", set, mod, rev)
		}
	})
}

func TestAStoreThatWentBackEndsTheCache(t *testing.T) {
	base := func() *memstore.Store {
		s := memstore.New()
		commit(t, s, store.Put(store.ClusterKey, []byte("c1")), store.Put(store.EpochKey, []byte("2")))
		return s
	}
	cases := map[string]func(*memstore.Store){
		"a lower revision": func(*memstore.Store) {},
		"a lower epoch": func(s *memstore.Store) {
			for range 9 {
				commit(t, s, store.Put(store.EpochKey, []byte("1")))
			}
		},
		"another cluster": func(s *memstore.Store) {
			for range 9 {
				commit(t, s, store.Put(store.ClusterKey, []byte("c2")))
			}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			old, restored := base(), base()
			for range 5 {
				commit(t, old, put(store.SetKey(db), records.Set{Ref: db}))
			}
			change(restored)
			sw := &switched{old}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c := New(sw, slog.New(slog.DiscardHandler))
			loadedOnce, err := c.follow(expired(t, c))
			if !loadedOnce {
				t.Fatalf("follow: %v; want the old store loaded", err)
			}
			sw.Store = restored
			if err := c.Run(ctx); !errors.Is(err, store.ErrWentBack) {
				t.Errorf("Run: %v; want ErrWentBack", err)
			}
		})
	}
}

// expired is a context that ends as soon as c is loaded.
func expired(t *testing.T, c *Cache) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		_ = c.Wait(t.Context(), 1)
	}()
	return ctx
}

func TestAnEpochThatFallsWhileWatchedEndsTheCache(t *testing.T) {
	s := memstore.New()
	commit(t, s, store.Put(store.EpochKey, []byte("3")))
	_, done := start(t, s)
	commit(t, s, store.Put(store.EpochKey, []byte("2")))
	select {
	case err := <-done:
		if !errors.Is(err, store.ErrWentBack) {
			t.Errorf("Run: %v; want ErrWentBack", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the cache goes on in an older epoch")
	}
}

func TestAStoreThatIsAwayIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		var away atomic.Bool
		away.Store(true)
		s.Fail(func(memstore.Call) memstore.Fault {
			if away.Load() {
				return memstore.Fault{Err: store.ErrUnavailable}
			}
			return memstore.Fault{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		c := New(s, slog.New(slog.DiscardHandler))
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		away.Store(false)
		time.Sleep(lastRetry + time.Second)
		if err := c.Wait(ctx, 1); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v; want nil on a requested stop", err)
		}
	})
}

func TestACountThatCannotBeReadDecidesNothing(t *testing.T) {
	s := memstore.New()
	c, _ := start(t, s)
	wait(t, c, commit(t, s, put(store.SetKey(db), records.Set{Ref: db, UID: "u"}), store.Put(store.CountKey, []byte("junk"))))
	c.Look(func(v View) {
		if got := v.World(db).Broken; len(got) != 1 || got[0] != store.CountKey {
			t.Errorf("broken: got %q, want %s", got, store.CountKey)
		}
	})
}
