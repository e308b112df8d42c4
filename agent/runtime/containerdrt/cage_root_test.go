package containerdrt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/spec"
)

func TestWhatAContainerSees(t *testing.T) {
	h, rt := newNode(t)
	h.load(rt, imageName, runtimetest.ImageConfig{
		Entrypoint: []string{"/box"}, Cmd: []string{"exit", "9"}, User: "app", WorkingDir: "/home/app",
		Env: []string{"FROM_IMAGE=1", "BOTH=image"},
	})
	volume := filepath.Join(h.dir, "volume")
	if err := os.Mkdir(volume, 0o777); err != nil {
		t.Fatal(err)
	}
	c := h.container("facts")
	c.Command = nil // the image's
	c.Env = []string{"BOTH=container"}
	c.SupplementalGroups = []int64{3000}
	c.ReadOnlyRoot, c.NoNewPrivileges = true, true
	c.DropCapabilities = []string{"ALL"}
	c.AddCapabilities = []string{"NET_BIND_SERVICE"}
	c.Mounts = []runtime.Mount{{Source: volume, Target: "/volume/deep"}, {Source: volume, Target: "/config", ReadOnly: true}}
	h.start(rt, c)
	if e := h.wait(rt, c.ID); e.Code != 0 {
		t.Fatalf("its end: %+v\n%s", e, h.log(c))
	}
	var log string
	h.until("all is logged", func() bool { log = h.log(c); return strings.Contains(log, "/sys/fs/cgroup") })
	for _, want := range []string{
		"hostname db-0\n", "uid 1000 gid 1001 groups [1001 2000 3000]\n", "dir /home/app\n", "pid 1\n",
		"env FROM_IMAGE=1\n", "env BOTH=container\n", "env HOSTNAME=db-0\n", "env PATH=/usr/local/sbin:",
		"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapBnd:\t0000000000000400\n",
		" / / ro", " /volume/deep rw", " /config ro", " /sys ro", " /dev/shm ",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("lacks %q", want)
		}
	}
	for _, bad := range []string{"env TERM=", "BOTH=image", " /run "} {
		if strings.Contains(log, bad) {
			t.Errorf("has %q", bad)
		}
	}
	if t.Failed() {
		t.Logf("it saw:\n%s", log)
	}
}

func TestUsersAndCommandsThatCannotWork(t *testing.T) {
	h, rt := newLoadedNode(t)
	h.load(rt, "stead.test/nobody:1", runtimetest.ImageConfig{User: "nobody-here"})
	if _, err := rt.EnsureSandbox(t.Context(), runtime.Sandbox{ID: db0, Token: token, Hostname: "db-0"}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*runtime.Container){
		"root where it may not be":   func(c *runtime.Container) { c.NonRoot = true },
		"an unknown user":            func(c *runtime.Container) { c.Image = "stead.test/nobody:1" },
		"no command at all":          func(c *runtime.Container) { c.Command, c.Args = nil, nil },
		"a command not in PATH":      func(c *runtime.Container) { c.Command = []string{"box"} },
		"a command not executable":   func(c *runtime.Container) { c.Command = []string{"/plain"} },
		"a command that is a folder": func(c *runtime.Container) { c.Command = []string{"/etc"} },
		"an unknown capability":      func(c *runtime.Container) { c.AddCapabilities = []string{"FLY"} },
	} {
		c := h.container("run")
		change(&c)
		err := rt.Create(t.Context(), c)
		if err == nil {
			err = rt.Start(t.Context(), c.ID)
		}
		if !errors.Is(err, runtime.ErrBadSpec) {
			t.Errorf("%s: %v, want a bad spec", name, err)
		} else {
			t.Logf("%s: %v", name, err)
		}
		if err := rt.Remove(t.Context(), c.ID); err != nil {
			t.Errorf("%s: remove: %v", name, err)
		}
	}
}

func TestContainersShareTheirLifesNamespaces(t *testing.T) {
	h, rt, c := newRunning(t)
	first := link(t, rt, c.ID, "net")
	if err := rt.KillAll(t.Context(), db0); err != nil {
		t.Fatal(err)
	}
	if err := rt.Remove(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	c.Attempt = 1
	h.start(rt, c)
	side := h.container("run")
	side.ID.Name = "side"
	h.start(rt, side)
	for _, name := range []string{"net", "ipc", "uts"} {
		if a, b := link(t, rt, c.ID, name), link(t, rt, side.ID, name); a != b || a == hostNamespace(t, name) {
			t.Errorf("%s: %s and %s, host %s; want one of their own", name, a, b, hostNamespace(t, name))
		}
	}
	if again := link(t, rt, c.ID, "net"); again != first {
		t.Errorf("network namespace after a restart in place: %s, was %s", again, first)
	}
}

// link is the namespace that a container's main process is in, as seen from the
// host: the first process of its cgroup.
func link(t *testing.T, rt runtime.Runtime, id runtime.ContainerID, name string) string {
	t.Helper()
	if s, err := rt.Status(t.Context(), id); err != nil || s.State != runtime.Running {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, tree := range []string{"unified", "pids", ""} {
		found, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", tree, "stead-rt-*", "default.db-0", id.Name, "cgroup.procs"))
		for _, f := range found {
			text, _ := os.ReadFile(f)
			if pid, _, ok := strings.Cut(string(text), "\n"); ok {
				ns, err := os.Readlink("/proc/" + pid + "/ns/" + name)
				if err != nil {
					t.Fatal(err)
				}
				return ns
			}
		}
	}
	t.Fatalf("no process of %v", id)
	return ""
}

func hostNamespace(t *testing.T, name string) string {
	t.Helper()
	ns, err := os.Readlink("/proc/self/ns/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func TestHalfMadeSandboxIsMadeAgain(t *testing.T) {
	h, rt := newNode(t)
	box, err := rt.EnsureSandbox(t.Context(), runtime.Sandbox{ID: db0, Token: token, Hostname: "db-0"})
	if err != nil {
		t.Fatal(err)
	}
	uts := filepath.Join(filepath.Dir(box.NetNS), "uts")
	if err := unix.Unmount(uts, 0); err != nil { // as after a crash before the last pin
		t.Fatal(err)
	}
	h.load(rt, imageName, runtimetest.ImageConfig{})
	if err := rt.Create(t.Context(), h.container("run")); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("Create in a half-made sandbox: %v, want not found", err)
	}
	if _, err := rt.EnsureSandbox(t.Context(), runtime.Sandbox{ID: db0, Token: spec.Token{Epoch: 1, Number: 8}, Hostname: "db-0"}); !errors.Is(err, runtime.ErrExists) {
		t.Errorf("another token on a half-made sandbox: %v, want exists", err)
	}
	h.start(rt, h.container("run"))
	if err := unix.Unmount(uts, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.EnsureSandbox(t.Context(), runtime.Sandbox{ID: db0, Token: token, Hostname: "db-0"}); !errors.Is(err, runtime.ErrExists) {
		t.Errorf("a damaged sandbox with processes in it: %v, want exists", err)
	}
}

func TestStartWithoutALoggerLeavesNothing(t *testing.T) {
	h, rt := newLoadedNode(t)
	c := h.container("run")
	h.create(rt, c)
	good := h.cfg.Logger
	h.cfg.Logger = filepath.Join(h.dir, "missing")
	bad := h.open()
	defer bad.Close()
	if err := bad.Start(t.Context(), c.ID); err == nil {
		t.Fatal("it started without a logger")
	}
	if s, err := rt.Status(t.Context(), c.ID); err != nil || s.State != runtime.Created {
		t.Errorf("after a start without a logger: %+v, %v; want Created", s, err)
	}
	h.cfg.Logger = good
	if err := rt.Start(t.Context(), c.ID); err != nil {
		t.Errorf("start with the logger back: %v", err)
	}
}

func TestStartWithALoggerThatHangsEndsWithItsContext(t *testing.T) {
	h := newHost(t)
	h.cfg.Logger = filepath.Join(h.dir, "hangs")
	if err := os.WriteFile(h.cfg.Logger, []byte("#!/bin/sh\n: >\"$0.began\"\nwhile :; do sleep 0.2; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	rt := h.open()
	defer rt.Close()
	h.load(rt, imageName, runtimetest.ImageConfig{})
	c := h.container("run")
	h.create(rt, c)
	for limit, begun := time.Second, false; !begun; limit *= 2 { // in time for the logger to begin
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		if err := rt.Start(ctx, c.ID); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("start with a hanging logger: %v", err)
		}
		_, err := os.Stat(h.cfg.Logger + ".began")
		begun = err == nil || limit > time.Minute
	}
	s, err := rt.Status(t.Context(), c.ID)
	if err != nil || s.State == runtime.Running || s.State == runtime.Created {
		t.Errorf("after it: %+v, %v; want one that may have run", s, err)
	}
	bundle := filepath.Join(h.dir, "state/io.containerd.runtime.v2.task", h.cfg.Namespace, "default.db-0.main")
	h.until("the daemon has given up", func() bool { _, err := os.Stat(bundle); return os.IsNotExist(err) })
	if err := rt.Remove(t.Context(), c.ID); err != nil {
		t.Errorf("remove: %v", err)
	}
	h.until("only the daemon is left", func() bool { return len(h.processes()) == 1 })
	h.cfg.Logger = filepath.Join(h.dir, "stead-node")
	good := h.open()
	defer good.Close()
	h.start(good, c)
}
