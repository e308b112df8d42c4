package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/spec"
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
	scratch, err := v.Scratch(t.Context(), db0, token, "tmp", false, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.SubPath(t.Context(), subPath(path, "sub")); err != nil {
		t.Fatal(err)
	}
	memory, err := v.Scratch(t.Context(), db0, token, "shm", true, 0, nil)
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
		"give up":           func() error { return v.Reclaim(t.Context(), toTrash) },
		"bring back":        func() error { return v.Restore(t.Context(), order) },
		"erase":             func() error { return v.Erase(t.Context(), order.Class, order.Volume) },
		"scratch in memory": func() error { _, err := v.Scratch(t.Context(), db0, token, "shm", true, 0, nil); return err },
		"subPath":           func() error { _, err := v.SubPath(t.Context(), subPath(path, "sub")); return err },
		"remove scratch":    func() error { return v.RemoveScratch(t.Context(), db0) },
		"clean":             func() error { _, err := v.Clean(t.Context(), db0); return err },
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
	scratch, err := v.Scratch(t.Context(), db0, spec.Token{Epoch: 1, Number: 7}, "tmp", false, 0, nil)
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
