package volume

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
)

// meanwhile is a context that is asked before each entry of a walk, and says what ask does.
type meanwhile struct {
	context.Context
	ask func() error
}

func (m meanwhile) Err() error { return m.ask() }

// after calls do once, before the nth entry of a walk.
func after(t *testing.T, n int, do func() error) context.Context {
	return meanwhile{t.Context(), func() error {
		n--
		if n != 0 {
			return nil
		}
		if err := do(); err != nil {
			t.Error(err)
		}
		return nil
	}}
}

// patience ends after it was asked so many times.
func patience(t *testing.T, left int) context.Context {
	return meanwhile{t.Context(), func() error {
		left--
		if left < 0 {
			return context.DeadlineExceeded
		}
		return nil
	}}
}

// chain makes tree/a/b/file in a directory of its own.
func chain(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tree/a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tree/a/b/file"))
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir
}

// A file that somebody deletes while its tree is given to a group is no error.
func TestWhatGoesMeanwhileIsGivenToNoGroup(t *testing.T) {
	for n, gone := range map[int]string{1: "tree/a", 2: "tree/a/b", 3: "tree/a/b"} {
		root, dir := chain(t)
		err := giveTo(after(t, n, func() error { return os.RemoveAll(filepath.Join(dir, gone)) }), root, "tree", runtime.Group{ID: group(t)})
		if _, there := os.Lstat(filepath.Join(dir, "tree")); err != nil || there != nil {
			t.Errorf("given while %s goes: %v; then: %v", gone, err, there)
		}
	}
}
