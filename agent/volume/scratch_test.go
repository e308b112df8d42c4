package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// group is one that this process may give files to and that is not its first, if
// there is one.
func group(t *testing.T) int64 {
	t.Helper()
	if os.Geteuid() == 0 {
		return 4711
	}
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if g != os.Getegid() {
			return int64(g)
		}
	}
	return int64(os.Getegid())
}

func stat(t *testing.T, path string) (int64, fs.FileMode) {
	t.Helper()
	found, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int64(found.Sys().(*syscall.Stat_t).Gid), found.Mode() & (fs.ModePerm | fs.ModeSetgid)
}

func TestFSGroupIsGivenTheTreeAndLeavesLinksAlone(t *testing.T) {
	v := begin(t)
	path := ensure(t, v, true)
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside)
	outsideGroup, outsideMode := stat(t, outside)
	if err := os.Mkdir(filepath.Join(path, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "sub", "file"))
	if err := os.Mkdir(filepath.Join(path, "no\xfftext"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"out": outside, "sub/up": "../../../../../../..", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(path, link)); err != nil {
			t.Fatal(err)
		}
	}
	g := group(t)
	if _, err := v.Ensure(t.Context(), db0, data, false, &runtime.Group{ID: g}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"": 0o775 | fs.ModeSetgid, "sub": 0o770 | fs.ModeSetgid, "no\xfftext": 0o770 | fs.ModeSetgid, "sub/file": 0o660} {
		if gotGroup, gotMode := stat(t, filepath.Join(path, name)); gotGroup != g || gotMode != want {
			t.Errorf("%q has group %d mode %v, want %d %v", name, gotGroup, gotMode, g, want)
		}
	}
	if gotGroup, gotMode := stat(t, outside); gotGroup != outsideGroup || gotMode != outsideMode {
		t.Errorf("a link led outside: group %d mode %v", gotGroup, gotMode)
	}
	// The root matches now: what is below is left as it is.
	if err := os.Chmod(filepath.Join(path, "sub", "file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Ensure(t.Context(), db0, data, false, &runtime.Group{ID: g}); err != nil {
		t.Fatal(err)
	}
	if _, got := stat(t, filepath.Join(path, "sub", "file")); got != 0o600 {
		t.Errorf("the tree was changed again: mode %v", got)
	}
}

func TestScratchIsOfOneLifeAndGoes(t *testing.T) {
	v := begin(t)
	one, two := spec.Token{Epoch: 1, Number: 7}, spec.Token{Epoch: 1, Number: 9}
	first, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: one, Name: "tmp"})
	if err != nil {
		t.Fatal(err)
	}
	if _, mode := stat(t, first); mode != 0o777 {
		t.Errorf("mode %v, want 0777", mode)
	}
	write(t, filepath.Join(first, "file"))
	if again, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: one, Name: "tmp"}); err != nil || again != first {
		t.Errorf("again: %s, error %v", again, err)
	}
	if _, err := os.Stat(filepath.Join(first, "file")); err != nil {
		t.Errorf("the same life lost its file: %v", err)
	}
	second, err := v.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: two, Name: "tmp"})
	if err != nil || second == first {
		t.Fatalf("the next life got %s, error %v", second, err)
	}
	if found, err := os.ReadDir(second); err != nil || len(found) != 0 {
		t.Errorf("the next life's holds %v, error %v", found, err)
	}
	outside := t.TempDir()
	write(t, filepath.Join(outside, "file"))
	if err := os.Symlink(outside, filepath.Join(second, "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.RemoveScratch(t.Context(), db0); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{first, second} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Errorf("the removal followed a link: %v", err)
	}
	if clean, err := v.Clean(t.Context(), db0); err != nil || !clean {
		t.Errorf("clean: %v, error %v", clean, err)
	}
}
