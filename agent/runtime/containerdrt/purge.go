package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/api/types/runc/options"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/oci"

	"github.com/stead-project/stead/agent/runtime"
)

// runtimeOptions say to the shim which program makes a container, and where that keeps its state: runc and others each in a
// directory of its own, for they write it in forms of their own.
func (r *daemon) runtimeOptions() *options.Options {
	if r.cfg.OCIRuntime == "" {
		return &options.Options{Root: r.runtimeRoot("runc")}
	}
	return &options.Options{BinaryName: r.cfg.OCIRuntime, Root: r.runtimeRoot(filepath.Base(r.cfg.OCIRuntime))}
}

// specVersion is written into specs for programs other than runc: Debian's crun takes 1.0 alone, of which no more is used.
const specVersion = "1.0.2"

// setVersion has a spec name a version that its program takes. runc takes all.
func (r *daemon) setVersion(s *oci.Spec) {
	if r.cfg.OCIRuntime != "" {
		s.Version = specVersion
	}
}

func (r *daemon) runtimeRoot(program string) string { return filepath.Join(r.cfg.RunDir, program) }

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
		os.RemoveAll(r.runtimeRoot("runc")),
		os.RemoveAll(r.runtimeRoot("crun")),
		os.RemoveAll(filepath.Join(r.cfg.RunDir, "fifo")),
		os.RemoveAll(filepath.Join(r.cfg.RunDir, "pause")),
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
	return removeAll(all, func(c containerd.Container) error {
		task, err := c.Task(ctx, nil)
		if err == nil {
			_, err = task.Delete(ctx, containerd.WithProcessKill)
		}
		if unlessGone(err) != nil {
			return err
		}
		return c.Delete(ctx, containerd.WithSnapshotCleanup)
	})
}

// removeAll removes as many as it can; what is gone already is no error.
func removeAll[T any](all []T, remove func(T) error) error {
	var errs []error
	for _, x := range all {
		errs = append(errs, unlessGone(remove(x)))
	}
	return errors.Join(errs...)
}

func (r *Runtime) purgeSandboxes(ctx context.Context) error {
	all, err := r.Sandboxes(ctx)
	if err != nil {
		return err
	}
	return removeAll(all, func(s runtime.Sandbox) error { return r.RemoveSandbox(ctx, s.ID) })
}

// purgeStore removes images, leases, snapshots and content until the daemon's
// collector has let go of all, then the namespace.
func (r *Runtime) purgeStore(ctx context.Context) error {
	for {
		err := errors.Join(r.purgeImages(ctx), r.purgeLeases(ctx), r.purgeSnapshots(ctx), r.purgeContent(ctx))
		if err == nil {
			err = r.client.NamespaceService().Delete(ctx, r.cfg.Namespace)
		}
		if unlessGone(err) == nil {
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
	return removeAll(all, func(i images.Image) error {
		return r.client.ImageService().Delete(ctx, i.Name, images.SynchronousDelete())
	})
}

func (r *Runtime) purgeLeases(ctx context.Context) error {
	all, err := r.client.LeasesService().List(ctx)
	if err != nil {
		return err
	}
	return removeAll(all, func(l leases.Lease) error {
		return r.client.LeasesService().Delete(ctx, l, leases.SynchronousDelete)
	})
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
	// Parents fail until their children are gone: next round.
	return removeAll(keys, func(key string) error { return sn.Remove(ctx, key) })
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
	return removeAll(all, func(i content.Info) error { return store.Delete(ctx, i.Digest) })
}
