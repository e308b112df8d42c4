package containerdrt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/reference"
	"github.com/containerd/errdefs"

	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/turns"
	"github.com/stead-project/stead/spec"
)

// imageStore is the node's images.
type imageStore struct {
	*daemon
	pulls  turns.Of[string] // one pull of a name at a time
	places chan struct{}    // of pulls that are under way
	// loading is held by those who load archives, and alone by who removes an image.
	loading sync.RWMutex
}

// EnsureImage looks for the name as it is written, then as docker would write it
// in full (box → docker.io/library/box:latest), and pulls the latter.
func (r *imageStore) EnsureImage(ctx context.Context, p runtime.Pull) (runtime.Image, error) {
	ref := p.Image
	ctx, done := r.begin(ctx, loadTime)
	defer done()
	pulled, err := r.awaitTurn(ctx, p)
	if err != nil {
		return runtime.Image{}, fmt.Errorf("image %q: %w", ref, err)
	}
	defer pulled()
	if p.Policy != spec.PullAlways {
		img, err := r.findImage(ctx, ref)
		if err == nil {
			return r.describe(ctx, img), nil
		}
		if !errors.Is(err, runtime.ErrImageMissing) {
			return runtime.Image{}, err
		}
		if p.Policy == spec.PullNever {
			return runtime.Image{}, fmt.Errorf("%w; its pull policy is Never: load it with `stead image load`", err)
		}
	}
	leave, err := r.awaitPlace(ctx, p)
	if err != nil {
		return runtime.Image{}, fmt.Errorf("image %q: %w", ref, err)
	}
	defer leave()
	img, err := r.pull(ctx, p)
	if err != nil {
		return runtime.Image{}, err
	}
	return r.describe(ctx, img), nil
}

// findImage returns a present image, unpacked.
func (r *imageStore) findImage(ctx context.Context, ref string) (containerd.Image, error) {
	names := []string{ref}
	if full, err := fullName(ref); err == nil && full != ref {
		names = append(names, full)
	}
	for _, name := range names {
		img, err := r.client.GetImage(ctx, name)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, r.translate(ctx, fmt.Sprintf("image %q", ref), err)
		}
		if err := r.unpack(ctx, img); errors.Is(err, runtime.ErrNotFound) {
			return nil, fmt.Errorf("image %q: %w: its name is there, its content is not: %w", ref, runtime.ErrImageMissing, err)
		} else if errors.Is(err, runtime.ErrNoSpace) {
			return nil, fmt.Errorf("%w: %w", runtime.ErrImagePull, err)
		} else if err != nil {
			return nil, err
		}
		return img, nil
	}
	return nil, fmt.Errorf("image %q: %w", ref, runtime.ErrImageMissing)
}

func (r *imageStore) unpack(ctx context.Context, img containerd.Image) error {
	sn, err := r.snapshotterName(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("unpack image %q", img.Name())
	ready, err := img.IsUnpacked(ctx, sn)
	if err != nil {
		return r.translate(ctx, what, err)
	}
	if ready {
		return nil
	}
	return r.withFreeSpace(ctx, what, keepPartial, func(ctx context.Context) error { return img.Unpack(ctx, sn) })
}

// Images lists what is present.
func (r *imageStore) Images(ctx context.Context) ([]runtime.Image, error) {
	ctx, done := r.begin(ctx, lookTime)
	defer done()
	found, err := r.client.ImageService().List(ctx)
	if err != nil {
		return nil, r.translate(ctx, "list images", err)
	}
	return r.list(ctx, found, false)
}

func (r *imageStore) list(ctx context.Context, found []images.Image, unpack bool) ([]runtime.Image, error) {
	out := make([]runtime.Image, 0, len(found))
	for _, f := range found {
		img := containerd.NewImage(r.client, f)
		if unpack {
			if err := r.unpack(ctx, img); err != nil {
				return nil, err
			}
		}
		out = append(out, r.describe(ctx, img))
	}
	slices.SortFunc(out, func(a, b runtime.Image) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// describe leaves the size 0 where it is not known.
func (r *imageStore) describe(ctx context.Context, img containerd.Image) runtime.Image {
	size, err := img.Size(ctx)
	if err != nil {
		size = 0
	}
	return runtime.Image{Name: img.Name(), Digest: img.Target().Digest.String(), SizeBytes: size}
}

// snapshotterName asks the daemon once which snapshotter works.
func (r *daemon) snapshotterName(ctx context.Context) (string, error) {
	r.mu.Lock()
	name := r.snapshotter
	r.mu.Unlock()
	if name != "" {
		return name, nil
	}
	answer, err := r.client.IntrospectionService().Plugins(ctx, "type==io.containerd.snapshotter.v1")
	if err != nil {
		return "", r.translate(ctx, "ask for snapshotters", err)
	}
	usable := map[string]bool{}
	for _, p := range answer.Plugins {
		usable[p.ID] = p.InitErr == nil
	}
	for _, name := range []string{"overlayfs", "native"} {
		if usable[name] {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.snapshotter = name
			return name, nil
		}
	}
	return "", errors.New("containerd has neither the overlayfs nor the native snapshotter")
}

// fullName writes an image's name as docker does.
func fullName(image string) (string, error) {
	full := registry.FullName(image)
	if _, err := reference.Parse(full); err != nil || image == "" || strings.ContainsAny(image, " \t\n") {
		return "", fmt.Errorf("invalid image name %q", image)
	}
	return full, nil
}
