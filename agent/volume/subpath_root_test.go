package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

// mounting is for tests that mount; what they leave is unmounted.
func mounting(t *testing.T) *Volumes {
	t.Helper()
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs STEAD_ROOT_TESTS=1 and root: it mounts")
	}
	v := begin(t)
	t.Cleanup(func() {
		for _, top := range []string{v.subpaths, v.memory, v.scratch} {
			there, _ := mountsAt(top)
			for _, at := range there {
				_ = unix.Unmount(at, unix.MNT_DETACH)
			}
		}
	})
	return v
}

func subPath(dir, path string) runtime.SubPath {
	return runtime.SubPath{ID: db0, Container: "main", Index: 2, Volume: "data", Dir: dir, Path: path}
}

func TestASubPathShowsItsVolumeAndNothingElse(t *testing.T) {
	v := mounting(t)
	dir := ensure(t, v, true)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"))
	for _, d := range []string{"there/deep", "real"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "there/deep/mine"))
	write(t, filepath.Join(dir, "real/mine"))
	write(t, filepath.Join(dir, "file"))
	for link, to := range map[string]string{
		"inside": "real", "out": outside, "up": "../../../../../../../../../etc", "there/out": outside,
		"proc": "/proc/self/cwd", "host": "/", "gone": "nothing/here", "loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ path, holds, refused string }{
		{path: "there/deep", holds: "mine"},
		{path: "inside", holds: "mine"},
		{path: "new/and/deep"},
		{path: "file"},
		{path: "out", refused: "leads out of it"},
		{path: "up", refused: "leads out of it"},
		{path: "there/out", refused: "leads out of it"},
		{path: "there/out/secret", refused: "leads out of it"},
		{path: "proc", refused: "leads out of it"},
		{path: "host/etc", refused: "leads out of it"},
		{path: "gone", refused: "gone"},
		{path: "loop", refused: "too many levels"},
		{path: "file/below", refused: "not a directory"},
	} {
		path, err := v.SubPath(t.Context(), subPath(dir, c.path))
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) || strings.Contains(err.Error(), "kernel") {
				t.Errorf("%s: mounted at %q, error %v, want one with %q", c.path, path, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		if !strings.HasPrefix(path, v.subpaths+"/") {
			t.Errorf("%s is handed out as %s", c.path, path)
		}
		was, err := os.Stat(filepath.Join(dir, c.path))
		if err != nil {
			t.Fatal(err)
		}
		if shown, err := os.Stat(path); err != nil || !os.SameFile(was, shown) {
			t.Errorf("%s: %s shows another file, error %v", c.path, path, err)
		}
		if c.holds != "" {
			if _, err := os.Stat(filepath.Join(path, c.holds)); err != nil {
				t.Errorf("%s: %v", c.path, err)
			}
		}
		if there, err := mountsAt(v.subpaths); err != nil || len(there) != 1 {
			t.Errorf("%s: mounts %q, error %v; want that of the last call alone", c.path, there, err)
		}
	}
}

func TestASubPathShowsTheSameWhateverIsRenamedLater(t *testing.T) {
	v := mounting(t)
	dir, outside := ensure(t, v, true), t.TempDir()
	path, err := v.SubPath(t.Context(), subPath(dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "db/mine"))
	if err := os.Rename(filepath.Join(dir, "db"), filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "db")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(path, "mine")); err != nil {
		t.Errorf("it does not show what it was made of: %v", err)
	}
	if path, err := v.SubPath(t.Context(), subPath(dir, "db")); err == nil {
		t.Errorf("the next creation is given %s", path)
	}
}

func TestSubPathsGoWithTheLifeAndTheirDataStay(t *testing.T) {
	v := mounting(t)
	dir := ensure(t, v, true)
	clean := func(v *Volumes, want bool) {
		t.Helper()
		if got, err := v.Clean(t.Context(), db0); err != nil || got != want {
			t.Errorf("clean: %v, error %v, want %v", got, err, want)
		}
	}
	clean(v, true)
	group := int64(4711)
	for i, sub := range []string{"a", "b/c"} {
		s := subPath(dir, sub)
		s.Index, s.FSGroup = i, &group
		if _, err := v.SubPath(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, sub, "mine"))
		if got, mode := stat(t, filepath.Join(dir, sub)); got != group || mode != 0o775|os.ModeSetgid {
			t.Errorf("%s is of group %d, mode %v", sub, got, mode)
		}
	}
	clean(v, false)
	again := at(t, filepath.Dir(filepath.Dir(v.subpaths)), "cluster-1") // an agent that finds them
	clean(again, false)
	busy, err := os.Open(filepath.Join(v.subpaths, scratchOf(db0), "main/1/mine"))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.RemoveScratch(t.Context(), db0); err == nil {
		t.Error("what is in use counts as unmounted")
	}
	clean(again, false)
	busy.Close()
	if err := again.RemoveScratch(t.Context(), db0); err != nil {
		t.Fatal(err)
	}
	clean(again, true)
	for _, sub := range []string{"a", "b/c"} {
		if content, err := os.ReadFile(filepath.Join(dir, sub, "mine")); err != nil || string(content) != "precious" {
			t.Errorf("%s holds %q, error %v", sub, content, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(v.subpaths, scratchOf(db0))); !os.IsNotExist(err) {
		t.Errorf("the directories are left: %v", err)
	}
}
