package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stead-project/stead/store"
)

var races = []promise{
	{"of 50 that swap the same key exactly one wins", func(t *testing.T, h *harness) {
		for range 5 {
			kv, _ := h.get(t, "k")
			h.oneWins(t, func(i int) store.Txn {
				return store.Txn{If: []store.Compare{store.Seen("k", kv.Mod)}, Then: []store.Op{store.Put("k", fmt.Append(nil, i))}}
			})
		}
	}},
	{"of 50 that create the same key exactly one wins", func(t *testing.T, h *harness) {
		h.oneWins(t, func(i int) store.Txn {
			return store.Txn{
				If:   []store.Compare{store.Absent("k")},
				Then: []store.Op{store.Put("k", fmt.Append(nil, i)), store.Put(fmt.Sprintf("loser/%d", i), nil)},
			}
		})
		if got := h.count(t, "loser/"); got != 1 {
			t.Fatalf("%d wrote", got)
		}
	}},
	{"revisions of concurrent commits are all different", func(t *testing.T, h *harness) {
		var seen sync.Map
		each(t, 20, func(i int) error {
			for range 10 {
				rev, err := h.Commit(h.ctx, store.Txn{Then: []store.Op{store.Put(fmt.Sprint("k/", i), nil)}})
				if err != nil {
					return err
				}
				if _, twice := seen.LoadOrStore(rev, true); twice {
					return fmt.Errorf("revision %d was given twice", rev)
				}
			}
			return nil
		})
	}},
	{"a snapshot under writers is of one moment", snapshotsAreWhole},
	{"snapshot and watch together miss nothing and repeat nothing", func(t *testing.T, h *harness) {
		const writers, rounds = 5, 40
		h.put(t, "w/start", "")
		type cut struct {
			rev  store.Rev
			have int
		}
		cuts := make(chan cut, 1)
		each(t, writers+1, func(i int) error {
			if i == writers {
				rev, kvs, err := h.Snapshot(h.ctx, "w/")
				cuts <- cut{rev, len(kvs)}
				return err
			}
			for n := range rounds {
				_, err := h.Commit(h.ctx, store.Txn{Then: []store.Op{store.Put(fmt.Sprintf("w/%d/%d", i, n), nil)}})
				if err != nil {
					return err
				}
			}
			return nil
		})
		c := <-cuts
		missing := writers*rounds + 1 - c.have
		h.put(t, "w/end", "")
		events := h.collect(t, h.watch(t, "w/", c.rev), missing+1)
		if last := events[len(events)-1]; last.Key != "w/end" {
			t.Errorf("the last event is of %s, want w/end", last.Key)
		}
	}},
}

// oneWins commits 50 transactions at once, of which one must be done and the others conflict.
func (h *harness) oneWins(t *testing.T, txn func(i int) store.Txn) {
	t.Helper()
	var won atomic.Int32
	each(t, 50, func(i int) error {
		_, err := h.Commit(h.ctx, txn(i))
		switch {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, store.ErrConflict):
			return err
		}
		return nil
	})
	if won.Load() != 1 {
		t.Fatalf("%d won", won.Load())
	}
}

// snapshotsAreWhole writes two groups of keys always together, while snapshots
// (more than one page) and reads look for a difference.
func snapshotsAreWhole(t *testing.T, h *harness) {
	const width = 60
	write := func(n int) error {
		var txn store.Txn
		for i := range width {
			value := fmt.Append(nil, n)
			txn.Then = append(txn.Then, store.Put(fmt.Sprintf("g/a/%d", i), value), store.Put(fmt.Sprintf("g/z/%d", i), value))
		}
		_, err := h.Commit(h.ctx, txn)
		return err
	}
	if err := write(0); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 1500; i += 100 { // between the groups, so that pages separate them
		var txn store.Txn
		for j := i; j < i+100; j++ {
			txn.Then = append(txn.Then, store.Put(fmt.Sprintf("g/m/%d", j), nil))
		}
		h.commit(t, txn)
	}
	var stop atomic.Bool
	each(t, 2, func(i int) error {
		if i == 0 {
			for n := 1; !stop.Load(); n++ {
				if err := write(n); err != nil {
					return err
				}
			}
			return nil
		}
		defer stop.Store(true)
		for range 15 {
			if err := h.whole(2 * width); err != nil {
				return err
			}
		}
		return nil
	})
}

// whole fails if the keys g/a and g/z do not all have one revision.
func (h *harness) whole(width int) error {
	_, kvs, err := h.Snapshot(h.ctx, "g/")
	if err != nil {
		return err
	}
	revs := map[store.Rev]int{}
	for _, kv := range kvs {
		if len(kv.Value) > 0 {
			revs[kv.Mod]++
		}
	}
	if len(revs) != 1 {
		return fmt.Errorf("a snapshot mixes revisions (count of keys by revision): %v", revs)
	}
	_, pair, err := h.Get(h.ctx, "g/a/0", "g/z/59")
	if err == nil && pair["g/a/0"].Mod != pair["g/z/59"].Mod {
		err = fmt.Errorf("a get mixes revisions: %v", pair)
	}
	return err
}

// each runs f(0..n-1) at once, waits for all, and fails the test on any error.
func each(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) count(t *testing.T, prefix string) int {
	t.Helper()
	_, kvs, err := h.Snapshot(h.ctx, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return len(kvs)
}
