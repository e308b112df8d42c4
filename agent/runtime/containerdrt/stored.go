package containerdrt

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/v2/core/images"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

// labelSource says where an image came from last. Those of earlier versions have no such label.
const (
	labelSource  = labelPrefix + "source"
	fromRegistry = "registry"
	fromArchive  = "archive"
)

// StoredImages lists what is there.
func (r *imageStore) StoredImages(ctx context.Context) ([]runtime.StoredImage, error) {
	ctx, done := r.begin(ctx, lookTime)
	defer done()
	found, err := r.client.ImageService().List(ctx)
	if err != nil {
		return nil, r.translate(ctx, "list images", err)
	}
	out := make([]runtime.StoredImage, 0, len(found))
	for _, f := range found {
		out = append(out, stored(f))
	}
	return out, nil
}

func stored(i images.Image) runtime.StoredImage {
	return runtime.StoredImage{Name: i.Name, Digest: i.Target.Digest.String(), Pulled: i.Labels[labelSource] == fromRegistry, Since: i.UpdatedAt}
}

// RemoveImage removes a pulled image, and returns when the daemon has freed its room. ErrNotFound:
// there is none of that name that was pulled and has that digest. ErrUnavailable: an archive is being
// loaded, which may give the name to another.
func (r *imageStore) RemoveImage(ctx context.Context, i runtime.StoredImage) error {
	ctx, done := r.begin(ctx, actTime)
	defer done()
	what := fmt.Sprintf("remove image %q", i.Name)
	if !r.loading.TryLock() {
		return fmt.Errorf("%s: %w: an archive is being loaded", what, runtime.ErrUnavailable)
	}
	defer r.loading.Unlock()
	now, err := r.client.ImageService().Get(ctx, i.Name)
	if err != nil {
		return r.translate(ctx, what, err)
	}
	if is := stored(now); !is.Pulled || is.Digest != i.Digest {
		return fmt.Errorf("%s: %w: the name is another image's", what, runtime.ErrNotFound)
	}
	return r.translate(ctx, what, r.client.ImageService().Delete(ctx, i.Name, images.SynchronousDelete(), images.DeleteTarget(&now.Target)))
}

// ImageDisks are the disks of content and snapshots that this process sees.
func (r *imageStore) ImageDisks(ctx context.Context) ([]runtime.ImageDisk, error) {
	ctx, done := r.begin(ctx, lookTime)
	defer done()
	dirs, err := r.disks(ctx)
	if err != nil {
		return nil, r.translate(ctx, "look for the disks with images", err)
	}
	var out []runtime.ImageDisk
	for _, dir := range dirs {
		total, free, err := spaceOf(dir)
		switch {
		case errors.Is(err, unix.ENOENT): // the daemon sees another file tree than the agent
		case err != nil:
			return nil, err
		default:
			out = append(out, runtime.ImageDisk{Dir: dir, TotalBytes: total, FreeBytes: free, ReserveBytes: reserve(total)})
		}
	}
	return out, nil
}

// spaceOf is the size of the disk of a directory, and what is free of it for whoever is not root.
func spaceOf(dir string) (total, free int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("look at the free space of %s: %w", dir, err)
	}
	return int64(st.Blocks) * st.Bsize, int64(st.Bavail) * st.Bsize, nil
}
