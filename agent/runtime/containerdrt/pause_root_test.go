package containerdrt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/containerdrt"
)

var sharedBox = runtime.Sandbox{ID: db0, Token: token, Hostname: "db-0", SharedPIDs: true}

// shared makes a sandbox whose containers share their processes.
func (h *host) shared(rt *containerdrt.Runtime) {
	h.t.Helper()
	if _, err := rt.EnsureSandbox(h.t.Context(), sharedBox); err != nil {
		h.t.Fatal(err)
	}
}

// startHere makes and starts a container in a sandbox that is there.
func (h *host) startHere(rt *containerdrt.Runtime, name string, args ...string) runtime.Container {
	h.t.Helper()
	c := h.container(args...)
	c.ID.Name, c.Log.Dir = name, filepath.Join(h.dir, "logs", "db-0", name)
	c.AddCapabilities = []string{"SYS_PTRACE"}
	if err := rt.Create(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
	if err := rt.Start(h.t.Context(), c.ID); err != nil {
		h.t.Fatal(err)
	}
	return c
}

// pidsIn are the processes of a cgroup of the identity.
func (h *host) pidsIn(name string) (pids []int) {
	h.t.Helper()
	base := "/sys/fs/cgroup/pids"
	if _, err := os.Stat(base); err != nil {
		base = "/sys/fs/cgroup"
	}
	text, err := os.ReadFile(filepath.Join(base, h.cfg.CgroupParent, "default.db-0", name, "cgroup.procs"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			h.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func (h *host) pausePID() int {
	h.t.Helper()
	pids := h.pidsIn(".pause")
	if len(pids) != 1 {
		h.t.Fatalf("the sandbox's cgroup has the processes %v, want one", pids)
	}
	return pids[0]
}

// exec runs the box in a container and returns what it prints.
func (h *host) exec(rt *containerdrt.Runtime, id runtime.ContainerID, args ...string) (string, int) {
	h.t.Helper()
	var out bytes.Buffer
	code, err := rt.Exec(h.t.Context(), id, runtime.Exec{Command: append([]string{"/box"}, args...), Stdout: &out, Stderr: &out})
	if err != nil {
		h.t.Fatal(err)
	}
	return out.String(), code
}

// TestContainersOfASharedSandboxSeeEachOtherAndNotTheHost: the first process is the sandbox's: nobody's, without
// rights, and what a container with SYS_PTRACE reaches through it is not the host's.
func TestContainersOfASharedSandboxSeeEachOtherAndNotTheHost(t *testing.T) {
	h, rt := newLoadedNode(t)
	h.shared(rt)
	one, two := h.startHere(rt, "one", "run"), h.startHere(rt, "two", "run")
	pause := h.pausePID()
	space := func(pid int) string {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	a, b := h.pidsIn("one"), h.pidsIn("two")
	if space(a[0]) != space(b[0]) || space(a[0]) != space(pause) || space(a[0]) == space(os.Getpid()) {
		t.Errorf("the pid namespaces are %s, %s and %s", space(a[0]), space(b[0]), space(pause))
	}
	for _, c := range []runtime.Container{one, two} {
		if got, _ := h.exec(rt, c.ID, "read", "/proc/1/cmdline"); got != "/stead-node\x00pause\x00" {
			t.Errorf("%s: the first process is %q", c.ID.Name, got)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pause))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Uid:\t65535\t65535\t65535\t65535", "CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("the sandbox's process has no %q:\n%s", want, status)
		}
	}
	if out, code := h.exec(rt, one.ID, "write", "/proc/1/exe", "x"); code == 0 || !strings.Contains(out, "read-only file system") {
		t.Errorf("a container writes to the host's stead-node: %d, %s", code, out)
	}
	if out, code := h.exec(rt, one.ID, "write", "/proc/1/root/new", "x"); code == 0 || !strings.Contains(out, "read-only file system") {
		t.Errorf("a container writes to the file system of all such processes: %d, %s", code, out)
	}
	if out, code := h.exec(rt, one.ID, "read", "/proc/1/root/etc/passwd"); code == 0 {
		t.Errorf("a container reads the host's files: %s", out)
	}
}

// TestWithTheSandboxesProcessAllEnd: and a process whose parent ended is waited for by it.
func TestWithTheSandboxesProcessAllEnd(t *testing.T) {
	h, rt := newLoadedNode(t)
	h.shared(rt)
	one, two := h.startHere(rt, "one", "run"), h.startHere(rt, "two", "stubborn")
	litter := h.startHere(rt, "litter", "litter")
	h.wait(rt, litter.ID)
	h.until("what it left is gone", func() bool {
		s, err := rt.Status(t.Context(), litter.ID)
		if err == nil && s.Left {
			err = rt.Signal(t.Context(), litter.ID, int(unix.SIGKILL), true)
		}
		if err != nil {
			t.Fatal(err)
		}
		return !s.Left
	})
	pause := h.pausePID()
	h.until("it is waited for", func() bool {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pause, pause))
		return err != nil || len(bytes.TrimSpace(children)) == 0
	})
	if err := unix.Kill(pause, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, c := range []runtime.Container{one, two} {
		if e := h.wait(rt, c.ID); e.Code != 137 {
			t.Errorf("%s: %+v, want code 137", c.ID.Name, e)
		}
		if err := rt.Remove(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := rt.Create(t.Context(), h.container("run")); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("create without the sandbox's process: %v, want not found", err)
	}
	h.shared(rt)
	h.startHere(rt, "one", "run")
}

// TestWhatHidesBesideTheSandboxesProcessCounts: SAFETY S13 does not count one process, and no other of its cgroup.
func TestWhatHidesBesideTheSandboxesProcessCounts(t *testing.T) {
	h, rt := newLoadedNode(t)
	h.shared(rt)
	if empty, err := rt.Empty(t.Context(), db0); err != nil || !empty {
		t.Fatalf("empty without containers: %v, %v", empty, err)
	}
	h.squat("default.db-0/.pause")
	if empty, err := rt.Empty(t.Context(), db0); err != nil || empty {
		t.Errorf("empty with a process beside it: %v, %v", empty, err)
	}
	if err := rt.RemoveSandbox(t.Context(), db0); !errors.Is(err, runtime.ErrExists) {
		t.Errorf("RemoveSandbox with a process beside it: %v, want refused", err)
	}
	if err := rt.KillAll(t.Context(), db0); err != nil {
		t.Fatal(err)
	}
	if empty, err := rt.Empty(t.Context(), db0); err != nil || !empty {
		t.Errorf("empty after KillAll: %v, %v", empty, err)
	}
	h.shared(rt)
	h.startHere(rt, "one", "run")
}

// TestASharedSandboxIsMadeAgainWhereACrashLeftIt: an agent before this one was killed while it made or removed it.
func TestASharedSandboxIsMadeAgainWhereACrashLeftIt(t *testing.T) {
	pin := func(h *host) string { return filepath.Join(h.cfg.RunDir, "ns/default/db-0/pid") }
	unpin := func(t *testing.T, h *host) {
		t.Helper()
		if err := unix.Unmount(pin(h), unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
	for name, crash := range map[string]func(t *testing.T, h *host, rt *containerdrt.Runtime){
		"before its namespace was pinned": func(t *testing.T, h *host, _ *containerdrt.Runtime) { unpin(t, h) },
		"before its process was made": func(t *testing.T, h *host, _ *containerdrt.Runtime) {
			unpin(t, h)
			ctx, c := h.beside(h.pauseContainer())
			task, err := c.Task(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := task.Delete(ctx, containerd.WithProcessKill); err != nil {
				t.Fatal(err)
			}
		},
		"after its process was killed": func(t *testing.T, h *host, rt *containerdrt.Runtime) {
			if err := rt.KillAll(t.Context(), db0); err != nil {
				t.Fatal(err)
			}
		},
		"after a reboot": func(t *testing.T, h *host, rt *containerdrt.Runtime) {
			if err := rt.KillAll(t.Context(), db0); err != nil {
				t.Fatal(err)
			}
			unpin(t, h)
			if err := os.Remove(filepath.Join(h.cfg.RunDir, "ns/default/db-0/sandbox.json")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, rt := newLoadedNode(t)
			h.shared(rt)
			crash(t, h, rt)
			again := h.open()
			t.Cleanup(func() { again.Close() })
			h.shared(again)
			h.pausePID()
			h.startHere(again, "one", "run")
			if err := again.KillAll(t.Context(), db0); err != nil {
				t.Fatal(err)
			}
			crashed := h.pauseContainer()
			if err := again.Remove(t.Context(), runtime.ContainerID{ID: db0, Name: "one"}); err != nil {
				t.Fatal(err)
			}
			if name == "after a reboot" {
				unpin(t, h)
				if err := os.Remove(filepath.Join(h.cfg.RunDir, "ns/default/db-0/sandbox.json")); err != nil {
					t.Fatal(err)
				}
			}
			if err := again.RemoveSandbox(t.Context(), db0); err != nil {
				t.Fatal(err)
			}
			if left := h.containers(); len(left) > 0 {
				t.Errorf("the daemon still has %v, after %s was removed", left, crashed)
			}
		})
	}
}

// pauseContainer is containerd's id of the only container that belongs to a sandbox, not to a member.
func (h *host) pauseContainer() string {
	h.t.Helper()
	for _, id := range h.containers() {
		if strings.HasPrefix(id, "h.") {
			return id
		}
	}
	h.t.Fatal("the daemon has no container for the sandbox")
	return ""
}

// containers are all that the daemon has.
func (h *host) containers() (ids []string) {
	h.t.Helper()
	client, err := containerd.New(h.cfg.Address, containerd.WithDefaultNamespace(h.cfg.Namespace))
	if err != nil {
		h.t.Fatal(err)
	}
	defer client.Close()
	list, err := client.Containers(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, c := range list {
		ids = append(ids, c.ID())
	}
	return ids
}
