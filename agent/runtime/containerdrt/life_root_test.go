package containerdrt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/containerdrt"
	"github.com/stead-project/stead/spec"
)

var (
	db0   = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	main0 = runtime.ContainerID{ID: db0, Name: "main"}
	token = spec.Token{Epoch: 1, Number: 7}
)

func (h *host) container(args ...string) runtime.Container {
	return runtime.Container{
		ID: main0, Token: token, Image: imageName, Command: []string{"/box"}, Args: args, Hostname: "db-0",
		Log: runtime.Log{Dir: filepath.Join(h.dir, "logs", "db-0", "main"), FileBytes: 1 << 20, Files: 3},
	}
}

// create makes sandbox and container.
func (h *host) create(rt *containerdrt.Runtime, c runtime.Container) {
	h.t.Helper()
	if _, err := rt.EnsureSandbox(h.t.Context(), runtime.Sandbox{ID: c.ID.ID, Token: c.Token, Hostname: c.Hostname}); err != nil {
		h.t.Fatal(err)
	}
	if err := rt.Create(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
}

// start makes sandbox and container, and starts it.
func (h *host) start(rt *containerdrt.Runtime, c runtime.Container) {
	h.t.Helper()
	h.create(rt, c)
	if err := rt.Start(h.t.Context(), c.ID); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) wait(rt *containerdrt.Runtime, id runtime.ContainerID) runtime.Exit {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	e, err := rt.Wait(ctx, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

// log returns the newest run's log of a container.
func (h *host) log(c runtime.Container) string {
	h.t.Helper()
	var out bytes.Buffer
	if err := logs.Read(h.t.Context(), c.Log.Dir, logs.Options{Tail: -1}, &out); err != nil {
		h.t.Fatal(err)
	}
	return out.String()
}

func (h *host) ticks(c runtime.Container) int { return strings.Count(h.log(c), "tick") }

func TestDaemonDiesAndMembersLiveOn(t *testing.T) {
	h, rt := newLoadedNode(t)
	c := h.container("chatty", "20")
	h.start(rt, c)
	waited := make(chan error, 1)
	go func() { _, err := rt.Wait(t.Context(), c.ID); waited <- err }()
	h.until("lines are logged", func() bool { return h.ticks(c) > 2 })

	h.killDaemon()
	if err := <-waited; !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("Wait when the daemon dies: %v, want unavailable", err)
	}
	if _, err := rt.List(t.Context()); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("List without a daemon: %v, want unavailable", err)
	}
	if err := rt.Ping(t.Context()); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("Ping without a daemon: %v, want unavailable", err)
	}
	if empty, err := rt.Empty(t.Context(), db0); err != nil || empty {
		t.Errorf("Empty without a daemon: %v, %v; want false", empty, err)
	}
	was := h.ticks(c)
	h.until("lines are logged without a daemon", func() bool { return h.ticks(c) > was+5 })

	h.startDaemon()
	h.until("the runtime has connected again", func() bool { return rt.Ping(t.Context()) == nil })
	s, err := rt.Status(t.Context(), c.ID)
	if err != nil || s.State != runtime.Running || s.Token != token {
		t.Errorf("after the daemon came back: %+v, %v; want it running", s, err)
	}
	was = h.ticks(c)
	h.until("lines are logged after the daemon came back", func() bool { return h.ticks(c) > was+5 })
	if err := rt.Signal(t.Context(), c.ID, int(syscall.SIGKILL), false); err != nil {
		t.Fatal(err)
	}
	if e := h.wait(rt, c.ID); e.Code != 137 || e.Unknown || e.OOM {
		t.Errorf("its end: %+v, want code 137", e)
	}
}

func TestEndWithoutADaemonIsNotForgotten(t *testing.T) {
	h, rt, c := newRunning(t)
	h.killDaemon()
	if err := rt.KillAll(t.Context(), db0); err != nil {
		t.Fatalf("KillAll without a daemon: %v", err)
	}
	if empty, err := rt.Empty(t.Context(), db0); err != nil || !empty {
		t.Errorf("Empty after KillAll: %v, %v", empty, err)
	}
	h.startDaemon()
	h.until("the runtime has connected again", func() bool { return rt.Ping(t.Context()) == nil })
	s, err := rt.Status(t.Context(), c.ID)
	if err != nil || s.State != runtime.Exited && s.State != runtime.Lost {
		t.Errorf("after the daemon came back: %+v, %v; want Exited or Lost", s, err)
	}
	if err := rt.Start(t.Context(), c.ID); !errors.Is(err, runtime.ErrExists) {
		t.Errorf("Start of what ran: %v, want refused", err)
	}
}

func TestMemoryLimitKills(t *testing.T) {
	h, rt := newLoadedNode(t)
	c := h.container("eat")
	c.MemoryBytes = 32 << 20
	h.start(rt, c)
	if e := h.wait(rt, c.ID); e.Code != 137 || !e.OOM {
		t.Errorf("its end: %+v, want code 137 for memory", e)
	}
	if s, err := rt.Status(t.Context(), c.ID); err != nil || s.State != runtime.Exited || !s.Exit.OOM {
		t.Errorf("its status: %+v, %v; want an exit for memory", s, err)
	}
}

func TestLimitsStandInTheCgroup(t *testing.T) {
	h, rt := newLoadedNode(t)
	c := h.container("run")
	c.MemoryBytes, c.CPUMillis, c.CPURequestMillis = 64<<20, 500, 250
	h.start(rt, c)
	path := filepath.Join(h.cfg.CgroupParent, "default.db-0", "main")
	want := map[string]string{ // v1; weight and max on v2
		"memory/memory.limit_in_bytes": "67108864", "cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.shares": "256",
	}
	base := "/sys/fs/cgroup"
	if _, err := os.Stat(base + "/cgroup.controllers"); err == nil {
		want = map[string]string{"/memory.max": "67108864", "/cpu.max": "50000 100000"}
	}
	for file, value := range want {
		tree, name := filepath.Split(file)
		got, err := os.ReadFile(filepath.Join(base, tree, path, name))
		if err != nil || strings.TrimSpace(string(got)) != value {
			t.Errorf("%s: %q, %v; want %s", file, got, err, value)
		}
	}
}

func TestLogsOfEachRunStandApart(t *testing.T) {
	h, rt := newLoadedNode(t)
	for attempt := range 3 {
		c := h.container("fail", fmt.Sprint("attempt ", attempt), "1")
		c.Attempt = attempt
		h.start(rt, c)
		if e := h.wait(rt, c.ID); e.Code != 1 {
			t.Fatalf("its end: %+v", e)
		}
		if err := rt.Remove(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := logs.Read(t.Context(), c.Log.Dir, logs.Options{Tail: -1, Follow: true}, &out); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("attempt %d\n", attempt); out.String() != want {
			t.Errorf("log %q, want %q", out.String(), want)
		}
	}
	var out bytes.Buffer
	if err := logs.Read(t.Context(), h.container().Log.Dir, logs.Options{Tail: -1, Previous: true}, &out); err != nil || out.String() != "attempt 1\n" {
		t.Errorf("previous log %q, %v; want attempt 1", out.String(), err)
	}
}

func TestExecLeavesNobodyWaiting(t *testing.T) {
	h, rt, c := newRunning(t)
	var out bytes.Buffer
	long, cancelLong := context.WithTimeout(t.Context(), 2*time.Minute) // it would wait for ever
	defer cancelLong()
	code, err := rt.Exec(long, c.ID, runtime.Exec{Command: []string{"/box", "fork"}, Stdout: &out})
	if err != nil || code != 0 || !strings.Contains(out.String(), "forked\n") {
		t.Errorf("exec that leaves a child: code %d, output %q, %v", code, out.String(), err)
	}
	if _, err := rt.Exec(t.Context(), c.ID, runtime.Exec{Command: []string{"none"}}); !errors.Is(err, runtime.ErrBadSpec) {
		t.Errorf("exec of no program: %v, want a bad spec", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := rt.Exec(ctx, c.ID, runtime.Exec{Command: []string{"/box", "stubborn"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("exec past its time: %v", err)
	}
	// One process is the main one, one is the child left by fork.
	procs := filepath.Join("/sys/fs/cgroup/unified", h.cfg.CgroupParent, "default.db-0/main/cgroup.procs")
	if _, err := os.Stat(procs); err != nil {
		procs = strings.Replace(procs, "/unified", "", 1)
	}
	h.until("two processes are left after the execs", func() bool {
		text, err := os.ReadFile(procs)
		return err == nil && strings.Count(string(text), "\n") == 2
	})
}
