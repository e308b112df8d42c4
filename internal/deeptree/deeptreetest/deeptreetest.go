// Package deeptreetest is for tests of what walks trees: contexts that are asked before each entry, and a small tree.
package deeptreetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// Meanwhile is a context that is asked before each entry of a walk, and says what Ask does.
type Meanwhile struct {
	context.Context
	Ask func() error
}

// Err implements context.Context.
func (m Meanwhile) Err() error { return m.Ask() }

// After calls do once, before the nth entry of a walk.
func After(t *testing.T, n int, do func() error) context.Context {
	return Meanwhile{t.Context(), func() error {
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

// Patience ends after it was asked so many times.
func Patience(t *testing.T, left int) context.Context {
	return Meanwhile{t.Context(), func() error {
		left--
		if left < 0 {
			return context.DeadlineExceeded
		}
		return nil
	}}
}

// Chain makes tree/a/b/file in a directory of its own.
func Chain(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tree/a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tree/a/b/file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir
}
