package memstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/store"
)

// lease is one lease with the keys that go with it.
type lease struct {
	id    store.LeaseID
	ttl   time.Duration
	ends  time.Time
	timer *time.Timer // nil when the clock is injected
	keys  map[string]bool
}

func (l *lease) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// Grant implements store.Store. A part of a second counts as a whole one.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	ttl = max((ttl+time.Second-1)/time.Second, 1) * time.Second
	var id store.LeaseID
	err := s.do(ctx, Call{Method: "Grant"}, func() error {
		s.lastLease++
		id = s.lastLease
		s.lease(id, ttl)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("grant lease: %w", err)
	}
	return id, nil
}

// lease begins a lease; mu is held.
func (s *Store) lease(id store.LeaseID, ttl time.Duration) {
	l := &lease{id: id, ttl: ttl, ends: s.now().Add(ttl), keys: map[string]bool{}}
	if s.timers {
		l.timer = time.AfterFunc(ttl, s.Expire)
	}
	s.leases[id] = l
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, id store.LeaseID) error {
	err := s.do(ctx, Call{Method: "Renew"}, func() error {
		l := s.leases[id]
		if l == nil {
			return store.ErrLeaseGone
		}
		l.ends = s.now().Add(l.ttl)
		if l.timer != nil {
			l.timer.Reset(l.ttl)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("renew lease %d: %w", id, err)
	}
	return nil
}

// Revoke implements store.Store.
func (s *Store) Revoke(ctx context.Context, id store.LeaseID) error {
	err := s.do(ctx, Call{Method: "Revoke"}, func() error {
		if l := s.leases[id]; l != nil {
			s.end(l)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("revoke lease %d: %w", id, err)
	}
	return nil
}

// Expire ends the leases whose time is over, in the order in which they ended.
// Only a store with an injected clock needs it called.
func (s *Store) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.expire()
	}
}

func (s *Store) expire() {
	if len(s.leases) == 0 {
		return
	}
	now := s.now()
	var over []*lease
	for _, l := range s.leases {
		if !now.Before(l.ends) {
			over = append(over, l)
		}
	}
	slices.SortFunc(over, func(a, b *lease) int {
		return cmp.Or(a.ends.Compare(b.ends), cmp.Compare(a.id, b.id))
	})
	for _, l := range over {
		s.end(l)
	}
}

// end removes the lease and, as one revision, its keys.
func (s *Store) end(l *lease) {
	l.stop()
	delete(s.leases, l.id)
	var ops []store.Op
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		ops = append(ops, store.Del(key))
	}
	s.apply(ops)
}
