package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/containerd/v2/core/remotes"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stead-project/stead/agent/runtime"
)

// drip sends one byte at a time, each after a pause; it is also the registry that is asked for it.
type drip struct {
	remotes.Resolver
	ctx          context.Context
	ask, between time.Duration // before an answer, and before each byte
	left         int
}

func (d *drip) pause(t time.Duration) error {
	select {
	case <-d.ctx.Done():
		return d.ctx.Err()
	case <-time.After(t):
		return nil
	}
}

func (d *drip) Resolve(_ context.Context, ref string) (string, ocispec.Descriptor, error) {
	return ref, ocispec.Descriptor{}, d.pause(d.ask)
}

func (d *drip) Fetcher(context.Context, string) (remotes.Fetcher, error) { return d, nil }

func (d *drip) Fetch(context.Context, ocispec.Descriptor) (io.ReadCloser, error) {
	return io.NopCloser(d), d.pause(d.ask)
}

func (d *drip) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	if err := d.pause(d.between); err != nil {
		return 0, err
	}
	d.left--
	return 1, nil
}

// TestAPullWithoutAByteIsBrokenOff: after silenceTime, be it the registry's answer or a byte that does not
// come; what is slow and comes is waited for, and so is what this host does meanwhile.
func TestAPullWithoutAByteIsBrokenOff(t *testing.T) {
	const short, long = silenceTime - time.Second, silenceTime + time.Second
	for name, c := range map[string]struct {
		ask, between, work time.Duration
		media              string
		broken             time.Duration // after which it is broken off; 0: it is not
	}{
		"slow, and done":                  {short, short, 0, ocispec.MediaTypeImageLayer, 0},
		"no answer":                       {long, 0, 0, ocispec.MediaTypeImageLayer, silenceTime},
		"no byte":                         {time.Second, long, 0, ocispec.MediaTypeImageLayer, silenceTime + 2*time.Second},
		"no byte of a manifest":           {time.Second, long, 0, ocispec.MediaTypeImageManifest, silenceTime + 2*time.Second},
		"this host works between two":     {0, time.Second, 2 * silenceTime, ocispec.MediaTypeImageLayer, 0},
		"a byte now and then for an hour": {0, 4 * time.Minute, 0, ocispec.MediaTypeImageLayer, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, s := breakOffSilent(t.Context())
				defer s.stop()
				err := pullDrip(ctx, counting{&drip{ctx: ctx, ask: c.ask, between: c.between, left: 15}, &runtime.PullProgress{}, s}, c.media, c.work)
				if took := time.Since(began); isSilent(ctx) != (c.broken > 0) || (err != nil) != (c.broken > 0) || c.broken > 0 && took != c.broken {
					t.Errorf("broken off: %v after %s, %v; want %s", isSilent(ctx), took, err, c.broken)
				}
			})
		})
	}
}

func pullDrip(ctx context.Context, c counting, media string, work time.Duration) error {
	if _, _, err := c.Resolve(ctx, "x"); err != nil {
		return err
	}
	f, err := c.Fetcher(ctx, "x")
	if err != nil {
		return err
	}
	rc, err := f.Fetch(ctx, ocispec.Descriptor{MediaType: media})
	for err == nil {
		_, err = rc.Read(make([]byte, 10))
		time.Sleep(work)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// TestOneByteOfAnyLayerIsEnough: layers are fetched together.
func TestOneByteOfAnyLayerIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := breakOffSilent(t.Context())
		defer s.stop()
		s.begin() // hangs
		for range 10 {
			s.begin()
			time.Sleep(silenceTime - time.Second)
			s.end(true)
		}
		synctest.Wait()
		if isSilent(ctx) {
			t.Error("broken off while bytes came")
		}
		s.begin()
		time.Sleep(2 * time.Second)
		s.end(false) // nothing was received
		time.Sleep(silenceTime)
		synctest.Wait()
		if !isSilent(ctx) {
			t.Error("not broken off")
		}
	})
}

func TestASilentRegistryIsNamed(t *testing.T) {
	err := silentRefusal("reg.example/team/box:1", "/etc/certs.d")
	want := `pull "reg.example/team/box:1": reg.example is silent: ` + fmt.Sprint(runtime.ErrImagePull) + ": nothing came for 5m0s"
	if !errors.Is(err, runtime.ErrImagePull) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
