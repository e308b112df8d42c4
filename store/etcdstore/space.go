package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/stead-project/stead/store"
)

// leastRoom is what must be free below the quota for the alarm to end: else the next
// write would raise it again.
const leastRoom = 1 << 20

// Status implements store.Store: that of the first endpoint which answers.
func (s *Store) Status(ctx context.Context) (store.Status, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	var errs []error
	for _, endpoint := range s.endpoints() {
		resp, err := s.client.Status(ctx, endpoint)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		return store.Status{
			Rev:        store.Rev(resp.Header.Revision),
			SizeBytes:  resp.DbSize,
			QuotaBytes: resp.DbSizeQuota,
			Alarm:      strings.Join(resp.Errors, "; "),
			Version:    resp.Version,
		}, nil
	}
	return store.Status{}, fmt.Errorf("status: %w", readError(errors.Join(errs...)))
}

// endpoints are those of all servers.
func (s *Store) endpoints() []string {
	if all := s.client.Endpoints(); len(all) > 0 {
		return all
	}
	return []string{""} // in-process
}

// Compact forgets the history before rev, of the whole server and not only of the
// store's prefix. A server compacts by itself; this is for tests and maintenance.
func (s *Store) Compact(ctx context.Context, rev store.Rev) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	if _, err := s.client.Compact(ctx, int64(rev)); err != nil {
		return fmt.Errorf("compact %d: %w", rev, readError(err))
	}
	return nil
}

// Shrink implements store.Store. Servers are defragmented one after the other, each
// of which answers nothing meanwhile; only the caller's context bounds it.
func (s *Store) Shrink(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	now, err := s.Status(ctx)
	if err != nil {
		return fmt.Errorf("shrink: %w", err)
	}
	_, err = s.client.Compact(ctx, int64(now.Rev), clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // nothing was written since the last time
		return fmt.Errorf("shrink: %w", readError(err))
	}
	for _, endpoint := range s.endpoints() {
		if _, err := s.client.Defragment(ctx, endpoint); err != nil {
			return fmt.Errorf("shrink %s: %w", endpoint, readError(err))
		}
	}
	return s.disarm(ctx)
}

// disarm ends the alarm for want of space if every server has room.
func (s *Store) disarm(ctx context.Context) error {
	for _, endpoint := range s.endpoints() {
		resp, err := s.client.Status(ctx, endpoint)
		if err != nil {
			return fmt.Errorf("shrink: %w", readError(err))
		}
		if resp.DbSizeQuota > 0 && resp.DbSize > resp.DbSizeQuota-leastRoom {
			return fmt.Errorf("shrink: %w: what is stored takes %d of %d bytes", store.ErrNoSpace, resp.DbSize, resp.DbSizeQuota)
		}
	}
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("shrink: %w", readError(err))
	}
	for _, a := range alarms.Alarms {
		if a.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue // damage is not ours to forget
		}
		if _, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: a.MemberID, Alarm: a.Alarm}); err != nil {
			return fmt.Errorf("shrink: %w", readError(err))
		}
	}
	return nil
}
