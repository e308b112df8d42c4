package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"io"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"

	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
)

// pull fetches through the registries and mirrors of HostsDir, with each credential in turn, as
// Kubernetes does. The download runs in this process, so it depends on no configuration of the daemon.
func (r *imageStore) pull(ctx context.Context, p runtime.Pull) (containerd.Image, error) {
	name, err := fullName(p.Image)
	if err != nil {
		return nil, fmt.Errorf("pull %q: %w: %w", p.Image, runtime.ErrImageMissing, err)
	}
	credentials, err := p.Tried()
	if err != nil {
		return nil, fmt.Errorf("pull %q: %w: %w", p.Image, runtime.ErrImagePull, err)
	}
	sn, err := r.snapshotterName(ctx)
	if err != nil {
		return nil, err
	}
	var first error
	for _, c := range credentials {
		img, err := r.pullAs(ctx, name, sn, c, p.Progress)
		if err == nil {
			return img, nil
		}
		refused, ofRegistry := errors.AsType[*registryError](err)
		switch {
		case ctx.Err() != nil:
			return nil, r.translate(ctx, fmt.Sprintf("pull %q", p.Image), ctx.Err())
		case !ofRegistry:
			return nil, err
		case r.Ping(ctx) != nil:
			return nil, fmt.Errorf("pull %q: %w: containerd went away while it was pulled", p.Image, runtime.ErrUnavailable)
		case first == nil:
			first = refusalOf(refused.error, c, name, r.cfg.HostsDir)
		}
	}
	return nil, fmt.Errorf("pull %q: %w", p.Image, first)
}

// registryError is an error of a registry, or of the way to it: another credential may help.
type registryError struct{ error }

// pullAs pulls with one credential. An error that is no *registryError has its kind.
func (r *imageStore) pullAs(
	ctx context.Context, name, snapshotter string, c registry.Login, progress *runtime.PullProgress,
) (containerd.Image, error) {
	ctx = quiet(ctx, io.Discard)
	progress.Begin()
	var img containerd.Image
	var pulled error
	silent := false
	err := r.withFreeSpace(ctx, fmt.Sprintf("pull %q", name), keepPartial, func(ctx context.Context) error {
		ctx, silence := breakOffSilent(ctx)
		defer silence.stop()
		expect := r.expect(progress)
		img, pulled = r.client.Pull(ctx, name, containerd.WithPullUnpack, containerd.WithPullSnapshotter(snapshotter),
			containerd.WithResolver(counting{newResolver(ctx, r.cfg.HostsDir, c), progress, silence}),
			containerd.WithImageHandlerWrapper(func(next images.Handler) images.Handler { return expect(r.checkDeclaredSize(next)) }),
			containerd.WithPullLabel(labelSource, fromRegistry))
		silent = isSilent(ctx)
		return pulled
	})
	switch {
	case pulled != nil && silent:
		return nil, silentRefusal(name, r.cfg.HostsDir)
	case errors.Is(err, runtime.ErrNoSpace), errors.Is(err, runtime.ErrImageRefused):
		return nil, fmt.Errorf("%w: %w", runtime.ErrImagePull, err)
	case pulled != nil:
		return nil, &registryError{pulled}
	}
	return img, err
}
