package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// kinds are the kinds of the outcomes' errors; nil: written.
func kinds(outcomes []store.Outcome) []error {
	var out []error
	for _, o := range outcomes {
		var kind error
		for _, k := range []error{store.ErrConflict, store.ErrUnknown, store.ErrUnavailable, store.ErrTooLarge, store.ErrLeaseGone} {
			if errors.Is(o.Err, k) {
				kind = k
			}
		}
		if o.Err != nil && kind == nil {
			kind = o.Err
		}
		out = append(out, kind)
	}
	return out
}

func creates(n int) []store.Txn {
	var out []store.Txn
	for i := range n {
		key := fmt.Sprintf("k/%d", i)
		out = append(out, store.Txn{If: []store.Compare{store.Absent(key)}, Then: []store.Op{store.Put(key, nil)}})
	}
	return out
}

func write(t *testing.T, s store.Store, key string) store.Rev {
	t.Helper()
	rev, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// expect compares kinds and checks that exactly the units without error are written.
func expect(t *testing.T, s store.Store, got []store.Outcome, want func(i int) error) {
	t.Helper()
	for i, kind := range kinds(got) {
		if kind != want(i) {
			t.Errorf("unit %d: got %v, want %v", i, got[i].Err, want(i))
		}
		_, kvs, err := s.Get(t.Context(), fmt.Sprintf("k/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if rev := kvs[fmt.Sprintf("k/%d", i)].Mod; got[i].Err == nil && rev != got[i].Rev {
			t.Errorf("unit %d stands at revision %d, its outcome says %d", i, rev, got[i].Rev)
		}
	}
}

func TestCommitAll(t *testing.T) {
	count := func(s *memstore.Store) *int {
		n := 0
		s.Fail(func(c memstore.Call) memstore.Fault {
			if c.Method == "Commit" {
				n++
			}
			return memstore.Fault{}
		})
		return &n
	}
	t.Run("units without trouble cost one transaction", func(t *testing.T) {
		s := memstore.New()
		shared := []store.Compare{store.Seen("leader", write(t, s, "leader"))}
		commits := count(s)
		got := store.CommitAll(t.Context(), s, shared, creates(100))
		expect(t, s, got, func(int) error { return nil })
		if *commits != 1 {
			t.Errorf("%d transactions, want 1", *commits)
		}
	})
	t.Run("one unit that conflicts is blamed alone", func(t *testing.T) {
		s := memstore.New()
		shared := []store.Compare{store.Seen("leader", write(t, s, "leader"))}
		write(t, s, "k/37")
		commits := count(s)
		got := store.CommitAll(t.Context(), s, shared, creates(100))
		expect(t, s, got, func(i int) error {
			if i == 37 {
				return store.ErrConflict
			}
			return nil
		})
		if *commits > 25 {
			t.Errorf("%d transactions, want about 2 log2(100)", *commits)
		}
	})
	t.Run("shared compares that fail refuse all, cheaply", func(t *testing.T) {
		s := memstore.New()
		commits := count(s)
		got := store.CommitAll(t.Context(), s, []store.Compare{store.Seen("leader", 5)}, creates(300))
		expect(t, s, got, func(int) error { return store.ErrConflict })
		if *commits > 2 {
			t.Errorf("%d transactions, want 2", *commits)
		}
		if _, kvs, _ := s.Snapshot(t.Context(), ""); len(kvs) != 0 {
			t.Errorf("%d keys were written", len(kvs))
		}
	})
	t.Run("a lease that is gone, a unit too large and a malformed one are blamed alone", func(t *testing.T) {
		s := memstore.New()
		units := creates(10)
		units[2].Then[0].Lease = 99
		units[5].Then[0].Value = make([]byte, store.MaxBytes)
		units[7].Then = append(units[7].Then, units[7].Then[0])
		got := store.CommitAll(t.Context(), s, nil, units)
		if got[7].Err == nil {
			t.Error("the malformed unit was written")
		}
		got[7].Err = nil
		got[7].Rev = 0
		expect(t, s, got, func(i int) error {
			return map[int]error{2: store.ErrLeaseGone, 5: store.ErrTooLarge}[i]
		})
	})
	t.Run("an unknown outcome is told, and the rest is not tried", func(t *testing.T) {
		s := memstore.New()
		n := 0
		s.Fail(func(c memstore.Call) memstore.Fault {
			n++
			if n == 2 {
				return memstore.Fault{Err: store.ErrUnknown, Applied: true}
			}
			return memstore.Fault{}
		})
		got := store.CommitAll(t.Context(), s, nil, creates(3*store.MaxOps))
		if n != 2 {
			t.Errorf("%d transactions, want 2", n)
		}
		expect(t, s, got, func(i int) error {
			return []error{nil, store.ErrUnknown, store.ErrUnavailable}[i/store.MaxOps]
		})
	})
}
