package cache

import (
	"bytes"
	"context"
	"sync"

	"github.com/stead-project/stead/store"
)

// written is what this process is about to store, until the watch brings it: what is stored as it was written need not
// be decoded. The cache shows it when the watch brings it, and not before (SAFETY S18).
type written struct {
	mu  sync.Mutex
	ops map[string]store.Op // by key; those with a record
}

// Writer is s for those who write what c shows.
func (c *Cache) Writer(s store.Store) store.Store { return writer{s, &c.written} }

type writer struct {
	store.Store
	written *written
}

// Commit implements store.Store.
func (w writer) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	w.written.add(t.Then)
	rev, err := w.Store.Commit(ctx, t)
	if err != nil {
		w.written.drop(t.Then)
	}
	return rev, err
}

func (w *written) add(ops []store.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range ops {
		if ops[i].Record == nil {
			continue
		}
		if w.ops == nil {
			w.ops = map[string]store.Op{}
		}
		w.ops[ops[i].Key] = ops[i]
	}
}

// drop forgets those of ops that no later ones took the place of.
func (w *written) drop(ops []store.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range ops {
		if r := ops[i].Record; r != nil && w.ops[ops[i].Key].Record == r {
			delete(w.ops, ops[i].Key)
		}
	}
}

// take returns the record that was written as kv, once; nil: kv is not what was written last at its key.
func (w *written) take(kv *store.KV) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	op, there := w.ops[kv.Key]
	if !there || !bytes.Equal(op.Value, kv.Value) {
		return nil
	}
	delete(w.ops, kv.Key)
	return op.Record
}

// clear forgets all.
func (w *written) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.ops)
}
