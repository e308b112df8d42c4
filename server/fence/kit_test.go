package fence

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// patience bounds every wait of a test.
const patience = time.Minute

// rig is a store in memory, of epoch 1, and its mirror.
type rig struct {
	t     *testing.T
	store *memstore.Store
	cache *cache.Cache
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, store: memstore.New()}
	r.cache = cache.New(r.store, slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.cache.Run(t.Context()) })
	t.Cleanup(wg.Wait)
	r.put(store.EpochKey, []byte("1"))
	return r
}

// put writes one key and waits until the mirror shows it.
func (r *rig) put(key string, value []byte) store.Rev { return r.commit(store.Put(key, value)) }

func (r *rig) record(key string, record any) store.Rev { return r.put(key, store.Encode(record)) }

func (r *rig) commit(ops ...store.Op) store.Rev {
	r.t.Helper()
	rev, err := r.store.Commit(context.WithoutCancel(r.t.Context()), store.Txn{Then: ops})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if err := r.cache.Wait(ctx, rev); err != nil {
		r.t.Fatal(err)
	}
	return rev
}

func (r *rig) get(key string) (store.KV, bool) {
	r.t.Helper()
	_, kvs, err := r.store.Get(r.t.Context(), key)
	if err != nil {
		r.t.Fatal(err)
	}
	kv, ok := kvs[key]
	return kv, ok
}

func ident(ordinal int) spec.Identity {
	return spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
}

func testMember(ordinal int, tok int64, node spec.NodeName, uid spec.UID) records.Member {
	return records.Member{
		ID: ident(ordinal), SetUID: "u1", Token: token(tok), Goal: records.GoalRun, Revision: "r1",
		Node: node, NodeUID: uid, Boot: "b1",
	}
}

// failing is a store of which a call fails when fail says so.
type failing struct {
	store.Store
	fail func() bool
}

func (s *failing) Get(ctx context.Context, keys ...string) (store.Rev, map[string]store.KV, error) {
	if s.fail() {
		return 0, nil, store.ErrUnavailable
	}
	return s.Store.Get(ctx, keys...)
}

func (s *failing) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	if s.fail() {
		return 0, store.ErrUnavailable
	}
	return s.Store.Commit(ctx, t)
}

func (s *failing) Snapshot(ctx context.Context, prefix string) (store.Rev, []store.KV, error) {
	if s.fail() {
		return 0, nil, store.ErrUnavailable
	}
	return s.Store.Snapshot(ctx, prefix)
}
