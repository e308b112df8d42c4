package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
)

func growTo(bytes int64) records.VolumeOrder {
	return records.VolumeOrder{ID: db0, Claim: "data", Volume: data.ID, Number: 1, Class: "ssd", SizeBytes: bytes, Fate: records.FateKeep}
}

// total is how large the file system at path is.
func total(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Blocks) * st.Bsize
}

// mayGrowExt4 reports whether this process may let an ext4 grow that is mounted.
func mayGrowExt4(t *testing.T) bool {
	t.Helper()
	header, caps := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&header, &caps[0]); err != nil {
		t.Fatal(err)
	}
	return caps[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

func TestAVolumeGrowsWhileItIsWritten(t *testing.T) {
	h := imagingHost(t)
	path := h.ensure(sizedVolume(large))
	before := total(t, path)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	full := make(chan struct{})
	var once sync.Once
	written := int64(0)
	group.Go(func() {
		f, err := os.Create(filepath.Join(path, "big"))
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for block := make([]byte, 1<<18); ctx.Err() == nil && written < before+large/4; {
			n, err := f.Write(block)
			written += int64(n)
			if errors.Is(err, syscall.ENOSPC) {
				once.Do(func() { close(full) })
			} else if err != nil {
				t.Error(err)
				return
			}
		}
	})
	<-full
	if grown, err := h.v.Grow(t.Context(), growTo(2*large)); err != nil || !grown {
		t.Errorf("grown %v, error %v", grown, err)
	}
	group.Wait()
	stop()
	if after := total(t, path); after < before+large*9/10 || written < before {
		t.Errorf("%d bytes became %d, and %d were written", before, after, written)
	}
	for _, less := range []int64{2 * large, large} {
		if grown, err := h.v.Grow(t.Context(), growTo(less)); err != nil || grown {
			t.Errorf("to %d bytes: grown %v, error %v", less, grown, err)
		}
	}
	h.reboot()
	if st, err := os.Stat(filepath.Join(h.ensure(sizedVolume(large)), "big")); err != nil || st.Size() != written {
		t.Errorf("after a reboot: %v, error %v; want %d bytes", st, err, written)
	}
}

func TestAGrowthEndsWhereverTheAgentEnds(t *testing.T) {
	for _, step := range []string{"grow file", "sync grown file", "grow file system"} {
		for _, boots := range []bool{false, true} {
			h := imagingHost(t)
			path := h.ensure(sizedVolume(large))
			before := total(t, path)
			write(t, filepath.Join(path, "file"))
			killed := errors.New("killed")
			h.v.step = func(what string) error {
				if what == step {
					return killed
				}
				return nil
			}
			if _, err := h.v.Grow(t.Context(), growTo(2*large)); !errors.Is(err, killed) {
				t.Fatalf("%s: %v", step, err)
			}
			if boots {
				h.reboot()
			} else {
				h.restart()
			}
			path = h.ensure(sizedVolume(large))
			if _, err := h.v.Grow(t.Context(), growTo(2*large)); err != nil {
				t.Errorf("%s: %v", step, err)
			}
			if after := total(t, path); after < before+large*9/10 {
				t.Errorf("%s, booted %v: %d bytes became %d", step, boots, before, after)
			}
			if got, err := os.ReadFile(filepath.Join(path, "file")); string(got) != "precious" {
				t.Errorf("%s: it has %q, error %v", step, got, err)
			}
			h.reboot()
		}
	}
}

// What grew while it was not mounted has its size when it is, with no further order.
func TestAVolumeThatIsNotInUseGrows(t *testing.T) {
	h := imagingHost(t)
	before := total(t, h.ensure(sizedVolume(large)))
	h.reboot()
	if grown, err := h.v.Grow(t.Context(), growTo(2*large)); err != nil || !grown {
		t.Errorf("grown %v, error %v", grown, err)
	}
	if after := total(t, h.ensure(sizedVolume(large))); after < before+large*9/10 {
		t.Errorf("%d bytes became %d", before, after)
	}
}

// A host whose agent may not let an ext4 grow says so, and the member has what it had.
func TestAnExt4GrowsOrSaysWhyNot(t *testing.T) {
	h := imagingHost(t)
	m := meterOf(h.v)
	path := h.ensure(sizedVolume(small))
	before := total(t, path)
	write(t, filepath.Join(path, "file"))
	_, err := h.v.Grow(t.Context(), growTo(2*small))
	after, use := total(t, path), useNow(t, m)
	if mayGrowExt4(t) {
		if err != nil || after < before+small*8/10 || use.Problem != "" {
			t.Errorf("%d bytes became %d, error %v, problem %q", before, after, err, use.Problem)
		}
	} else if err == nil || after != before || !strings.Contains(use.Problem, "resize2fs") {
		t.Errorf("%d bytes became %d, error %v, problem %q", before, after, err, use.Problem)
	}
	write(t, filepath.Join(path, "more"))
}

func TestAGrowthForWhichThereIsNoRoomChangesNothing(t *testing.T) {
	h := imagingHost(t)
	m := meterOf(h.v)
	path := h.ensure(sizedVolume(small))
	before := total(t, path)
	if grown, err := h.v.Grow(t.Context(), growTo(1<<50)); grown || !errors.Is(err, runtime.ErrNoSpace) {
		t.Errorf("grown %v, error %v", grown, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(h.image(), &st); err != nil || st.Size != small || total(t, path) != before {
		t.Errorf("the image has %d bytes, error %v", st.Size, err)
	}
	if use := useNow(t, m); !strings.Contains(use.Problem, "grow volume data of default/db-0 to ") {
		t.Errorf("the problem is %q", use.Problem)
	}
	if _, err := h.v.Grow(t.Context(), growTo(small)); err != nil {
		t.Error(err)
	}
	if use := useNow(t, m); use.Problem != "" {
		t.Errorf("it is as large as it is to be, and the problem is %q", use.Problem)
	}
}

func TestADamagedImageDoesNotGrow(t *testing.T) {
	h := imagingHost(t)
	h.ensure(sizedVolume(small))
	h.reboot()
	if err := run(t.Context(), "debugfs", "-w", "-R", "ssv state 3", h.image()); err != nil {
		t.Fatal(err)
	}
	if grown, err := h.v.Grow(t.Context(), growTo(large)); grown || !errors.Is(err, runtime.ErrDamaged) {
		t.Errorf("grown %v, error %v", grown, err)
	}
	if st, err := os.Stat(h.image()); err != nil || st.Size() != small {
		t.Errorf("the image is %v, error %v", st, err)
	}
}

// A directory has no size; what is not there is made with its size.
func TestOnlyAnImageGrows(t *testing.T) {
	h := imagingHost(t)
	if grown, err := h.v.Grow(t.Context(), growTo(large)); grown || !errors.Is(err, runtime.ErrAbsent) {
		t.Errorf("what is not there: grown %v, error %v", grown, err)
	}
	h.v.sized = nil
	h.ensure(sizedVolume(small))
	if grown, err := h.v.Grow(t.Context(), growTo(large)); grown || err != nil {
		t.Errorf("a directory: grown %v, error %v", grown, err)
	}
	other := growTo(large)
	other.Volume = "fedcba9876543210fedcba9876543210"
	if grown, err := h.v.Grow(t.Context(), other); grown || !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("another's: grown %v, error %v", grown, err)
	}
}
