package cache

import (
	"errors"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// What this process wrote is taken as it was written, what others wrote is decoded, and a write that failed, or whose
// place another took, leaves nothing.
func TestWhatIsWrittenHereIsNotDecodedAgain(t *testing.T) {
	ref := refOf(0)
	id := spec.Identity{Namespace: ref.Namespace, Set: ref.Name}
	key := store.IdentityKey(id)
	mine := func(n int64) store.Op {
		return store.PutRecord(key, records.IdentityRecord{ID: id, LastToken: token(n)})
	}
	shown := func(c *Cache) (r *records.IdentityRecord) {
		c.Look(func(v View) { r = v.Identity(id) })
		return r
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, own, other store.Store) (last store.Op)
		same bool // what is shown is what was written, and not a copy
	}{
		{"written here", func(t *testing.T, own, _ store.Store) store.Op {
			op := mine(1)
			commit(t, own, op)
			return op
		}, true},
		{"written here twice", func(t *testing.T, own, _ store.Store) store.Op {
			commit(t, own, mine(1))
			op := mine(2)
			commit(t, own, op)
			return op
		}, true},
		{"without its record", func(t *testing.T, own, _ store.Store) store.Op {
			op := mine(1)
			commit(t, own, store.Put(key, op.Value))
			return op
		}, false},
		{"written by another", func(t *testing.T, _, other store.Store) store.Op {
			op := mine(1)
			commit(t, other, op)
			return op
		}, false},
		{"another wrote something else after it", func(t *testing.T, own, other store.Store) store.Op {
			commit(t, own, mine(1))
			op := mine(2)
			commit(t, other, op)
			return op
		}, false},
		{"refused here, and written by another", func(t *testing.T, own, other store.Store) store.Op {
			op := mine(1)
			if _, err := own.Commit(t.Context(), store.Txn{If: []store.Compare{store.Seen(key, 99)}, Then: []store.Op{op}}); !errors.Is(err, store.ErrConflict) {
				t.Fatal(err)
			}
			commit(t, other, op)
			return op
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memstore.New()
			defer s.Close()
			cached, _ := start(t, s)
			op := c.do(t, cached.Writer(s), s)
			rev, _, err := s.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wait(t, cached, rev)
			written := op.Record.(*records.IdentityRecord)
			if got := shown(cached); got == nil || got.LastToken != written.LastToken || (got == written) != c.same {
				t.Errorf("shown is %+v, the very record: %v; written was %+v, want the very record: %v", got, got == written, written, c.same)
			}
			if n := len(cached.written.ops); n != 0 {
				t.Errorf("%d writes are kept, want none", n)
			}
		})
	}
}

// A write that is under way keeps what it wrote, though an earlier one of the same key fails.
func TestAFailedWriteForgetsOnlyItsOwn(t *testing.T) {
	var w written
	first, second := store.PutRecord("k", 1), store.PutRecord("k", 2)
	w.add([]store.Op{first})
	w.add([]store.Op{second})
	w.drop([]store.Op{first})
	if got := w.take(&store.KV{Key: "k", Value: second.Value}); got != second.Record {
		t.Errorf("got %v, want the second record", got)
	}
	w.add([]store.Op{first})
	w.clear()
	if got := w.take(&store.KV{Key: "k", Value: first.Value}); got != nil {
		t.Errorf("after all was forgotten: got %v", got)
	}
}

// A record under a key that is not its own counts as damaged, whoever wrote it.
func TestARecordWrittenHereUnderAnotherKeyIsDamaged(t *testing.T) {
	s := memstore.New()
	defer s.Close()
	c, _ := start(t, s)
	id := spec.Identity{Namespace: refOf(0).Namespace, Set: refOf(0).Name}
	rev := commit(t, c.Writer(s), store.PutRecord(store.IdentityKey(id), records.IdentityRecord{ID: spec.Identity{Namespace: "default", Set: "s1"}}))
	wait(t, c, rev)
	c.Look(func(v View) {
		if w := v.World(id.Ref()); v.Identity(id) != nil || len(w.Broken) != 1 {
			t.Errorf("got %+v, damaged %v; want no record and one that is damaged", v.Identity(id), w.Broken)
		}
	})
}
