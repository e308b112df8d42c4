package containerdrt_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
)

// Whoever builds an image can put named pipes in place of its accounts; who opens one
// waits for a writer that never comes.
func TestNamedPipesInAnImageBlockNobody(t *testing.T) {
	h, rt := newNode(t)
	for _, pipe := range []string{"etc/passwd", "etc/group"} {
		h.load(rt, "stead.test/pipe:1", runtimetest.ImageConfig{Pipes: []string{pipe}, User: "app"})
		c := h.container("run")
		c.Image = "stead.test/pipe:1"
		if _, err := rt.EnsureSandbox(t.Context(), runtime.Sandbox{ID: c.ID.ID, Token: c.Token, Hostname: "db-0"}); err != nil {
			t.Fatal(err)
		}
		created := make(chan error, 1)
		go func() { created <- rt.Create(t.Context(), c) }()
		select {
		case err := <-created:
			if !errors.Is(err, runtime.ErrBadSpec) {
				t.Errorf("%s: %v, want a bad spec", pipe, err)
			}
		case <-time.After(3 * time.Minute):
			t.Fatalf("%s: create does not return", pipe)
		}
	}
	if left, err := os.ReadDir(filepath.Join(h.cfg.RunDir, "roots")); err != nil || len(left) > 0 {
		t.Errorf("left mounted: %v, %v", left, err)
	}
}

// What a create left that never came back is mounted below the run directory, where it
// is known to be ours.
func TestPurgeUnmountsWhatCreatesLeft(t *testing.T) {
	h, rt := newNode(t)
	dir := filepath.Join(h.cfg.RunDir, "roots", "default.db-0.main")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := rt.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err) // a mount is seen by the host's end, too
	}
}
