package containerdrt_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

func TestADirectoryInMemoryIsOfOneRunAndIsOpenedFromOutside(t *testing.T) {
	h, rt := newLoadedNode(t)
	shown := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(shown, "self"), 0o755), os.Chmod(filepath.Join(shown, "self"), 0o777)); err != nil {
		t.Fatal(err)
	}
	c := h.container("run")
	user := int64(1000)
	c.User = &user
	c.Mounts = []runtime.Mount{{Source: shown, Target: "/run/stead", ReadOnly: true}, {Target: "/run/stead/self", MemoryBytes: 64 << 10, MemoryFiles: 32}}
	for attempt := range 2 {
		c.Attempt = attempt
		h.start(rt, c)
		if _, err := rt.OpenDir(t.Context(), c.ID, "/run/stead/none"); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("of a directory that is not there: %v", err)
		}
		dir, err := rt.OpenDir(t.Context(), c.ID, "/run/stead/self")
		if err != nil {
			t.Fatal(err)
		}
		if there, err := dir.ReadDir(-1); err != nil || len(there) > 0 {
			t.Errorf("at start %d there is %v, %v", attempt, there, err)
		}
		var fsys unix.Statfs_t
		if err := unix.Fstatfs(int(dir.Fd()), &fsys); err != nil || fsys.Type != unix.TMPFS_MAGIC || fsys.Blocks*uint64(fsys.Bsize) != 64<<10 || fsys.Files != 33 {
			t.Errorf("got %+v, %v", fsys, err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(dir.Fd()), &st); err != nil || st.Mode&0o777 != 0o777 {
			t.Errorf("mode %o, %v: every user of the container is to write there", st.Mode, err)
		}
		fd, err := unix.Openat(int(dir.Fd()), "note", unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Write(fd, []byte(strings.Repeat("x", 128<<10))); n > 64<<10 {
			t.Errorf("wrote %d, %v", n, err)
		}
		unix.Close(fd)
		dir.Close()
		if err := rt.Signal(t.Context(), c.ID, 9, true); err != nil {
			t.Fatal(err)
		}
		h.wait(rt, c.ID)
		if _, err := rt.OpenDir(t.Context(), c.ID, "/run/stead/self"); !errors.Is(err, runtime.ErrNotRunning) {
			t.Errorf("after its end: %v", err)
		}
		if err := rt.Remove(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
	}
}
