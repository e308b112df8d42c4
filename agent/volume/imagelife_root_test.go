package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Members that share a claim have one file system, until the last of them ends.
func TestTheImageOfAClaimIsOneFileSystem(t *testing.T) {
	h := imagingHost(t)
	vol := sizedVolume(small)
	vol.Claim, vol.Object = "shared", true
	web := []spec.Identity{{Namespace: "default", Set: "web"}, {Namespace: "default", Set: "web", Ordinal: 1}}
	var paths []string
	for _, id := range web {
		path, err := h.v.Ensure(t.Context(), id, vol, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	write(t, filepath.Join(paths[0], "file"))
	if got, err := os.ReadFile(filepath.Join(paths[1], "file")); string(got) != "precious" || len(h.loops()) != 1 {
		t.Errorf("the other reads %q, error %v, by the loop devices of %q", got, err, h.loops())
	}
	order := records.VolumeOrder{ID: vol.Owner(web[0]), Claim: vol.Claim, Volume: vol.ID, Number: 1, Class: vol.Class}
	for i, id := range web {
		if err := h.v.Reclaim(t.Context(), order); !errors.Is(err, runtime.ErrExists) {
			t.Errorf("it was given up while %s has it: %v", id, err)
		}
		if clean, err := h.v.Clean(t.Context(), id); err != nil || clean {
			t.Errorf("%s counts as clean, error %v", id, err)
		}
		if err := h.v.RemoveScratch(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if clean, err := h.v.Clean(t.Context(), id); err != nil || !clean || len(h.loops()) != 1-i {
			t.Errorf("%s counts as clean: %v, error %v, loop devices %q", id, clean, err, h.loops())
		}
	}
	if err := h.v.Reclaim(t.Context(), order); err != nil {
		t.Error(err)
	}
}

func TestAnImageGoesToTheTrashAndComesBack(t *testing.T) {
	h := imagingHost(t)
	vol := sizedVolume(small)
	write(t, filepath.Join(h.ensure(vol), "file"))
	order := records.VolumeOrder{ID: db0, Claim: vol.Claim, Volume: vol.ID, Number: 1, Class: vol.Class}
	if err := h.v.Reclaim(t.Context(), order); !errors.Is(err, runtime.ErrExists) {
		t.Errorf("it was given up while it is mounted: %v", err)
	}
	if err := h.v.RemoveScratch(t.Context(), db0); err != nil {
		t.Fatal(err)
	}
	if is, err := h.v.Lost(t.Context(), order); err != nil || is != records.VolumeFound {
		t.Errorf("looked for: %s, error %v", is, err)
	}
	for range 2 {
		if err := errors.Join(h.v.Reclaim(t.Context(), order), h.v.Restore(t.Context(), order)); err != nil {
			t.Fatal(err)
		}
		h.restart()
	}
	if got, err := os.ReadFile(filepath.Join(h.ensure(vol), "file")); string(got) != "precious" {
		t.Errorf("it came back with %q, error %v", got, err)
	}
	err := errors.Join(h.v.RemoveScratch(t.Context(), db0), h.v.Reclaim(t.Context(), order))
	if err := errors.Join(err, h.v.Erase(t.Context(), vol.Class, vol.ID)); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(h.dir, "ssd", trashDir)); err != nil || len(left) > 0 {
		t.Errorf("the trash has %v, error %v", left, err)
	}
}

// What a class was before it was sized stays as it is, and the other way round.
func TestWhatWasMadeStaysOfItsKind(t *testing.T) {
	h := imagingHost(t)
	h.v.sized = nil
	path := h.ensure(sizedVolume(small))
	write(t, filepath.Join(path, "file"))
	h.restart()
	if again := h.ensure(sizedVolume(small)); again != path || !strings.HasPrefix(path, h.place()) {
		t.Errorf("it is at %s, want %s", again, path)
	}
	image := sizedVolume(small)
	image.Claim, image.ID = "log", "fedcba9876543210fedcba9876543210"
	at := h.ensure(image)
	h.v.sized = nil
	if again := h.ensure(image); again != at {
		t.Errorf("the image is at %s, want %s", again, at)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(h.place()), "log-0", dataDir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an image has a data directory beside it, error %v", err)
	}
}

func TestAnImageIsGivenToItsGroup(t *testing.T) {
	h := imagingHost(t)
	path, err := h.v.Ensure(t.Context(), db0, sizedVolume(small), true, &runtime.Group{ID: 4711})
	if err != nil {
		t.Fatal(err)
	}
	if group, mode := stat(t, path); group != 4711 || mode != 0o775|fs.ModeSetgid {
		t.Errorf("group %d, mode %v", group, mode)
	}
	shown, err := h.v.SubPath(t.Context(), subPath(path, "sub"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(shown, "file"))
	if _, err := os.Stat(filepath.Join(path, "sub/file")); err != nil {
		t.Error(err)
	}
	if err := h.v.RemoveScratch(t.Context(), db0); err != nil || len(h.loops()) > 0 {
		t.Errorf("loop devices %q, error %v", h.loops(), err)
	}
}

func TestADiskThatIsTooSmallIsSaid(t *testing.T) {
	h := imagingHost(t)
	disk := filepath.Join(h.dir, "ssd")
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.reboot()
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	for _, size := range []int64{62 << 20, 1 << 50} { // it would fit, but for what the disk keeps free
		h.refused(sizedVolume(size), true, runtime.ErrNoSpace)
		names, err := os.ReadDir(h.place())
		if err != nil || slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() != ownerFile }) {
			t.Errorf("left in its place: %v, error %v", names, err)
		}
	}
	h.ensure(sizedVolume(small)) // with less, it is made
}

// A file system that gave up is mounted again when no other has it: its journal is replayed, and nothing else.
func TestAnImageThatGaveUpIsMountedAgain(t *testing.T) {
	for size, kind := range map[int64]string{small: ext4, large: xfs} {
		t.Run(kind, func(t *testing.T) {
			h := imagingHost(t)
			path := h.ensure(sizedVolume(size))
			write(t, filepath.Join(path, "file"))
			unix.Sync()
			if err := run(t.Context(), "xfs_io", "-x", "-c", "shutdown", filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(path, "more"), nil, 0o600); err == nil {
				t.Fatal("it did not give up")
			}
			if got, err := os.ReadFile(filepath.Join(h.ensure(sizedVolume(size)), "file")); string(got) != "precious" {
				t.Errorf("it has %q, error %v", got, err)
			}
		})
	}
}

func TestHowFullAnImageIsItsFileSystemSays(t *testing.T) {
	h := imagingHost(t)
	m := meterOf(h.v)
	path := h.ensure(sizedVolume(small))
	fill(t, filepath.Join(path, "file"), 8<<20)
	unix.Sync()
	seen := useNow(t, m)
	if seen.UsedBytes < 8<<20 || seen.FreeBytes > small-8<<20 || seen.FreeBytes < small/2 || seen.TotalBytes > small || seen.Age < 0 {
		t.Errorf("mounted: %+v", seen)
	}
	h.reboot()
	m.v = h.v
	if err := m.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if u := useNow(t, m); u.UsedBytes != seen.UsedBytes || u.FreeBytes != -1 {
		t.Errorf("not mounted: %+v, want what was used", u)
	}
}
