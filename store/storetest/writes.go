package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stead-project/stead/store"
)

var writes = []promise{
	{"all keys of a commit share its revision, which grows", func(t *testing.T, h *harness) {
		before := h.put(t, "x", "")
		rev := h.commit(t, store.Txn{Then: []store.Op{
			store.Put("a", []byte("1")), store.Put("b", []byte("2")), store.Del("x"),
		}})
		if rev <= before {
			t.Errorf("revision %d does not follow %d", rev, before)
		}
		want := fmt.Sprintf("[a=1(%d,%d,0) b=2(%d,%d,0)]", rev, rev, rev, rev)
		if got := h.picture(t, ""); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}},
	{"a commit that changes nothing makes no revision", func(t *testing.T, h *harness) {
		rev := h.put(t, "k", "")
		for _, txn := range []store.Txn{
			{If: []store.Compare{store.Seen("k", rev)}},
			{Then: []store.Op{store.Del("absent")}},
		} {
			if got := h.commit(t, txn); got != rev {
				t.Errorf("commit %v returned revision %d, want %d", txn, got, rev)
			}
		}
	}},
	{"seen holds only at that very revision", func(t *testing.T, h *harness) {
		first := h.put(t, "k", "1")
		then := []store.Op{store.Put("k", []byte("2"))}
		h.commit(t, store.Txn{If: []store.Compare{store.Seen("k", first)}, Then: then})
		h.refused(t, store.Txn{If: []store.Compare{store.Seen("k", first)}, Then: then}, store.ErrConflict)
		h.refused(t, store.Txn{If: []store.Compare{store.Seen("other", first)}, Then: then}, store.ErrConflict)
		h.refused(t, store.Txn{If: []store.Compare{store.Seen("k", 0)}, Then: then}, store.ErrConflict)
		h.commit(t, store.Txn{If: []store.Compare{store.Seen("other", 0)}, Then: then})
	}},
	{"created holds through edits and not for a later creation", func(t *testing.T, h *harness) {
		first := h.put(t, "k", "1")
		h.put(t, "k", "2")
		same := store.Txn{If: []store.Compare{store.Created("k", first)}, Then: []store.Op{store.Put("w", nil)}}
		h.commit(t, same)
		h.commit(t, store.Txn{Then: []store.Op{store.Del("k")}})
		h.refused(t, same, store.ErrConflict)
		h.put(t, "k", "3")
		h.refused(t, same, store.ErrConflict)
		h.refused(t, store.Txn{If: []store.Compare{store.Created("k", 0)}}, store.ErrConflict)
		h.commit(t, store.Txn{If: []store.Compare{store.Created("absent", 0)}})
	}},
	{"absent holds before the first write and after a deletion", func(t *testing.T, h *harness) {
		txn := store.Txn{If: []store.Compare{store.Absent("k")}, Then: []store.Op{store.Put("k", nil)}}
		h.commit(t, txn)
		h.refused(t, txn, store.ErrConflict)
		h.commit(t, store.Txn{Then: []store.Op{store.Del("k")}})
		h.commit(t, txn)
	}},
	{"one compare that does not hold stops the whole transaction", func(t *testing.T, h *harness) {
		rev := h.put(t, "a", "1")
		h.refused(t, store.Txn{
			If:   []store.Compare{store.Seen("a", rev), store.Absent("b"), store.Absent("a")},
			Then: []store.Op{store.Put("b", nil), store.Del("a")},
		}, store.ErrConflict)
	}},
	{"a re-created key has a new create-revision", func(t *testing.T, h *harness) {
		h.put(t, "k", "1")
		h.commit(t, store.Txn{Then: []store.Op{store.Del("k")}})
		rev := h.put(t, "k", "2")
		if kv, _ := h.get(t, "k"); kv.Create != rev || kv.Mod != rev {
			t.Errorf("got %+v, want both revisions %d", kv, rev)
		}
	}},
	{"a key that appears twice is refused", func(t *testing.T, h *harness) {
		for _, second := range []store.Op{store.Put("k", nil), store.Del("k")} {
			_, err := h.Commit(h.ctx, store.Txn{Then: []store.Op{store.Put("k", nil), second}})
			if err == nil || errors.Is(err, store.ErrConflict) {
				t.Errorf("got error %v", err)
			}
		}
		if _, ok := h.get(t, "k"); ok {
			t.Error("the key was written")
		}
	}},
	{"a key may be guarded more than once, and guarded and written", func(t *testing.T, h *harness) {
		rev := h.put(t, "k", "1")
		h.commit(t, store.Txn{
			If:   []store.Compare{store.Seen("k", rev), store.Created("k", rev)},
			Then: []store.Op{store.Put("k", []byte("2"))},
		})
	}},
	{"a transaction takes MaxOps compares and as many operations", func(t *testing.T, h *harness) {
		h.commit(t, wide(store.MaxOps, store.MaxOps))
		if _, kvs, err := h.Snapshot(h.ctx, "w/"); err != nil || len(kvs) != store.MaxOps {
			t.Errorf("got %d keys, error %v", len(kvs), err)
		}
	}},
	{"one compare or operation more is too large", func(t *testing.T, h *harness) {
		h.refused(t, wide(store.MaxOps+1, 1), store.ErrTooLarge)
		h.refused(t, wide(1, store.MaxOps+1), store.ErrTooLarge)
	}},
	{"a value of a megabyte fits and too many bytes do not", func(t *testing.T, h *harness) {
		h.put(t, "k", string(make([]byte, 1<<20)))
		h.refused(t, store.Txn{Then: []store.Op{
			store.Put("a", make([]byte, store.MaxBytes/2)), store.Put("b", make([]byte, store.MaxBytes/2)),
		}}, store.ErrTooLarge)
	}},
	{"an empty key is refused", func(t *testing.T, h *harness) {
		if _, err := h.Commit(h.ctx, store.Txn{Then: []store.Op{store.Put("", nil)}}); err == nil {
			t.Error("it was written")
		}
	}},
}

// wide is a transaction of so many compares and operations, all of different keys.
func wide(compares, ops int) store.Txn {
	var txn store.Txn
	for i := range compares {
		txn.If = append(txn.If, store.Absent(fmt.Sprintf("w/%d", i)))
	}
	for i := range ops {
		txn.Then = append(txn.Then, store.Put(fmt.Sprintf("w/%d", i), nil))
	}
	return txn
}
