package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Waits between two attempts to load the store, doubling.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// Cache mirrors a store. The zero Cache is of no use; see New. All methods are
// safe for concurrent use.
type Cache struct {
	store store.Store
	log   *slog.Logger

	mu         sync.RWMutex
	state      *state
	revChanged chan struct{} // closed and replaced when state.rev grows
	subs       map[*Subscription]struct{}
	nodeSubs   map[spec.NodeName][]*NodeSubscription
	following  following
	loaded     bool
	written    written
}

var _ Reader = (*Cache)(nil)

// New makes a cache of s that is empty (revision 0) until Run has loaded it.
func New(s store.Store, log *slog.Logger) *Cache {
	return &Cache{
		store: s, log: log, state: newState(0),
		revChanged: make(chan struct{}), subs: map[*Subscription]struct{}{}, nodeSubs: map[spec.NodeName][]*NodeSubscription{},
	}
}

// Run mirrors the store until ctx ends: a snapshot, then one watch from its
// revision; after any error a fresh snapshot. It returns nil when ctx ended, or
// an error that is store.ErrWentBack, after which the process must end.
func (c *Cache) Run(ctx context.Context) error {
	failures := 0
	for {
		loaded, err := c.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, store.ErrWentBack):
			return err
		case loaded:
			failures = 0
		}
		failures++
		if failures == 1 { // once, not at each attempt
			c.log.Warn("store watch ended", "err", err)
		}
		backoff.Sleep(ctx, backoff.After(firstRetry, lastRetry, failures))
	}
}

// follow loads a snapshot and applies the watch until it fails; loaded reports
// whether the snapshot was read.
func (c *Cache) follow(ctx context.Context) (loaded bool, err error) {
	rev, kvs, err := c.store.Snapshot(ctx, "")
	if err != nil {
		return false, err
	}
	if err := c.Load(rev, kvs); err != nil {
		return false, err
	}
	w, err := c.store.Watch(ctx, "", rev)
	if err != nil {
		return true, err
	}
	defer w.Close()
	for {
		b, err := w.Next(ctx)
		if err != nil {
			return true, err
		}
		if err := c.Apply(b); err != nil {
			return true, err
		}
	}
}

// Load replaces all by a snapshot. Run calls it; a simulation, which owns the order
// of things, calls it and Apply instead of Run. An error is store.ErrWentBack.
func (c *Cache) Load(rev store.Rev, kvs []store.KV) error {
	fresh := newState(rev)
	for _, kv := range kvs {
		if err := fresh.apply(store.Event{KV: kv}, nil); err != nil {
			c.log.Error("unreadable record skipped", "err", err)
		}
	}
	fresh.settle(rev)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkContinues(fresh); err != nil {
		return err
	}
	fresh.written = &c.written
	c.written.clear() // the snapshot has it, or the watch brings it anew
	c.state, c.loaded = fresh, true
	c.publish(&Changes{All: true})
	return nil
}

// Apply takes over one batch; batches already contained are dropped. See Load.
func (c *Cache) Apply(b store.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.Rev <= c.state.rev {
		return nil
	}
	epoch, cluster := c.state.epoch, c.state.cluster
	ch := newChanges()
	for _, ev := range b.Events {
		if err := c.state.apply(ev, ch); err != nil {
			c.log.Error("unreadable record skipped", "err", err)
		}
	}
	c.state.settle(b.Rev)
	c.publish(ch)
	if c.state.epoch < epoch || (cluster != "" && c.state.cluster != cluster) {
		return fmt.Errorf("%w: epoch %d of cluster %q became epoch %d of cluster %q",
			store.ErrWentBack, epoch, cluster, c.state.epoch, c.state.cluster)
	}
	return nil
}

// checkContinues refuses a snapshot that is older than what was seen, of another cluster, or of
// which a part was written before the revision that was seen, and was not seen.
func (c *Cache) checkContinues(fresh *state) error {
	old := c.state
	switch {
	case fresh.epoch < old.epoch:
		return fmt.Errorf("%w: from epoch %d to %d", store.ErrWentBack, old.epoch, fresh.epoch)
	case fresh.rev < old.rev:
		return fmt.Errorf("%w: from revision %d to %d", store.ErrWentBack, old.rev, fresh.rev)
	case old.cluster != "" && fresh.cluster != old.cluster:
		return fmt.Errorf("%w: from cluster %q to %q", store.ErrWentBack, old.cluster, fresh.cluster)
	}
	for key, mod := range fresh.mods {
		if had := old.mods[key]; mod <= old.rev && mod != had {
			return fmt.Errorf("%w: at revision %d the key %s was last written at %d, and now says %d", store.ErrWentBack, old.rev, key, had, mod)
		}
	}
	return nil
}

// publish wakes waiters and subscribers; mu is held.
func (c *Cache) publish(ch *Changes) {
	close(c.revChanged)
	c.revChanged = make(chan struct{})
	for s := range c.subs {
		s.add(ch)
	}
	c.publishToNodes(ch)
}

// Wait implements Reader. Ask only for revisions of commits that wrote something
// below the store's prefix: others are never delivered.
func (c *Cache) Wait(ctx context.Context, rev store.Rev) error {
	for {
		c.mu.RLock()
		reached, moved := c.loaded && c.state.rev >= rev, c.revChanged
		c.mu.RUnlock()
		if reached {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for store revision %d: %w", rev, ctx.Err())
		case <-moved:
		}
	}
}

// Look implements Reader.
func (c *Cache) Look(f func(View)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	f(View{state: c.state})
}

// Subscribe implements Reader. Its first Take says All when the cache is loaded.
func (c *Cache) Subscribe() *Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Subscription{cache: c, changed: notify.New(), gathered: newChanges()}
	c.subs[s] = struct{}{}
	if c.loaded {
		s.add(&Changes{All: true})
	}
	return s
}
