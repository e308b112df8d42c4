package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPurgeUnmountsBelowALinkBeforeItDeletes(t *testing.T) {
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs STEAD_ROOT_TESTS=1 and root: it mounts")
	}
	dir := t.TempDir()
	volume, at, link := filepath.Join(dir, "volume"), filepath.Join(dir, "run/subpath/a b"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(volume, 0o755), os.MkdirAll(at, 0o755), os.Symlink("run", link)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(volume, at, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	if err := unmountBelow(link, filepath.Join(dir, "none")); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(left), dir) {
		t.Errorf("still mounted: %s, %v", left, err)
	}
}
