package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// What cannot be seen to be unmounted is neither moved nor deleted, and counts as in use.
func TestNothingIsTouchedWhileItIsNotKnownWhatIsMounted(t *testing.T) {
	v := mounting(t)
	token := spec.Token{Epoch: 1, Number: 7}
	path := ensure(t, v, true)
	write(t, filepath.Join(path, "file"))
	lying := data
	lying.Claim, lying.ID = "log", "fedcba9876543210fedcba9876543210"
	if _, err := v.Ensure(t.Context(), db0, lying, true, nil); err != nil {
		t.Fatal(err)
	}
	order := toTrash
	order.Claim, order.Volume = lying.Claim, lying.ID
	if err := v.Reclaim(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	scratch, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: token, Name: "tmp"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.SubPath(t.Context(), subPath(path, "sub")); err != nil {
		t.Fatal(err)
	}
	memory, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: token, Name: "shm", Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	unknown := filepath.Join(t.TempDir(), "unknown")
	write(t, unknown)
	const table = "/proc/self/mountinfo"
	if err := unix.Mount(unknown, table, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(table, unix.MNT_DETACH) })
	for what, do := range map[string]func() error{
		"give up":    func() error { return v.Reclaim(t.Context(), toTrash) },
		"bring back": func() error { return v.Restore(t.Context(), order) },
		"erase":      func() error { return v.Erase(t.Context(), order.Class, order.Volume) },
		"scratch in memory": func() error {
			_, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: token, Name: "shm", Memory: true})
			return err
		},
		"subPath":        func() error { _, err := v.SubPath(t.Context(), subPath(path, "sub")); return err },
		"remove scratch": func() error { return v.RemoveScratch(t.Context(), db0) },
		"clean":          func() error { _, err := v.Clean(t.Context(), db0); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "unknown line") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if err := unix.Unmount(table, 0); err != nil {
		t.Fatal(err)
	}
	for _, there := range []string{filepath.Join(path, "file"), filepath.Join(v.classes["local"], trashDir, string(lying.ID), dataDir), scratch} {
		if _, err := os.Stat(there); err != nil {
			t.Error(err)
		}
	}
	if there, err := mountsAt(memory); err != nil || len(there) != 1 {
		t.Errorf("mounts %q, error %v, want one", there, err)
	}
	if err := v.RemoveScratch(t.Context(), db0); err != nil {
		t.Error(err)
	}
}

// A mount over another hides it: both go, and what was mounted stays.
func TestWhatIsMountedBelowAMountGoes(t *testing.T) {
	v := mounting(t)
	path := ensure(t, v, true)
	write(t, filepath.Join(path, "file"))
	scratch, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: spec.Token{Epoch: 1, Number: 7}, Name: "tmp"})
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(scratch, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, over := range []string{inner, scratch, scratch} {
		if err := unix.Mount(path, over, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.RemoveScratch(t.Context(), db0); err != nil {
		t.Error(err)
	}
	if there, err := mountsAt(v.scratch); err != nil || len(there) > 0 {
		t.Errorf("mounts %q, error %v", there, err)
	}
	if _, err := os.Stat(filepath.Join(path, "file")); err != nil {
		t.Errorf("the removal reached into what was mounted: %v", err)
	}
}

// A mount that is moved to another disk while it is walked leads there as little as a directory.
func TestAWalkNeverLeavesItsDisk(t *testing.T) {
	v := mounting(t)
	of := func(name string) string { return filepath.Join(v.scratch, name) }
	for _, at := range []string{"tree", "outside", "tree/m"} {
		if err := os.Mkdir(of(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", of(at), "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("", of(at), "", unix.MS_PRIVATE, ""); err != nil { // else none can be moved
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(of("outside/m"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, of("tree/m/file"))
	var tree, outside unix.Stat_t
	if err := errors.Join(unix.Stat(of("tree"), &tree), unix.Stat(of("outside"), &outside)); err != nil || tree.Ino != outside.Ino {
		t.Fatalf("tops of disks that have inodes %d and %d show little; error %v", tree.Ino, outside.Ino, err)
	}
	top, err := os.Open(of("tree"))
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	err = deeptree.Visits{File: func(int, string) error {
		return unix.Mount(of("tree/m"), of("outside/m"), "", unix.MS_MOVE, "")
	}, Dir: func(_ int, name string) error { return fmt.Errorf("%s was visited", name) }}.Walk(t.Context(), top)
	if !errors.Is(err, deeptree.ErrMoved) {
		t.Errorf("got %v", err)
	}
}

// TestAnEmptyDirInHugePages: a hugetlbfs with pages of the size, which ends with the life.
func TestAnEmptyDirInHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/hugepages/hugepages-2048kB"); err != nil {
		t.Skip("this kernel has no huge pages of 2Mi")
	}
	v := mounting(t)
	ask := runtime.Scratch{ID: db0, Token: spec.Token{Epoch: 1, Number: 7}, Name: "huge", HugePage: scalar.Page2Mi, SizeBytes: 4 << 20}
	for range 2 {
		path, err := v.Scratch(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Statfs_t
		if err := unix.Statfs(path, &st); err != nil || st.Type != unix.HUGETLBFS_MAGIC || st.Bsize != scalar.Page2Mi || st.Blocks != 2 {
			t.Errorf("it is %+v, %v; want hugetlbfs with two pages of 2Mi", st, err)
		}
	}
	if clean, err := v.Clean(t.Context(), db0); clean || err != nil {
		t.Errorf("clean %v, %v while it is mounted", clean, err)
	}
	if err := v.RemoveScratch(t.Context(), db0); err != nil {
		t.Fatal(err)
	}
	if clean, err := v.Clean(t.Context(), db0); !clean || err != nil {
		t.Errorf("clean %v, %v after it was removed", clean, err)
	}
}
