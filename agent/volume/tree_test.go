package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/spec"
)

// deepTree makes directories in one another below path, whose names together are longer
// than any path may be, with a file in the last one.
func deepTree(t *testing.T, path string, levels int) {
	t.Helper()
	at, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 200)
	for range levels {
		if err := unix.Mkdirat(at, name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(at)
		at = next
	}
	file, err := unix.Openat(at, "last", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(file)
	unix.Close(at)
	t.Cleanup(func() { // t.TempDir would hold all of it open at once
		root, err := os.OpenRoot(path)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err == nil {
			err = errors.Join(eraseTree(context.WithoutCancel(t.Context()), root, name), root.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
}

const deep = 12_000

// inTime is far more than a tree takes whose directories are opened once each, also on a
// slow machine, and far less than one takes that is opened from its top for each level.
func inTime(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestATreeOfAnyDepthIsGivenToItsGroupAndErased(t *testing.T) {
	v, g := begin(t), group(t)
	path := ensure(t, v, true)
	deepTree(t, path, deep)
	if err := unix.Mkfifo(filepath.Join(path, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Ensure(inTime(t), db0, data, false, &g); err != nil {
		t.Fatal(err)
	}
	top, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	seen := 0
	check := func(dir int, name string) error {
		seen++
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && int64(st.Gid) != g {
			err = errors.New(name + " was left out")
		}
		return err
	}
	if err := walkTree(inTime(t), top, check, check); err != nil || seen != deep+2 {
		t.Errorf("%d were seen, want %d; error %v", seen, deep+2, err)
	}
	order := spec.VolumeOrder{ID: db0, Claim: data.Claim, Volume: data.ID, Number: data.Number, Class: data.Class}
	if err := v.Reclaim(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	if err := v.Erase(inTime(t), data.Class, data.ID); err != nil {
		t.Fatal(err)
	}
	if left := below(t, v.classes["local"]); slices.ContainsFunc(left, func(p string) bool { return strings.Contains(p, string(data.ID)) }) {
		t.Errorf("left: %v", left)
	}
}

func TestScratchOfAnyDepthGoes(t *testing.T) {
	v := begin(t)
	path, err := v.Scratch(t.Context(), db0, spec.Token{Epoch: 1, Number: 7}, "tmp", false, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	deepTree(t, path, deep)
	if err := v.RemoveScratch(inTime(t), db0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

// patience is a context that ends after it was asked so many times.
type patience struct {
	context.Context
	left int
}

func (p *patience) Err() error {
	if p.left--; p.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestAnErasureThatIsBrokenOffGoesOn(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a", "b/c", "d"} {
		if err := os.MkdirAll(filepath.Join(dir, "tree", d), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "tree", d, "file"))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tries := 0
	for tries = 1; tries < 100; tries++ {
		err := eraseTree(&patience{t.Context(), 6}, root, "tree")
		if err == nil {
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "it goes on at the next try") {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "tree")); !errors.Is(err, fs.ErrNotExist) || tries == 1 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// A directory that is moved while it is walked leads nowhere else.
func TestAWalkNeverLeavesItsTree(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"tree/a/b", "outside/kept"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "tree/a/b/file"))
	top, err := os.Open(filepath.Join(dir, "tree"))
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	err = walkTree(t.Context(), top, func(at int, name string) error {
		return os.Rename(filepath.Join(dir, "tree/a/b"), filepath.Join(dir, "outside/b"))
	}, unlink(unix.AT_REMOVEDIR))
	if err == nil || !strings.Contains(err.Error(), "was moved meanwhile") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "outside/b")); err != nil {
		t.Errorf("what is outside was touched: %v", err)
	}
}
