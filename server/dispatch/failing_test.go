package dispatch

import (
	"context"
	"time"

	"github.com/stead-project/stead/store"
)

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

func (s *failing) Grant(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	if s.fail() {
		return 0, store.ErrUnavailable
	}
	return s.Store.Grant(ctx, ttl)
}
