package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/stead-project/stead/store"
)

// Grant implements store.Store. A part of a second counts as a whole one; etcd may
// make very short leases longer.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	seconds := int64(max((ttl+time.Second-1)/time.Second, 1))
	resp, err := s.client.Grant(ctx, seconds)
	if err != nil {
		return 0, fmt.Errorf("grant lease: %w", readError(err))
	}
	return store.LeaseID(resp.ID), nil
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, id store.LeaseID) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	if _, err := s.client.KeepAliveOnce(ctx, clientv3.LeaseID(id)); err != nil {
		return fmt.Errorf("renew lease %d: %w", id, readError(err))
	}
	return nil
}

// Revoke implements store.Store.
func (s *Store) Revoke(ctx context.Context, id store.LeaseID) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	_, err := s.client.Revoke(ctx, clientv3.LeaseID(id))
	if err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return fmt.Errorf("revoke lease %d: %w", id, readError(err))
}

// Close implements store.Store: calls and watches end, and the connection if the
// store made it.
func (s *Store) Close() error {
	if s.closing.Err() != nil {
		return nil
	}
	s.close()
	if !s.own {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close etcd store: %w", err)
	}
	return nil
}
