package containerdrt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/agent/runtime/runtimetest"
)

// On cgroup v1 a process that somebody froze, as `ctr task pause` does, does not die of
// SIGKILL before it is thawed, and to thaw the member's cgroup leaves the container's frozen.
func TestAFrozenContainerIsKilled(t *testing.T) {
	h := newHost(t)
	rt := h.open()
	defer rt.Close()
	h.load(rt, imageName, runtimetest.ImageConfig{})
	c := h.container("run")
	h.start(rt, c)
	state := filepath.Join("/sys/fs/cgroup/freezer", rt.Cgroup(c.ID.ID), c.ID.Name, "freezer.state")
	if _, err := os.Stat(state); err != nil {
		t.Skip("no freezer of cgroup v1; v2 kills what is frozen")
	}
	if err := os.WriteFile(state, []byte("FROZEN"), 0); err != nil {
		t.Fatal(err)
	}
	if err := rt.KillAll(t.Context(), c.ID.ID); err != nil {
		t.Errorf("kill: %v", err)
		_ = os.WriteFile(state, []byte("THAWED"), 0) // so that the host can be cleaned up
	}
}
