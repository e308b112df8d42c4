package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/stead-project/stead/store"
)

// Grant implements store.Store. A part of a second counts as a whole one; etcd may
// make very short leases longer.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	ctx, done := s.call(ctx)
	defer done()
	seconds := int64(max((ttl+time.Second-1)/time.Second, 1))
	resp, err := s.client.Grant(ctx, seconds)
	if err != nil {
		return 0, fmt.Errorf("grant lease: %w", readError(err))
	}
	if err := answered(ctx, resp.ResponseHeader, true); err != nil {
		return 0, fmt.Errorf("grant lease: %w", err)
	}
	return store.LeaseID(resp.ID), nil
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, id store.LeaseID) error {
	ctx, done := s.call(ctx)
	defer done()
	resp, err := s.client.KeepAliveOnce(ctx, clientv3.LeaseID(id))
	if err != nil {
		return fmt.Errorf("renew lease %d: %w", id, readError(err))
	}
	if err := answered(ctx, resp.ResponseHeader, false); err != nil {
		return fmt.Errorf("renew lease %d: %w", id, err)
	}
	return nil
}

// Revoke implements store.Store.
func (s *Store) Revoke(ctx context.Context, id store.LeaseID) error {
	ctx, done := s.call(ctx)
	defer done()
	resp, err := s.client.Revoke(ctx, clientv3.LeaseID(id))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("revoke lease %d: %w", id, readError(err))
	}
	if err := answered(ctx, resp.Header, true); err != nil {
		return fmt.Errorf("revoke lease %d: %w", id, err)
	}
	return nil
}

// Status implements store.Store: that of the endpoint which answers first. All are asked
// at once, for one that hangs must not use up the time of the others.
func (s *Store) Status(ctx context.Context) (store.Status, error) {
	ctx, done := s.call(ctx)
	defer done()
	if s.closing.Err() != nil { // etcd in this process would read a closed file
		return store.Status{}, fmt.Errorf("status: %w", readError(s.closing.Err()))
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	endpoints := s.client.Endpoints()
	if len(endpoints) == 0 {
		endpoints = []string{""} // in-process
	}
	type answer struct {
		resp *clientv3.StatusResponse
		err  error
	}
	answers := make(chan answer, len(endpoints))
	for _, endpoint := range endpoints {
		go func() {
			resp, err := s.client.Status(asking, endpoint)
			answers <- answer{resp, err}
		}()
	}
	var first *clientv3.StatusResponse
	var errs []error
	for range endpoints {
		a := <-answers
		errs = append(errs, a.err)
		if a.err == nil && first == nil {
			first = a.resp
			cancel() // the others end
		}
	}
	if first == nil {
		return store.Status{}, fmt.Errorf("status: %w", readError(errors.Join(errs...)))
	}
	if err := answered(ctx, first.Header, false); err != nil {
		return store.Status{}, fmt.Errorf("status: %w", err)
	}
	return store.Status{
		Rev:        store.Rev(first.Header.Revision),
		SizeBytes:  first.DbSize,
		UsedBytes:  first.DbSizeInUse,
		QuotaBytes: first.DbSizeQuota,
		Alarm:      strings.Join(first.Errors, "; "),
		Version:    first.Version,
	}, nil
}

// Compact forgets the history before rev, of the whole server and not only of the
// store's prefix. A server compacts by itself; this is for tests and maintenance.
func (s *Store) Compact(ctx context.Context, rev store.Rev) error {
	ctx, done := s.call(ctx)
	defer done()
	if _, err := s.client.Compact(ctx, int64(rev)); err != nil {
		return fmt.Errorf("compact %d: %w", rev, readError(err))
	}
	return nil
}

// Close implements store.Store: calls and watches end, and the connection if the
// store made it. It returns when no call is under way: an etcd in this process may be stopped then.
func (s *Store) Close() error {
	if s.closing.Err() != nil {
		return nil
	}
	s.close()
	s.calls.Lock()
	defer s.calls.Unlock()
	if !s.own {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close etcd store: %w", err)
	}
	return nil
}
