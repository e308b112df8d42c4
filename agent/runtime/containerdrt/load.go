package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/archive"
)

// LoadImage imports an OCI or docker archive; of an image for several platforms,
// that of this machine.
func (r *imageStore) LoadImage(ctx context.Context, from io.Reader) ([]runtime.Image, error) {
	ctx, done := r.begin(ctx, loadTime)
	defer done()
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
	found, err := r.client.Import(ctx, out)
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
			_, err = r.client.ImageService().Update(ctx, was, "target")
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
