package containerdrt_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/containerdrt"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
)

// freezable is a container that runs, and the file by which it is frozen.
func freezable(t *testing.T) (h *host, rt *containerdrt.Runtime, c runtime.Container, state string) {
	t.Helper()
	h = newHost(t)
	rt = h.open()
	t.Cleanup(func() { rt.Close() })
	h.load(rt, imageName, runtimetest.ImageConfig{})
	c = h.container("run")
	h.start(rt, c)
	state = filepath.Join("/sys/fs/cgroup/freezer", rt.Cgroup(c.ID.ID), c.ID.Name, "freezer.state")
	if _, err := os.Stat(state); err != nil {
		t.Skip("no freezer of cgroup v1; v2 kills what is frozen")
	}
	return h, rt, c, state
}

// On cgroup v1 a process that somebody froze, as `ctr task pause` does, does not die of
// SIGKILL before it is thawed, and to thaw the member's cgroup leaves the container's frozen.
func TestAFrozenContainerIsKilled(t *testing.T) {
	_, rt, c, state := freezable(t)
	if err := os.WriteFile(state, []byte("FROZEN"), 0); err != nil {
		t.Fatal(err)
	}
	if err := rt.KillAll(t.Context(), c.ID.ID); err != nil {
		t.Errorf("kill: %v", err)
		_ = os.WriteFile(state, []byte("THAWED"), 0) // so that the host can be cleaned up
	}
}

// TestNoCommandBeginsBesideOneThatIsStuck: of the one before, the sweep has failed.
func TestNoCommandBeginsBesideOneThatIsStuck(t *testing.T) {
	h, rt, c, state := freezable(t)
	probe := func(ctx context.Context, words ...string) error {
		_, err := rt.Exec(ctx, c.ID, runtime.Exec{Command: append([]string{"/box"}, words...), Bounded: true})
		return err
	}
	if err := probe(t.Context(), "exit", "0"); err != nil { // from now on the cgroup is known to be empty
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stuck := make(chan error, 1)
	go func() { stuck <- probe(ctx, "brood") }()
	h.until("a command runs", func() bool { return h.chicks() == 4 })
	if err := os.WriteFile(state, []byte("FROZEN"), 0); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-stuck
	const want = "processes that the previous command left do not end"
	short, end := context.WithTimeout(t.Context(), 30*time.Second) // more than a sweep takes that fails
	defer end()
	if err := probe(short, "exit", "0"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the next command: %v, want that %s", err, want)
	}
	if err := os.WriteFile(state, []byte("THAWED"), 0); err != nil {
		t.Fatal(err)
	}
	if err := probe(t.Context(), "remove", "/tmp/brood"); err != nil {
		t.Errorf("after the thaw: %v", err)
	}
}
