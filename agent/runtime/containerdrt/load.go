package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/archive"
)

// LoadImage imports an OCI or docker archive; of an image for several platforms,
// that of this machine.
func (r *imageStore) LoadImage(ctx context.Context, from io.Reader) ([]runtime.Image, error) {
	ctx, done := r.begin(ctx, loadTime)
	defer done()
	r.loading.RLock()
	defer r.loading.RUnlock()
	var out []runtime.Image
	err := r.withFreeSpace(ctx, "load image", dropPartial, func(ctx context.Context) error {
		before, err := r.holdImages(ctx)
		if err != nil {
			return err
		}
		found, err := r.importChecked(ctx, from)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return errors.New("the archive names no image; give it one, as `docker save NAME` does")
		}
		out, err = r.list(ctx, found, true)
		if err != nil {
			return errors.Join(err, r.undoImport(ctx, found, before))
		}
		return nil
	})
	return out, err
}

// holdImages lists the images that are there, and has the daemon keep their content as long as the
// lease of ctx: the import may give their names to others.
func (r *imageStore) holdImages(ctx context.Context) ([]images.Image, error) {
	list, err := r.client.ImageService().List(ctx)
	if err != nil {
		return nil, err
	}
	lease, _ := leases.FromContext(ctx)
	for _, i := range list {
		content := leases.Resource{ID: i.Target.Digest.String(), Type: "content"}
		if err := r.client.LeasesService().AddResource(ctx, leases.Lease{ID: lease}, content); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// importChecked imports while the archive is judged: no image is made of a refused one.
func (r *imageStore) importChecked(ctx context.Context, from io.Reader) ([]images.Image, error) {
	disks, err := r.disks(ctx)
	if err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	judged := make(chan error, 1)
	go func() {
		err := archive.Check(in, from, archive.Bounds{Bytes: r.maxImageBytes(), Room: disks.checkFree})
		in.CloseWithError(err)
		judged <- err
	}()
	found, err := r.client.Import(ctx, out, containerd.WithImageLabels(map[string]string{labelSource: fromArchive}))
	out.CloseWithError(err) // the check ends when the importer has
	if verdict := <-judged; verdict != nil && (errors.Is(verdict, runtime.ErrImageRefused) || errors.Is(verdict, runtime.ErrNoSpace)) {
		return nil, verdict
	}
	return found, err
}

// undoImport undoes the import of images that could not be unpacked.
func (r *imageStore) undoImport(ctx context.Context, found, before []images.Image) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTime)
	defer cancel()
	old := map[string]images.Image{}
	for _, i := range before {
		old[i.Name] = i
	}
	var errs []error
	for _, i := range found {
		var err error
		if was, ok := old[i.Name]; ok {
			_, err = r.client.ImageService().Update(ctx, was, "target", "labels")
		} else {
			err = r.client.ImageService().Delete(ctx, i.Name)
		}
		if !errdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// maxImageBytes leaves room to add to it.
func (r *imageStore) maxImageBytes() int64 {
	if r.cfg.MaxImageBytes == 0 {
		return math.MaxInt64 / 4
	}
	return r.cfg.MaxImageBytes
}

// checkDeclaredSize refuses to pull an image whose layers, as they come, have too many bytes; what they
// unpack to is not known before.
func (r *imageStore) checkDeclaredSize(next images.Handler) images.Handler {
	return images.HandlerFunc(func(ctx context.Context, of ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		children, err := next.Handle(ctx, of)
		left := r.maxImageBytes()
		for _, c := range children {
			if images.IsManifestType(of.MediaType) && c.Size > left {
				return nil, fmt.Errorf("%w: its layers have more than %d bytes; --max-image-bytes of the agent sets this limit",
					runtime.ErrImageRefused, r.maxImageBytes())
			}
			left -= c.Size
		}
		return children, err
	})
}

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
		total, free, err := spaceOf(dir)
		if errors.Is(err, unix.ENOENT) {
			continue // the daemon sees another file tree than the agent
		}
		if err != nil {
			return err
		}
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
