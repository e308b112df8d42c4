package volume

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// TestTwoNodesOfASharedClass: one goes on where the other stopped, only with the very same
// volume, and what each gave up is its own to keep, to bring back and to erase.
func TestTwoNodesOfASharedClass(t *testing.T) {
	dir := t.TempDir()
	nfs := filepath.Join(dir, "nfs")
	if err := os.Mkdir(nfs, 0o755); err != nil {
		t.Fatal(err)
	}
	now := time.Hour
	node := func(name string) *Volumes {
		v, err := New(Config{Root: filepath.Join(dir, name), RunDir: filepath.Join(dir, name, "run"), ClusterID: "cluster-1",
			Classes: map[string]string{"nfs": nfs}, Shared: []string{"nfs"}, Node: spec.NodeName(name),
			Boot: spec.BootID(name), Clock: func() time.Duration { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a, b := node("a"), node("b")
	shared, order := data, giveUp
	shared.Class, order.Class = "nfs", "nfs"
	first, err := a.Ensure(t.Context(), db0, shared, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(first, "file"))
	second, err := b.Ensure(t.Context(), db0, shared, false, nil)
	if _, there := os.Stat(filepath.Join(second, "file")); err != nil || there != nil || second != first {
		t.Fatalf("got %s, %v, %v; want %s with its file", second, err, there, first)
	}
	other := shared
	other.ID = "fedcba9876543210fedcba9876543210"
	if _, err := b.Ensure(t.Context(), db0, other, true, nil); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("another volume: %v", err)
	}

	if err := b.Reclaim(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	trash := func(v *Volumes) int {
		found, err := v.Trash(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if trash(a) != 0 || trash(b) != 1 {
		t.Errorf("a lists %d, b lists %d; want it in b's trash alone", trash(a), trash(b))
	}
	now += 2 * time.Hour
	if err := a.Erase(t.Context(), "nfs", shared.ID); err != nil || trash(b) != 1 {
		t.Errorf("a erased what b gave up: %v", err)
	}
	if err := b.Restore(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(first, "file")); err != nil {
		t.Error(err)
	}
	if err := errors.Join(b.Reclaim(t.Context(), order), b.Erase(t.Context(), "nfs", shared.ID)); !errors.Is(err, runtime.ErrExists) {
		t.Errorf("erased before its time: %v", err)
	}
	now += 2 * time.Hour
	if err := b.Erase(t.Context(), "nfs", shared.ID); err != nil || trash(b) != 0 {
		t.Errorf("b keeps what its time is over for: %v", err)
	}
}
