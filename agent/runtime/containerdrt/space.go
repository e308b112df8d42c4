package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

// Of a disk with images this much is left free: a twentieth, at least leastFree and at most
// half of it.
const (
	freeShare = 20
	leastFree = 1 << 30
	// lookEvery is how often the disks are looked at while something is unpacked.
	lookEvery = 200 * time.Millisecond
)

// reserve is how many bytes of a disk of so many are left free.
func reserve(total int64) int64 { return min(max(total/freeShare, leastFree), total/2) }

// disks are the directories in which the daemon keeps content and snapshots.
type disks []string

// disks asks the daemon. A plugin that does not say where its files are (none of the daemon's
// own) is not looked at.
func (r *imageStore) disks(ctx context.Context) (disks, error) {
	sn, err := r.snapshotterName(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := r.client.IntrospectionService().Plugins(ctx, "type==io.containerd.content.v1", "type==io.containerd.snapshotter.v1,id=="+sn)
	if err != nil {
		return nil, err
	}
	var out disks
	for _, p := range answer.Plugins {
		if root := p.Exports["root"]; root != "" && !slices.Contains(out, root) {
			out = append(out, root)
		}
	}
	return out, nil
}

// checkFree reports whether so many bytes more leave each disk its reserve.
func (d disks) checkFree(bytes int64) error {
	for _, dir := range d {
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		if errors.Is(err, unix.ENOENT) {
			continue // the daemon sees another file tree than the agent
		}
		if err != nil {
			return fmt.Errorf("look at the free space of %s: %w", dir, err)
		}
		total, free := int64(st.Blocks)*st.Bsize, int64(st.Bavail)*st.Bsize
		if keep := reserve(total); free-bytes < keep {
			needs := ""
			if bytes > 0 {
				needs = fmt.Sprintf("%d more are needed, and ", bytes)
			}
			return fmt.Errorf("%w: the disk of %s has %d bytes free; %s%d are to stay free; make room on it",
				runtime.ErrNoSpace, dir, free, needs, keep)
		}
	}
	return nil
}

// watch calls full with the error as soon as room has one, until ctx ends.
func watch(ctx context.Context, room func(int64) error, full func(error)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := room(0); err != nil {
			full(err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keepPartial and dropPartial say what becomes of content that a failure left.
const (
	keepPartial = false // a pull that goes on may use it, until the daemon's collector comes
	dropPartial = true  // deleted before the call returns
)

// withFreeSpace does what fills the daemon's disks, and breaks it off when they get too full: then
// nothing of it is left, whatever drop says.
func (r *imageStore) withFreeSpace(ctx context.Context, what string, drop bool, do func(context.Context) error) error {
	disks, err := r.disks(ctx)
	if err != nil {
		return r.translate(ctx, what, err)
	}
	lease, err := r.client.LeasesService().Create(ctx, leases.WithRandomID(), leases.WithExpiration(24*time.Hour))
	if err != nil {
		return r.translate(ctx, what, err)
	}
	within, full := context.WithCancelCause(leases.WithLease(ctx, lease.ID))
	var watching sync.WaitGroup
	watching.Go(func() { watch(within, disks.checkFree, full) })
	err = do(within)
	cause := context.Cause(within)
	full(nil)
	watching.Wait()
	switch {
	case err == nil:
	case cause != nil && ctx.Err() == nil:
		err = cause
	case strings.Contains(err.Error(), unix.ENOSPC.Error()): // of the daemon, faster than the watch
		err = fmt.Errorf("%w: %w", runtime.ErrNoSpace, err)
	}
	var opts []leases.DeleteOpt
	if err != nil && (drop || errors.Is(err, runtime.ErrNoSpace)) {
		opts = append(opts, leases.SynchronousDelete)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTime)
	defer cancel()
	// A lease that stays ends after a day by itself.
	_ = r.client.LeasesService().Delete(end, lease, opts...)
	return r.translate(ctx, what, err)
}
