package containerdrt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/containerd/containerd/v2/core/remotes"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stead-project/stead/agent/runtime"
)

// blob fetches the same bytes always, and can be sought if seekable.
type blob struct {
	remotes.Resolver
	text     string
	seekable bool
}

func (b blob) Fetcher(context.Context, string) (remotes.Fetcher, error) { return b, nil }

func (b blob) Fetch(context.Context, ocispec.Descriptor) (io.ReadCloser, error) {
	r := bytes.NewReader([]byte(b.text))
	if b.seekable {
		return struct {
			io.ReadSeeker
			io.Closer
		}{r, io.NopCloser(nil)}, nil
	}
	return io.NopCloser(io.MultiReader(r)), nil
}

func TestWhatIsFetchedIsCountedByItsPlace(t *testing.T) {
	for _, seekable := range []bool{false, true} {
		p := &runtime.PullProgress{}
		p.Expect(10)
		f, err := counting{blob{text: "0123456789", seekable: seekable}, p, &silence{}}.Fetcher(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := f.Fetch(t.Context(), ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(manifest); err != nil || p.Tenths() != 0 {
			t.Errorf("a manifest is counted: %d tenths, %v", p.Tenths(), err)
		}
		layer, err := f.Fetch(t.Context(), ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(layer, make([]byte, 5)); err != nil || p.Tenths() != 5 {
			t.Errorf("half of it: %d tenths, %v", p.Tenths(), err)
		}
		seeker, can := layer.(io.Seeker)
		if can != seekable {
			t.Fatalf("it can be sought: %v, want %v", can, seekable)
		}
		if can {
			if at, err := seeker.Seek(8, io.SeekStart); err != nil || at != 8 || p.Tenths() != 8 {
				t.Errorf("what was there before: at %d, %d tenths, %v", at, p.Tenths(), err)
			}
			if _, err := seeker.Seek(0, io.SeekStart); err != nil || p.Tenths() != 0 {
				t.Errorf("once more: %d tenths, %v", p.Tenths(), err)
			}
		}
		if _, err := io.ReadAll(layer); err != nil || p.Tenths() != 10 {
			t.Errorf("all of it: %d tenths, %v", p.Tenths(), err)
		}
	}
}

func TestPullsOfSeveralImagesHaveAsManyPlacesAsMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &imageStore{places: make(chan struct{}, 2)}
		place := func(ctx context.Context) (func(), *runtime.PullProgress, error) {
			p := &runtime.PullProgress{}
			leave, err := r.awaitPlace(ctx, runtime.Pull{Image: "a", Progress: p})
			return leave, p, err
		}
		first, _, err := place(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := place(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := place(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a third: %v", err)
		}
		third := make(chan error)
		progress := &runtime.PullProgress{}
		go func() {
			_, err := r.awaitPlace(t.Context(), runtime.Pull{Image: "a", Progress: progress})
			third <- err
		}()
		synctest.Wait()
		if got, want := progress.Text("a"), "image a: waiting: 2 other images are being pulled, which is --max-parallel-pulls of the agent"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		first()
		if err := <-third; err != nil || progress.Text("a") != "pulling a: asking the registry" {
			t.Errorf("%v, %q", err, progress.Text("a"))
		}
	})
}
