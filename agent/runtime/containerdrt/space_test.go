package containerdrt

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
)

func TestADiskWithImagesKeepsSomethingFree(t *testing.T) {
	for total, want := range map[int64]int64{
		100 << 30: 5 << 30,
		10 << 30:  1 << 30,
		1 << 30:   512 << 20,
		0:         0,
	} {
		if got := reserve(total); got != want {
			t.Errorf("of %d bytes %d are kept free, want %d", total, got, want)
		}
	}
	dir := t.TempDir()
	if err := (disks{dir}).checkFree(math.MaxInt64 / 2); !errors.Is(err, runtime.ErrNoSpace) {
		t.Errorf("more than any disk has: %v", err)
	}
	if err := (disks{dir + "/elsewhere"}).checkFree(math.MaxInt64 / 2); err != nil {
		t.Errorf("a disk that the agent does not see: %v", err)
	}
}

func TestWhatUnpacksIsBrokenOffWhenTheDiskGetsTooFull(t *testing.T) {
	ctx, full := context.WithCancelCause(t.Context())
	looks := 0
	watch(ctx, func(int64) error {
		looks++
		if looks == 3 {
			return runtime.ErrNoSpace
		}
		return nil
	}, full)
	if err := context.Cause(ctx); looks != 3 || !errors.Is(err, runtime.ErrNoSpace) {
		t.Errorf("after %d looks: %v", looks, err)
	}
}
