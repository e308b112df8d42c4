package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/stead-project/stead/store"
)

// crash is a store for one engine that dies at its nth commit: before or after it
// was applied. From then on no call of that engine reaches the store.
type crash struct {
	store.Store
	mu    sync.Mutex
	left  int
	after bool
	dead  bool
	died  chan struct{}
}

func newCrash(s store.Store, n int, after bool) *crash {
	return &crash{Store: s, left: n, after: after, died: make(chan struct{})}
}

func (c *crash) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return 0, store.ErrUnavailable
	}
	c.left--
	if c.left > 0 {
		return c.Store.Commit(ctx, t)
	}
	c.dead = true
	defer close(c.died)
	if c.after {
		_, _ = c.Store.Commit(ctx, t)
	}
	return 0, fmt.Errorf("crash: %w", store.ErrUnknown)
}

func (c *crash) Renew(ctx context.Context, id store.LeaseID) error {
	if c.isDead() {
		return store.ErrUnavailable
	}
	return c.Store.Renew(ctx, id)
}

func (c *crash) Revoke(ctx context.Context, id store.LeaseID) error {
	if c.isDead() {
		return store.ErrUnavailable
	}
	return c.Store.Revoke(ctx, id)
}

func (c *crash) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}
