package home

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARunDirectoryIsClosedToOtherUsers(t *testing.T) {
	mode := func(path string) fs.FileMode {
		st, err := os.Stat(path)
		must(t, err)
		return st.Mode().Perm()
	}
	for _, c := range []struct {
		name    string
		prepare func(dir string) error
		refused string
	}{
		{"one that is not there", func(string) error { return nil }, ""},
		{"an empty one that others can read", func(dir string) error { return os.Mkdir(dir, 0o755) }, ""},
		{"one of an agent before this one", func(dir string) error { return os.MkdirAll(filepath.Join(dir, "files"), 0o755) }, ""},
		{"one that somebody else uses", func(dir string) error { return os.MkdirAll(filepath.Join(dir, "systemd"), 0o755) }, "something else in it"},
		{"a link", func(dir string) error { return os.Symlink(t.TempDir(), dir) }, "is a link"},
		{"one of another user", func(dir string) error {
			if os.Geteuid() != 0 {
				t.Skip("needs root")
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Chown(dir, 12345, -1)
		}, "belongs to user 12345"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			must(t, c.prepare(dir))
			err := PrepareRunDir(dir, true)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v, want %q", err, c.refused)
				}
				return
			}
			must(t, err)
			if got, files := mode(dir), mode(filepath.Join(dir, "files")); got != 0o700 || files != 0o711 {
				t.Errorf("mode %04o, of files %04o", got, files)
			}
		})
	}
}

func TestARunDirectoryOnADiskIsRefused(t *testing.T) {
	dir := "/proc/self/net" // any filesystem but tmpfs, and nothing is made there
	if err := PrepareRunDir(dir, false); err == nil || !strings.Contains(err.Error(), "is not on tmpfs") {
		t.Errorf("%s: got %v", dir, err)
	}
	shm, err := os.MkdirTemp("/dev/shm", "stead-test-")
	if err != nil {
		t.Skip("no tmpfs at /dev/shm")
	}
	defer os.RemoveAll(shm)
	if err := PrepareRunDir(filepath.Join(shm, "run"), false); err != nil {
		t.Errorf("on tmpfs: %v", err)
	}
}
