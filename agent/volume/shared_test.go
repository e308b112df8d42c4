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

// twoNodes share the class nfs below dir.
func twoNodes(t *testing.T, now *time.Duration) (dir string, a, b *Volumes) {
	t.Helper()
	dir = t.TempDir()
	nfs := filepath.Join(dir, "nfs")
	if err := os.Mkdir(nfs, 0o755); err != nil {
		t.Fatal(err)
	}
	node := func(name string) *Volumes {
		v, err := New(Config{Root: filepath.Join(dir, name), RunDir: filepath.Join(dir, name, "run"), ClusterID: "cluster-1",
			Classes: map[string]string{"nfs": nfs}, Shared: []string{"nfs"}, Node: spec.NodeName(name),
			Boot: spec.BootID(name), Clock: func() time.Duration { return *now }})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return dir, node("a"), node("b")
}

// TestTwoNodesOfASharedClass: one goes on where the other stopped, only with the very same
// volume, and what each gave up is its own to keep, to bring back and to erase.
func TestTwoNodesOfASharedClass(t *testing.T) {
	now := time.Hour
	_, a, b := twoNodes(t, &now)
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

// What a node of a shared class made and gave up another does not make again, though a store
// that went back knows of it as of one that is new.
func TestASharedVolumeInTheTrashOfAnotherNodeIsNotMadeAgain(t *testing.T) {
	now := time.Hour
	dir, a, b := twoNodes(t, &now)
	shared, order := data, giveUp
	shared.Class, order.Class = "nfs", "nfs"
	if _, err := a.Ensure(t.Context(), db0, shared, true, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Reclaim(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "nfs", trashDir+"-0"), 0o700); err != nil { // of a third node, which is looked at first
		t.Fatal(err)
	}
	if path, err := b.Ensure(t.Context(), db0, shared, true, nil); !errors.Is(err, runtime.ErrAbsent) {
		t.Errorf("it is at %q, error %v; want %v", path, err, runtime.ErrAbsent)
	}
	if _, err := os.Lstat(filepath.Join(dir, "nfs", placeOf(db0, data.Claim))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made in its place: %v", err)
	}
	now += 2 * time.Hour
	if err := a.Erase(t.Context(), "nfs", shared.ID); err != nil {
		t.Fatal(err)
	}
	unread := filepath.Join(dir, "nfs", trashDir+"-2")
	if err := os.WriteFile(unread, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if path, err := b.Ensure(t.Context(), db0, shared, true, nil); err == nil {
		t.Errorf("it was made at %s, though what lies in the trash of a node cannot be seen", path)
	}
	if err := os.Remove(unread); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ensure(t.Context(), db0, shared, true, nil); err != nil {
		t.Errorf("nothing of it is left: %v", err)
	}
}
