package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
)

func (r *daemon) runcRoot() string { return filepath.Join(r.cfg.RunDir, "runc") }

// Purge ends and removes everything of ours on this host, images too: for the end
// of a demo or a test, never for a node that keeps its members.
func (r *Runtime) Purge(ctx context.Context) error {
	ctx, done := r.begin(ctx, 2*actTime)
	defer done()
	err := errors.Join(
		r.purgeContainers(ctx),
		r.reapShims(""),
		r.purgeSandboxes(ctx),
		r.cgroups.Remove("."),
		r.purgeRoots(),
		r.purgeStore(ctx),
		os.RemoveAll(r.runcRoot()),
		os.RemoveAll(filepath.Join(r.cfg.RunDir, "fifo")),
	)
	return r.translate(ctx, "purge "+r.cfg.Namespace, err)
}

func (r *Runtime) purgeContainers(ctx context.Context) error {
	if err := r.cgroups.Kill(ctx, "."); err != nil {
		return err
	}
	all, err := r.client.Containers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range all {
		task, err := c.Task(ctx, nil)
		if err == nil {
			_, err = task.Delete(ctx, containerd.WithProcessKill)
		}
		if err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
			continue
		}
		if err := c.Delete(ctx, containerd.WithSnapshotCleanup); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r *Runtime) purgeSandboxes(ctx context.Context) error {
	all, err := r.Sandboxes(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range all {
		errs = append(errs, r.RemoveSandbox(ctx, s.ID))
	}
	return errors.Join(errs...)
}

// purgeStore removes images, leases, snapshots and content until the daemon's
// collector has let go of all, then the namespace.
func (r *Runtime) purgeStore(ctx context.Context) error {
	for {
		err := errors.Join(r.purgeImages(ctx), r.purgeLeases(ctx), r.purgeSnapshots(ctx), r.purgeContent(ctx))
		if err == nil {
			err = r.client.NamespaceService().Delete(ctx, r.cfg.Namespace)
		}
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (r *Runtime) purgeImages(ctx context.Context) error {
	all, err := r.client.ImageService().List(ctx)
	if err != nil {
		return err
	}
	for _, img := range all {
		if err := r.client.ImageService().Delete(ctx, img.Name, images.SynchronousDelete()); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (r *Runtime) purgeLeases(ctx context.Context) error {
	all, err := r.client.LeasesService().List(ctx)
	if err != nil {
		return err
	}
	for _, l := range all {
		if err := r.client.LeasesService().Delete(ctx, l, leases.SynchronousDelete); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (r *Runtime) purgeSnapshots(ctx context.Context) error {
	name, err := r.snapshotterName(ctx)
	if err != nil {
		return err
	}
	sn := r.client.SnapshotService(name)
	var keys []string
	err = sn.Walk(ctx, func(_ context.Context, i snapshots.Info) error {
		keys = append(keys, i.Name)
		return nil
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, k := range keys { // parents fail until their children are gone: next round
		if err := sn.Remove(ctx, k); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r *Runtime) purgeContent(ctx context.Context) error {
	store := r.client.ContentStore()
	var all []content.Info
	err := store.Walk(ctx, func(i content.Info) error {
		all = append(all, i)
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range all {
		if err := store.Delete(ctx, i.Digest); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	return nil
}
