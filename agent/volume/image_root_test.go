package volume

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
)

// imaging is a host whose class ssd has sized volumes, and whose agent can be started again.
type imaging struct {
	t   *testing.T
	dir string
	v   *Volumes
}

func imagingHost(t *testing.T) *imaging {
	t.Helper()
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs STEAD_ROOT_TESTS=1 and root: it mounts")
	}
	if lacks := CheckSized(); len(lacks) > 0 {
		t.Fatal(lacks)
	}
	h := &imaging{t: t, dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(h.dir, "ssd"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.restart()
	t.Cleanup(func() {
		h.reboot()
		if left := h.loops(); len(left) > 0 {
			t.Errorf("loop devices are left: %q", left)
		}
	})
	return h
}

// restart starts the next agent.
func (h *imaging) restart() {
	h.t.Helper()
	v, err := New(Config{
		Root: filepath.Join(h.dir, "root"), RunDir: filepath.Join(h.dir, "run"), ClusterID: "cluster-1",
		Classes: map[string]string{"ssd": filepath.Join(h.dir, "ssd")}, Sized: []string{"ssd"},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.v = v
}

// reboot takes away what a boot takes away, and starts the next agent.
func (h *imaging) reboot() {
	h.t.Helper()
	if err := UnmountAll(filepath.Join(h.dir, "run")); err != nil {
		h.t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(h.dir, "run")); err != nil {
		h.t.Error(err)
	}
	h.restart()
}

// loops are the files of this host that are behind loop devices.
func (h *imaging) loops() (files []string) {
	h.t.Helper()
	paths, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range paths {
		if name, err := os.ReadFile(p); err == nil && strings.HasPrefix(string(name), h.dir) {
			files = append(files, strings.TrimSpace(string(name)))
		}
	}
	return files
}

func sizedVolume(bytes int64) records.MemberVolume {
	return records.MemberVolume{Claim: "data", ID: data.ID, Number: 1, Class: "ssd", SizeBytes: bytes}
}

func (h *imaging) ensure(vol records.MemberVolume) string {
	h.t.Helper()
	path, err := h.v.Ensure(h.t.Context(), db0, vol, true, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *imaging) refused(vol records.MemberVolume, fresh bool, want error) {
	h.t.Helper()
	if path, err := h.v.Ensure(h.t.Context(), db0, vol, fresh, nil); !errors.Is(err, want) {
		h.t.Errorf("it is at %q, error %v; want %v", path, err, want)
	}
}

func (h *imaging) place() string { return filepath.Join(h.dir, "ssd/default/db/data-0") }
func (h *imaging) image() string { return filepath.Join(h.place(), imageFile) }

const (
	small = 32 << 20
	large = xfsLeast
)

// fillUp writes until nothing more fits, and returns how much did.
func fillUp(t *testing.T, path string) (bytes int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); ; {
		n, err := f.Write(block)
		bytes += int64(n)
		switch {
		case errors.Is(err, syscall.ENOSPC):
			if err := f.Sync(); err != nil {
				t.Errorf("what was written cannot be kept: %v", err)
			}
			return bytes
		case err != nil:
			t.Fatal(err)
		case bytes > 2*large:
			t.Fatal("it has no limit")
		}
	}
}

func TestASizedVolumeHoldsItsSizeAndNoMore(t *testing.T) {
	for size, kind := range map[int64]string{small: ext4, large: xfs} {
		t.Run(kind, func(t *testing.T) {
			h := imagingHost(t)
			path := h.ensure(sizedVolume(size))
			other := sizedVolume(small)
			other.Claim, other.ID = "log", "fedcba9876543210fedcba9876543210"
			beside := h.ensure(other)
			if got := fillUp(t, filepath.Join(path, "big")); got > size || got < size*7/10 {
				t.Errorf("%d bytes fit in one of %d", got, size)
			}
			write(t, filepath.Join(beside, "file"))
			var st unix.Stat_t
			if err := unix.Stat(h.image(), &st); err != nil || st.Size != size || st.Blocks*512 < size {
				t.Errorf("the image has %d bytes, %d on disk, error %v", st.Size, st.Blocks*512, err)
			}
			var fsys unix.Statfs_t
			if err := unix.Statfs(path, &fsys); err != nil || fsys.Flags&(unix.ST_NOSUID|unix.ST_NODEV) != unix.ST_NOSUID|unix.ST_NODEV {
				t.Errorf("programs in it may run as their owners, or devices be opened: flags %x, error %v", fsys.Flags, err)
			}
			if found, mode := stat(t, path); found != 0 || mode != 0o755 {
				t.Errorf("group %d, mode %v", found, mode)
			}
		})
	}
}

// What is deleted in a volume stays the volume's: its disk may be full by then.
func TestAnImageKeepsItsSpace(t *testing.T) {
	for size, kind := range map[int64]string{small: ext4, large: xfs} {
		t.Run(kind, func(t *testing.T) {
			h := imagingHost(t)
			path := h.ensure(sizedVolume(size))
			fillUp(t, filepath.Join(path, "big"))
			if err := os.Remove(filepath.Join(path, "big")); err != nil {
				t.Fatal(err)
			}
			dir, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			if err := unix.Syncfs(int(dir.Fd())); err != nil {
				t.Fatal(err)
			}
			_ = run(t.Context(), "fstrim", filepath.Dir(path)) // that it is refused is as good
			var st unix.Stat_t
			if err := unix.Stat(h.image(), &st); err != nil || st.Blocks*512 < size {
				t.Errorf("%d of %d bytes are left to it, error %v", st.Blocks*512, size, err)
			}
		})
	}
}

func TestAnImageIsMadeOnceWhereverTheAgentEnds(t *testing.T) {
	for _, step := range []string{"reserve", "mkfs", "sync image", "name image", "mount", "mounted"} {
		t.Run(step, func(t *testing.T) {
			h := imagingHost(t)
			killed := errors.New("killed")
			reached := false
			h.v.step = func(what string) error {
				if what == step {
					reached = true
					return killed
				}
				return nil
			}
			if path, err := h.v.Ensure(t.Context(), db0, sizedVolume(small), true, nil); !errors.Is(err, killed) || !reached {
				t.Fatalf("it is at %q, error %v", path, err)
			}
			if step != "mounted" && len(h.loops()) > 0 {
				t.Errorf("loop devices are left: %q", h.loops())
			}
			h.restart()
			path := h.ensure(sizedVolume(small))
			write(t, filepath.Join(path, "file"))
			if there, err := mountsAt(filepath.Dir(path)); err != nil || len(there) != 1 || len(h.loops()) != 1 {
				t.Errorf("mounts %q, loop devices %q, error %v; want one each", there, h.loops(), err)
			}
			h.reboot()
			if got, err := os.ReadFile(filepath.Join(h.ensure(sizedVolume(small)), "file")); string(got) != "precious" {
				t.Errorf("after a reboot it has %q, error %v", got, err)
			}
			names, err := os.ReadDir(h.place())
			if err != nil || len(names) != 2 {
				t.Errorf("in its place are %v, error %v; want the owner file and the image", names, err)
			}
		})
	}
}

// While its image is not mounted, or is not there, nothing is taken for it.
func TestAnImageThatIsNotThereIsNotMadeAnew(t *testing.T) {
	h := imagingHost(t)
	write(t, filepath.Join(h.ensure(sizedVolume(small)), "file"))
	h.reboot()
	away := filepath.Join(h.dir, "away")
	if err := os.Rename(h.image(), away); err != nil {
		t.Fatal(err)
	}
	for _, fresh := range []bool{true, false} {
		h.refused(sizedVolume(small), fresh, runtime.ErrAbsent)
		if err := os.Mkdir(filepath.Join(h.place(), dataDir), 0o755); err != nil { // as an agent that knows no images may find
			t.Fatal(err)
		}
		h.refused(sizedVolume(small), fresh, runtime.ErrAbsent)
		if err := os.Remove(filepath.Join(h.place(), dataDir)); err != nil {
			t.Fatal(err)
		}
	}
	// Another volume's image is not taken for it, though the owner file is right.
	other := sizedVolume(small)
	other.Claim, other.ID = "log", "fedcba9876543210fedcba9876543210"
	h.ensure(other)
	h.reboot()
	elses := filepath.Join(h.dir, "ssd/default/db/log-0", imageFile)
	if err := os.Rename(elses, h.image()); err != nil {
		t.Fatal(err)
	}
	h.refused(sizedVolume(small), false, runtime.ErrForeign)
	if err := errors.Join(os.Rename(h.image(), elses), os.Rename(away, h.image())); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(h.ensure(sizedVolume(small)), "file")); string(got) != "precious" {
		t.Errorf("it has %q, error %v", got, err)
	}
}

// A file system that needs repair is said to, and left byte for byte.
func TestADamagedImageIsSaidAndLeft(t *testing.T) {
	for name, c := range map[string]struct {
		size int64
		harm func(f *os.File) error
		by   string // who may write it: the kernel, as it tries
	}{
		"ext4 that noted errors":   {small, func(f *os.File) error { return run(t.Context(), "debugfs", "-w", "-R", "ssv state 3", f.Name()) }, ""},
		"xfs without a group":      {large, func(f *os.File) error { return overwrite(f, large/4, large/2) }, "kernel"},
		"no file system":           {small, func(f *os.File) error { return overwrite(f, 0, 1<<20) }, ""},
		"shorter than it was once": {small, func(f *os.File) error { return f.Truncate(1024) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := imagingHost(t)
			write(t, filepath.Join(h.ensure(sizedVolume(c.size)), "file"))
			h.reboot()
			f, err := os.OpenFile(h.image(), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := c.harm(f); err != nil {
				t.Fatal(err)
			}
			before := sum(t, f)
			h.refused(sizedVolume(c.size), true, runtime.ErrDamaged)
			if c.by == "" && sum(t, f) != before {
				t.Error("the image was written")
			}
			if len(h.loops()) > 0 {
				t.Errorf("loop devices are left: %q", h.loops())
			}
		})
	}
}

func overwrite(f *os.File, from, to int64) error {
	_, err := f.WriteAt([]byte(strings.Repeat("x", int(to-from))), from)
	return err
}

func sum(t *testing.T, f *os.File) string {
	t.Helper()
	content, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %x", len(content), sha256.Sum256(content))
}

func TestAnImageIsOnDiskBeforeItHasItsName(t *testing.T) {
	h := imagingHost(t)
	broken := errors.New("the disk is broken")
	h.v.writer.Sync = func(f *os.File) error {
		if filepath.Base(f.Name()) == imageDraft {
			return broken
		}
		return f.Sync()
	}
	h.refused(sizedVolume(small), true, broken)
	if names, err := os.ReadDir(h.place()); err != nil || len(names) != 1 {
		t.Errorf("in its place are %v, error %v; want the owner file alone", names, err)
	}
	h.restart()
	h.ensure(sizedVolume(small))
}
