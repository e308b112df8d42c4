package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/stead-project/stead/agent/runtime"
)

func TestALimitIsRefusedBelowTheMemoryThatIsHeld(t *testing.T) {
	for _, c := range []struct {
		limit, held int64
		refused     bool
	}{{0, 1 << 40, false}, {100, 99, false}, {100, 100, false}, {100, 101, true}} {
		err := holds(runtime.Resources{MemoryBytes: c.limit}, c.held)
		if errors.Is(err, runtime.ErrRefused) != c.refused || (err != nil) != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestWhatMayHealIsNoRefusal(t *testing.T) {
	late, cancel := context.WithCancel(t.Context())
	cancel()
	kernel := errors.New("runc update: unable to set memory limit to 4096: device or resource busy")
	for _, c := range []struct {
		name    string
		ctx     context.Context
		err     error
		refused bool
	}{
		{"nothing failed", t.Context(), nil, false},
		{"the kernel says no", t.Context(), kernel, true},
		{"the agent ends", late, kernel, false},
		{"the daemon is away", t.Context(), fmt.Errorf("dial: %w", errdefs.ErrUnavailable), false},
		{"the container has ended", t.Context(), fmt.Errorf("task: %w", errdefs.ErrNotFound), false},
		{"the host has no processes left", t.Context(), errors.New("fork/exec /usr/sbin/runc: resource temporarily unavailable"), false},
		{"the host has no memory left", t.Context(), errors.New("fork/exec /usr/sbin/runc: cannot allocate memory"), false},
	} {
		if err := refusal(c.ctx, c.err); errors.Is(err, runtime.ErrRefused) != c.refused || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestTheSizeOfAContainerIsKeptInItsLabels(t *testing.T) {
	want := runtime.Resources{CPUMillis: 1500, CPURequestMillis: 20, MemoryBytes: 1 << 40}
	if got := resourcesOf(map[string]string{labelSize: sizeLabel(want)}); got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, label := range []string{"", "1/2", "1/2/x"} {
		if got := resourcesOf(map[string]string{labelSize: label}); got != nil {
			t.Errorf("%q says %+v, want that it is not known", label, got)
		}
	}
}
