package containerdrt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/pkg/cio"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/containerdrt"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/spec"
)

const guardBound = time.Hour

// guardAs records the life of db-0 as its agent does, confirmed now.
func (h *host) guardAs(rt *containerdrt.Runtime) watchdog.Dir {
	h.t.Helper()
	dir := watchdog.Dir(filepath.Join(h.cfg.RunDir, "guard"))
	h.must(dir.Make())
	h.must(dir.Confirm(watchdog.BootTime()))
	h.must(dir.Put("default.db-0", watchdog.Record{
		Namespace: "default", Set: "db", Token: token.String(), Bound: guardBound, Cgroup: rt.Cgroup(db0),
	}))
	return dir
}

func (h *host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// expire lets the deadline pass in a second.
func expire(dir watchdog.Dir) error {
	return dir.Confirm(watchdog.BootTime() - guardBound + time.Second)
}

func (h *host) emptied(rt *containerdrt.Runtime, id spec.Identity) bool {
	empty, err := rt.Empty(h.t.Context(), id)
	h.must(err)
	return empty
}

// Each killer, alone, ends a guarded life past its deadline, and leaves alone who is not
// guarded: the watchdog, and either half of a logger.
func TestEitherKillerAloneEndsAGuardedLife(t *testing.T) {
	for _, killer := range []string{"watchdog", "keeper", "writer"} {
		t.Run(killer, func(t *testing.T) {
			h, rt := newLoadedNode(t)
			dir := h.guardAs(rt)
			hold := h.container("run")
			hold.ID.ID.Ordinal = 1
			h.start(rt, hold)
			c := h.container("run")
			if killer == "watchdog" {
				pid, err := watchdog.Start(h.cfg.Logger, dir)
				h.must(err)
				h.must(rt.Put("watchdog", pid))
				h.until("the watchdog acknowledges", func() bool { return dir.Acks()["default.db-0"] == token.String() })
				if cgroups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err != nil || !strings.Contains(string(cgroups), h.cfg.CgroupParent+"/watchdog") {
					t.Errorf("the watchdog is in %s, %v", cgroups, err)
				}
				h.must(syscall.Kill(pid, syscall.SIGTERM)) // it guards a life
			} else {
				c.Log.Guard = dir.Record("default.db-0")
			}
			h.start(rt, c)
			if other := map[string]string{"keeper": "\x00writer\x00", "writer": "\x00logger\x00"}[killer]; other != "" {
				h.stopHalf(other, dir.Record("default.db-0"))
			}
			h.must(expire(dir))
			h.until("the guarded life is killed", func() bool { return h.emptied(rt, db0) })
			if s, err := rt.Status(t.Context(), hold.ID); err != nil || s.State != runtime.Running {
				t.Errorf("the life that is not guarded: %+v, %v", s, err)
			}
			if killer == "watchdog" && !dir.Alive() {
				t.Error("the watchdog ended although a life is recorded")
			}
		})
	}
}

// stopHalf stops (SIGSTOP) the half of a logger that guards record, so that its other
// half is alone; closing the host kills it.
func (h *host) stopHalf(role, record string) {
	h.t.Helper()
	pid := 0
	h.until("both halves of the logger are there", func() bool {
		found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, f := range found {
			line, _ := os.ReadFile(f)
			if strings.Contains(string(line), role) && strings.Contains(string(line), record) {
				_, _ = fmt.Sscanf(f, "/proc/%d/", &pid)
			}
		}
		return pid != 0
	})
	h.must(syscall.Kill(pid, syscall.SIGSTOP))
	h.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
}

// Past the deadline, or without a record, no start of a guarded life lands, first or in
// place, with no watchdog at all.
func TestAStartPastTheDeadlineDoesNotLand(t *testing.T) {
	h, rt := newLoadedNode(t)
	dir := h.guardAs(rt)
	c := h.container("run")
	c.Log.Guard = dir.Record("default.db-0")
	h.create(rt, c)
	refused := func(why string) {
		t.Helper()
		if err := rt.Start(t.Context(), c.ID); err == nil || !h.emptied(rt, db0) {
			t.Errorf("started although %s: %v", why, err)
		}
		if s, err := rt.Status(t.Context(), c.ID); err != nil || s.State != runtime.Created {
			t.Errorf("after a start that was refused: %+v, %v", s, err)
		}
	}
	h.must(dir.Confirm(watchdog.BootTime() - guardBound))
	refused("its deadline has passed")
	h.must(dir.Confirm(watchdog.BootTime()))
	h.must(dir.Remove("default.db-0"))
	refused("nothing would end it")
	h.guardAs(rt)
	h.must(rt.Start(t.Context(), c.ID))
	if s, err := rt.Status(t.Context(), c.ID); err != nil || s.State != runtime.Running {
		t.Errorf("guarded: %+v, %v", s, err)
	}
}

// A start that was under way when the deadline passed does not land: whoever goes on with
// it, as an agent that was stopped does, finds nothing that could run.
func TestAStartUnderWayAtTheDeadlineDoesNotLand(t *testing.T) {
	h, rt := newLoadedNode(t)
	dir := h.guardAs(rt)
	c := h.container("run")
	c.Log.Guard = dir.Record("default.db-0")
	h.create(rt, c)
	ctx, direct := h.beside("default.db-0.main")
	labels, err := direct.Labels(ctx)
	h.must(err)
	task, err := direct.NewTask(ctx, cio.BinaryIO(h.cfg.Logger, map[string]string{"logger": labels["rt.stead.dev/log"]}))
	h.must(err)
	if h.emptied(rt, db0) {
		t.Fatal("no process waits for its start")
	}
	h.must(expire(dir))
	h.until("what waits is killed", func() bool { return h.emptied(rt, db0) })
	if err := rt.Start(t.Context(), c.ID); err == nil || !h.emptied(rt, db0) {
		t.Errorf("its agent goes on: %v", err)
	}
	if err := task.Start(ctx); err == nil || !h.emptied(rt, db0) {
		t.Errorf("a start beside it: %v", err)
	}
}
