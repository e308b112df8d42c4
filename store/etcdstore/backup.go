package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Backup writes all that the etcd below holds at one moment to w, also what is not Stead's, in the form of 'etcdctl
// snapshot save'. It has no time limit but ctx, and is of one member, which may lag.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	from, err := s.client.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("back up etcd: %w", err)
	}
	_, err = io.Copy(w, from)
	if err := errors.Join(err, from.Close()); err != nil {
		return fmt.Errorf("back up etcd: %w", err)
	}
	return nil
}
