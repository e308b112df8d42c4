package containerdrt

import (
	"context"
	"fmt"
	"io"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stead-project/stead/agent/runtime"
)

// awaitTurn waits for the turn of an image, one pull of a name at a time.
func (r *imageStore) awaitTurn(ctx context.Context, p runtime.Pull) (done func(), err error) {
	p.Progress.Wait("another member of this node is pulling it")
	defer p.Progress.Wait("")
	return r.pulls.Wait(ctx, p.Image)
}

// awaitPlace waits until fewer pulls are under way than may be.
func (r *imageStore) awaitPlace(ctx context.Context, p runtime.Pull) (done func(), err error) {
	p.Progress.Wait(fmt.Sprintf("%d other images are being pulled, which is --max-parallel-pulls of the agent", cap(r.places)))
	defer p.Progress.Wait("")
	select {
	case r.places <- struct{}{}:
		return func() { <-r.places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// expect has a pull count what it is to fetch: of each manifest the parts that are not there yet.
func (r *imageStore) expect(p *runtime.PullProgress) func(images.Handler) images.Handler {
	return func(next images.Handler) images.Handler {
		return images.HandlerFunc(func(ctx context.Context, of ocispec.Descriptor) ([]ocispec.Descriptor, error) {
			children, err := next.Handle(ctx, of)
			for _, c := range children {
				if !images.IsManifestType(of.MediaType) {
					break
				}
				if _, err := r.client.ContentStore().Info(ctx, c.Digest); errdefs.IsNotFound(err) {
					p.Expect(c.Size)
				}
			}
			return children, err
		})
	}
}

// counting is a resolver that counts what is fetched of the parts of manifests, and notes when it waits for
// the registry.
type counting struct {
	remotes.Resolver
	progress *runtime.PullProgress
	silence  *silence
}

// Resolve implements remotes.Resolver.
func (c counting) Resolve(ctx context.Context, ref string) (string, ocispec.Descriptor, error) {
	c.silence.begin()
	defer c.silence.end(true)
	return c.Resolver.Resolve(ctx, ref)
}

// Fetcher implements remotes.Resolver.
func (c counting) Fetcher(ctx context.Context, ref string) (remotes.Fetcher, error) {
	f, err := c.Resolver.Fetcher(ctx, ref)
	return countingFetcher{f, c}, err
}

type countingFetcher struct {
	remotes.Fetcher
	by counting
}

// Fetch implements remotes.Fetcher.
func (c countingFetcher) Fetch(ctx context.Context, of ocispec.Descriptor) (io.ReadCloser, error) {
	c.by.silence.begin()
	rc, err := c.Fetcher.Fetch(ctx, of)
	c.by.silence.end(err == nil)
	if err != nil {
		return rc, err
	}
	counted := &countedReader{ReadCloser: rc, progress: c.by.progress, silence: c.by.silence}
	if images.IsManifestType(of.MediaType) || images.IsIndexType(of.MediaType) {
		counted.progress = nil
	}
	if seeker, ok := rc.(io.Seeker); ok { // with which a pull goes on that was broken off
		return &countedSeeker{counted, seeker}, nil
	}
	return counted, nil
}

// countedReader counts the place up to which it was read; progress may be nil.
type countedReader struct {
	io.ReadCloser
	progress *runtime.PullProgress
	silence  *silence
	at       int64
}

// Read implements io.Reader.
func (r *countedReader) Read(p []byte) (int, error) {
	r.silence.begin()
	n, err := r.ReadCloser.Read(p)
	r.silence.end(n > 0)
	r.moveTo(r.at + int64(n))
	return n, err
}

func (r *countedReader) moveTo(at int64) {
	r.progress.Fetched(at - r.at)
	r.at = at
}

type countedSeeker struct {
	*countedReader
	seeker io.Seeker
}

// Seek implements io.Seeker.
func (r *countedSeeker) Seek(offset int64, whence int) (int64, error) {
	at, err := r.seeker.Seek(offset, whence)
	if err == nil {
		r.moveTo(at)
	}
	return at, err
}
