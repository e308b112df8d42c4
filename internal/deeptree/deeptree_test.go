package deeptree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/deeptree/deeptreetest"
)

// A file that somebody deletes while its tree is walked is no error.
func TestWhatGoesMeanwhileIsNoError(t *testing.T) {
	for n, gone := range map[int]string{1: "tree/a", 2: "tree/a/b", 3: "tree/a/b"} {
		root, dir := deeptreetest.Chain(t)
		err := Erase(deeptreetest.After(t, n, func() error { return os.RemoveAll(filepath.Join(dir, gone)) }), root, "tree")
		if _, there := os.Lstat(filepath.Join(dir, "tree")); err != nil || there == nil {
			t.Errorf("erased while %s goes: %v; then: %v", gone, err, there)
		}
	}
	root, dir := deeptreetest.Chain(t)
	if err := Erase(deeptreetest.After(t, 3, func() error { return os.RemoveAll(filepath.Join(dir, "tree")) }), root, "tree"); err != nil {
		t.Errorf("erased by two: %v", err)
	}
}

// Some file systems leave entries out of a list while others are deleted.
func TestWhatAWalkWasNotShownIsErasedByTheNext(t *testing.T) {
	root, dir := deeptreetest.Chain(t)
	late := func() error { return os.Mkdir(filepath.Join(dir, "tree/a/late"), 0o700) }
	if err := Erase(deeptreetest.After(t, 3, late), root, "tree"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "tree")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	// What grows faster than it is deleted, or cannot be deleted, is told.
	root, dir = deeptreetest.Chain(t)
	n := 0
	grows := deeptreetest.Meanwhile{Context: t.Context(), Ask: func() error {
		n++
		return os.MkdirAll(filepath.Join(dir, "tree/a", strconv.Itoa(n), "b"), 0o700)
	}}
	if err := Erase(grows, root, "tree"); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("got %v, want %v", err, unix.ENOTEMPTY)
	}
	root, dir = deeptreetest.Chain(t)
	swapped := func() error {
		return errors.Join(os.Rename(filepath.Join(dir, "tree"), filepath.Join(dir, "x")), os.MkdirAll(filepath.Join(dir, "tree/new"), 0o700))
	}
	if err := Erase(deeptreetest.After(t, 3, swapped), root, "tree"); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("got %v, want %v", err, unix.ENOTEMPTY)
	}
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
		err := Erase(deeptreetest.Patience(t, 6), root, "tree")
		if err == nil {
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "it continues with the next try") {
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
	err = Visits{File: func(at int, name string) error {
		return os.Rename(filepath.Join(dir, "tree/a/b"), filepath.Join(dir, "outside/b"))
	}, Dir: unlink(unix.AT_REMOVEDIR)}.Walk(t.Context(), top)
	if !errors.Is(err, ErrMoved) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "outside/b")); err != nil {
		t.Errorf("what is outside was touched: %v", err)
	}
}

func TestAWalkLeavesNothingOpen(t *testing.T) {
	open := func() int {
		found, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for n, want := range map[int]error{0: context.DeadlineExceeded, 1: context.DeadlineExceeded, 2: context.DeadlineExceeded, 3: nil} {
		root, _ := deeptreetest.Chain(t)
		before := open()
		if err := Erase(deeptreetest.Patience(t, n), root, "tree"); !errors.Is(err, want) {
			t.Errorf("broken off after %d entries: got %v, want %v", n, err, want)
		}
		if after := open(); after > before {
			t.Errorf("after %d entries %d files are open, %d were before", n, after, before)
		}
	}
}

func TestAPathIsResolvedAnewWhileSomethingIsRenamed(t *testing.T) {
	for name, c := range map[string]struct {
		says []error // one a try; the last one goes on
		want error
		most int
	}{
		"found":                 {says: []error{nil}, most: 1},
		"found after a while":   {says: []error{unix.EAGAIN, unix.EINTR, unix.EAGAIN, nil}, most: 4},
		"refused":               {says: []error{unix.EXDEV}, want: unix.EXDEV, most: 1},
		"refused after a while": {says: []error{unix.EINTR, unix.EXDEV}, want: unix.EXDEV, most: 2},
		"renamed without end":   {says: []error{unix.EAGAIN}, want: unix.EAGAIN, most: renameTries},
	} {
		tries := 0
		err := RetryRenamed(func() error {
			tries++
			return c.says[min(tries, len(c.says))-1]
		})
		if !errors.Is(err, c.want) || tries != c.most {
			t.Errorf("%s: got %v after %d tries, want %v after %d", name, err, tries, c.want, c.most)
		}
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
}
