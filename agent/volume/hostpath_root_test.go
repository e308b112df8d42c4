package volume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
)

// TestAHostPathIsMountedForALifeAndLeftAsItIs: also when it is asked for again, as by the next agent.
func TestAHostPathIsMountedForALifeAndLeftAsItIs(t *testing.T) {
	v := mounting(t)
	dir := hostDir(t)
	write(t, filepath.Join(dir, "mine"))
	for range 2 {
		at, err := v.HostPath(t.Context(), runtime.HostPath{ID: db0, Name: "logs", Path: dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(at, "mine")); err != nil {
			t.Error(err)
		}
		if there, err := mountsAt(at); err != nil || len(there) != 1 {
			t.Errorf("mounted %q, %v", there, err)
		}
	}
	if clean, err := v.Clean(t.Context(), db0); err != nil || clean {
		t.Errorf("clean: %v, %v", clean, err)
	}
	if err := v.RemoveScratch(t.Context(), db0); err != nil {
		t.Fatal(err)
	}
	if clean, err := v.Clean(t.Context(), db0); err != nil || !clean {
		t.Errorf("clean: %v, %v", clean, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "mine")); err != nil {
		t.Errorf("what was shown went, too: %v", err)
	}
}
