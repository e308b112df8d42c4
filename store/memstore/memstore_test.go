package memstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
	"github.com/stead-project/stead/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memstore.New() })
}

func put(t *testing.T, s store.Store, key string, lease store.LeaseID) store.Rev {
	t.Helper()
	rev, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.PutLeased(key, nil, lease)}})
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func present(t *testing.T, s store.Store, key string) bool {
	t.Helper()
	_, kvs, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	_, ok := kvs[key]
	return ok
}

func TestLeasesEndInABubbleOfFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		defer s.Close()
		lease, err := s.Grant(t.Context(), 15*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		rev := put(t, s, "k", lease)
		time.Sleep(10 * time.Second)
		if err := s.Renew(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		w, err := s.Watch(t.Context(), "", rev)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		begin := time.Now()
		batch, err := w.Next(t.Context())
		if err != nil || !batch.Events[0].Delete {
			t.Fatalf("got %v, error %v", batch, err)
		}
		if waited := time.Since(begin); waited != 15*time.Second {
			t.Errorf("it ended %v after its renewal, want 15s", waited)
		}
	})
}

func TestInjectedClockEndsLeasesInTheOrderOfTheirTimes(t *testing.T) {
	now := time.Unix(0, 0)
	s := memstore.New(memstore.WithClock(func() time.Time { return now }))
	defer s.Close()
	long, _ := s.Grant(t.Context(), 3*time.Second)
	short, _ := s.Grant(t.Context(), 2*time.Second)
	put(t, s, "long", long)
	rev := put(t, s, "short", short)
	now = now.Add(1999 * time.Millisecond)
	if !present(t, s, "short") || !present(t, s, "long") {
		t.Fatal("a lease ended before its time")
	}
	now = now.Add(time.Hour)
	s.Expire()
	w, err := s.Watch(t.Context(), "", rev)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := w.Next(t.Context())
	if err != nil || len(batch.Events) != 2 || batch.Events[0].Key != "short" || batch.Events[1].Key != "long" {
		t.Fatalf("got %v, error %v", batch, err)
	}
	if batch.Events[0].Mod != rev+1 || batch.Events[1].Mod != rev+2 {
		t.Errorf("leases ended at %d and %d, want %d and %d", batch.Events[0].Mod, batch.Events[1].Mod, rev+1, rev+2)
	}
}

func TestFaultsAreInjectedBeforeOrAfterTheWrite(t *testing.T) {
	for _, c := range []struct {
		name    string
		fault   memstore.Fault
		written bool
	}{
		{"unavailable, not applied", memstore.Fault{Err: store.ErrUnavailable}, false},
		{"unknown, not applied", memstore.Fault{Err: store.ErrUnknown}, false},
		{"unknown, applied", memstore.Fault{Err: store.ErrUnknown, Applied: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memstore.New()
			defer s.Close()
			s.Fail(func(call memstore.Call) memstore.Fault {
				if call.Method == "Commit" && call.Txn.Then[0].Key == "k" {
					return c.fault
				}
				return memstore.Fault{}
			})
			_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("k", nil)}})
			if !errors.Is(err, c.fault.Err) {
				t.Errorf("got %v, want %v", err, c.fault.Err)
			}
			put(t, s, "other", 0)
			if present(t, s, "k") != c.written {
				t.Errorf("written: %v, want %v", !c.written, c.written)
			}
		})
	}
}

func TestBreakEndsWatches(t *testing.T) {
	s := memstore.New()
	defer s.Close()
	w, err := s.Watch(t.Context(), "", put(t, s, "k", 0))
	if err != nil {
		t.Fatal(err)
	}
	s.Break()
	if _, err := w.Next(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, store.ErrUnavailable)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	s := memstore.New(memstore.WithHistory(5))
	defer s.Close()
	first := put(t, s, "k", 0)
	w, err := s.Watch(t.Context(), "", first)
	if err != nil {
		t.Fatal(err)
	}
	var last store.Rev
	for range 5 {
		last = put(t, s, "k", 0)
	}
	batch, err := w.Next(t.Context())
	if err != nil || len(batch.Events) != 5 || batch.Rev != last {
		t.Fatalf("within the history: got %v, error %v", batch, err)
	}
	for range 6 {
		put(t, s, "k", 0)
	}
	if _, err := w.Next(t.Context()); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("behind the history: got %v, want %v", err, store.ErrCompacted)
	}
}

func TestAClosedStoreIsUnavailable(t *testing.T) {
	s := memstore.New()
	_ = s.Close()
	if _, err := s.Commit(context.WithoutCancel(t.Context()), store.Txn{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, store.ErrUnavailable)
	}
}
