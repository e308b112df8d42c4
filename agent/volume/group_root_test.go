package volume

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

// TestWhatIsMountedInAVolumeIsNotGiven: a file system, a directory of the same file system, and a file.
func TestWhatIsMountedInAVolumeIsNotGiven(t *testing.T) {
	v := mounting(t)
	path := ensure(t, v, true)
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "file"))
	mount := func(source, at, kind string, flags uintptr) {
		t.Helper()
		if err := unix.Mount(source, filepath.Join(path, at), kind, flags, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(filepath.Join(path, at), unix.MNT_DETACH) })
	}
	for _, dir := range []string{"disk", "bound", "own"} {
		if err := os.Mkdir(filepath.Join(path, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(path, "one"))
	write(t, filepath.Join(path, "own/file"))
	mount("tmpfs", "disk", "tmpfs", 0)
	write(t, filepath.Join(path, "disk/file"))
	mount(elsewhere, "bound", "", unix.MS_BIND)
	mount(filepath.Join(elsewhere, "file"), "one", "", unix.MS_BIND)
	g := group(t)
	if _, err := v.Ensure(t.Context(), db0, data, false, &runtime.Group{ID: g, Whole: true}); err != nil {
		t.Fatal(err)
	}
	for name, given := range map[string]bool{"": true, "own": true, "own/file": true, "disk": false, "disk/file": false, "bound": false, "bound/file": false, "one": false} {
		if got, _ := stat(t, filepath.Join(path, name)); (got == g) != given {
			t.Errorf("%q has group %d; given: want %v", name, got, given)
		}
	}
}
