package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

func TestScratchInMemory(t *testing.T) {
	v := mounting(t)
	token, g := spec.Token{Epoch: 1, Number: 7}, int64(4711)
	const size = 1 << 20
	path, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: token, Name: "shm", Memory: true, SizeBytes: size, FSGroup: &g})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: token, Name: "tmp"})
	if err != nil || !inside(disk, v.scratch) || !inside(path, v.memory) {
		t.Errorf("on disk at %s, in memory at %s, error %v", disk, path, err)
	}
	if gotGroup, mode := stat(t, path); gotGroup != g || mode != 0o777|fs.ModeSetgid {
		t.Errorf("group %d mode %v", gotGroup, mode)
	}
	var fsys unix.Statfs_t
	if err := unix.Statfs(path, &fsys); err != nil || fsys.Type != unix.TMPFS_MAGIC || int64(fsys.Blocks)*fsys.Bsize != size {
		t.Errorf("type %x of %d bytes, error %v", fsys.Type, int64(fsys.Blocks)*fsys.Bsize, err)
	}
	if fsys.Flags&(unix.ST_NOSUID|unix.ST_NODEV) != unix.ST_NOSUID|unix.ST_NODEV {
		t.Errorf("programs in it may run as their owners, or devices be opened: flags %x", fsys.Flags)
	}
	half, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: token, Name: "half", Memory: true})
	if err := errors.Join(err, unix.Statfs(half, &fsys)); err != nil || fsys.Blocks == 0 {
		t.Errorf("without a size it has no bound, error %v; want the kernel's, half of the memory", err)
	}
	if err := os.WriteFile(filepath.Join(path, "big"), make([]byte, 2*size), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("more than its size: got %v, want %v", err, syscall.ENOSPC)
	}
	if again, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: token, Name: "shm", Memory: true, SizeBytes: size, FSGroup: &g}); err != nil || again != path {
		t.Errorf("again: %s, error %v", again, err)
	}
	if there, err := mountsAt(path); err != nil || len(there) != 1 {
		t.Errorf("mounts %q, error %v, want one", there, err)
	}
	clean := func(want bool) {
		t.Helper()
		if got, err := v.Clean(t.Context(), db0); err != nil || got != want {
			t.Errorf("clean: %v, error %v, want %v", got, err, want)
		}
	}
	clean(false)
	busy, err := os.Open(filepath.Join(path, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.RemoveScratch(t.Context(), db0); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("while a file is open: got %v, want %v", err, syscall.EBUSY)
	}
	clean(false)
	_ = busy.Close()
	if err := v.RemoveScratch(t.Context(), db0); err != nil {
		t.Fatal(err)
	}
	clean(true)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}
