package containerdrt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

// beside is a client of the daemon's own, to leave what a crash leaves.
func (h *host) beside(id string) (context.Context, containerd.Container) {
	h.t.Helper()
	client, err := containerd.New(h.cfg.Address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { client.Close() })
	ctx := namespaces.WithNamespace(h.t.Context(), h.cfg.Namespace)
	c, err := client.LoadContainer(ctx, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return ctx, c
}

func TestStartGoesOnWhereACrashLeftIt(t *testing.T) {
	h, rt := newLoadedNode(t)
	c := h.container("exit", "5")
	h.create(rt, c)
	ctx, direct := h.beside("default.db-0.main")
	if _, err := direct.NewTask(ctx, cio.NullIO); err != nil {
		t.Fatal(err)
	}
	if s, err := rt.Status(t.Context(), c.ID); err != nil || s.State != runtime.Created || !s.Loaded {
		t.Errorf("a task that was not started: %+v, %v; want Created and loaded", s, err)
	}
	if empty, err := rt.Empty(t.Context(), db0); err != nil || empty {
		t.Errorf("Empty with a process that waits for its start: %v, %v", empty, err)
	}
	if err := rt.Start(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if e := h.wait(rt, c.ID); e.Code != 5 {
		t.Errorf("its end: %+v, want code 5", e)
	}
}

func TestStartedContainerWithoutATaskIsLost(t *testing.T) {
	h, rt, c := newRunning(t)
	ctx, direct := h.beside("default.db-0.main")
	task, err := direct.Task(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := task.Delete(ctx, containerd.WithProcessKill); err != nil {
		t.Fatal(err)
	}
	if s, err := rt.Status(t.Context(), c.ID); err != nil || s.State != runtime.Lost {
		t.Errorf("status: %+v, %v; want Lost", s, err)
	}
	if e := h.wait(rt, c.ID); !e.Unknown {
		t.Errorf("its end: %+v, want an unknown one", e)
	}
	if err := rt.Start(t.Context(), c.ID); !errors.Is(err, runtime.ErrExists) {
		t.Errorf("Start of what may have run: %v, want refused", err)
	}
	if err := rt.Remove(t.Context(), c.ID); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func TestProcessesInTheCgroupForbidAStart(t *testing.T) {
	h, rt := newLoadedNode(t)
	c := h.container("run")
	h.create(rt, c)
	h.squat("default.db-0/main") // as a hung shim's container, of which nobody knows
	if err := rt.Start(t.Context(), c.ID); !errors.Is(err, runtime.ErrExists) {
		t.Errorf("Start beside a process: %v, want refused", err)
	}
	if s, err := rt.Status(t.Context(), c.ID); err != nil || s.State != runtime.Created {
		t.Errorf("status: %+v, %v; want Created", s, err)
	}
	if err := rt.RemoveSandbox(t.Context(), db0); !errors.Is(err, runtime.ErrExists) {
		t.Errorf("RemoveSandbox beside a process: %v, want refused", err)
	}
	if err := rt.KillAll(t.Context(), db0); err != nil {
		t.Fatal(err)
	}
	if err := rt.Start(t.Context(), c.ID); err != nil {
		t.Errorf("Start after KillAll: %v", err)
	}
}

func TestABundleThatTheDaemonLeftIsClearedAway(t *testing.T) {
	h, rt := newLoadedNode(t)
	c := h.container("run")
	h.create(rt, c)
	// As after a shim that died while the daemon's clean-up was killed.
	bundle := filepath.Join(h.dir, "state", "io.containerd.runtime.v2.task", h.cfg.Namespace, "default.db-0.main")
	root := filepath.Join(bundle, "rootfs")
	if err := os.MkdirAll(root, 0o711); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(h.dir, "precious")
	if err := os.Mkdir(precious, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(precious, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(precious, root, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := rt.Start(t.Context(), c.ID); err != nil {
		t.Fatalf("start: %v", err)
	}
	if s, err := rt.Status(t.Context(), c.ID); err != nil || s.State != runtime.Running {
		t.Errorf("status: %+v, %v; want Running", s, err)
	}
	if _, err := os.Stat(filepath.Join(precious, "file")); err != nil {
		t.Errorf("what was mounted there is gone: %v", err)
	}
}
