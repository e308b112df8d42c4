package containerdrt_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

// said is what a command printed, a sorted list of lines.
func (h *host) said(rt runtime.Runtime, id runtime.ContainerID, e runtime.Exec) []string {
	h.t.Helper()
	var out, errs bytes.Buffer
	e.Stdout, e.Stderr = &out, &errs
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	code, err := rt.Exec(ctx, id, e)
	if err != nil || code != 0 {
		h.t.Fatalf("%v: code %d, %v\n%s", e.Command, code, err, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(lines)
	return lines
}

// differ gives this process limits and a umask that no container has: what is left out
// would be ours.
func differ(t *testing.T) {
	t.Helper()
	for _, kind := range []int{unix.RLIMIT_MSGQUEUE, unix.RLIMIT_STACK} {
		var was unix.Rlimit
		if err := unix.Prlimit(0, kind, nil, &was); err != nil {
			t.Fatal(err)
		}
		less := unix.Rlimit{Cur: was.Cur / 2, Max: was.Max}
		if err := unix.Prlimit(0, kind, &less, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Prlimit(0, kind, &was, nil) })
	}
	mask := unix.Umask(0o077)
	t.Cleanup(func() { unix.Umask(mask) })
}

// TestABoundedCommandIsConfinedAsTheRuntimesOwn looks from inside: the same program, run
// by runc and entered directly, sees the same but for the cgroup of its own.
func TestABoundedCommandIsConfinedAsTheRuntimesOwn(t *testing.T) {
	h, rt := newLoadedNode(t)
	for _, c := range []struct {
		name string
		with func(*runtime.Container)
	}{
		{"root", func(*runtime.Container) {}},
		{"user", func(c *runtime.Container) {
			user, group := int64(1000), int64(998) // HOME is in the image's list of users
			c.User, c.Group, c.SupplementalGroups = &user, &group, []int64{5, 77}
		}},
		{"root that gains nothing", func(c *runtime.Container) { c.NoNewPrivileges = true }},
		{"user that gains nothing", func(c *runtime.Container) {
			user := int64(1000)
			c.User, c.NoNewPrivileges = &user, true
		}},
		{"bare", func(c *runtime.Container) {
			c.DropCapabilities, c.ReadOnlyRoot, c.MemoryBytes, c.CPUMillis = []string{"ALL"}, true, 64<<20, 500
		}},
		{"more", func(c *runtime.Container) {
			c.AddCapabilities, c.Dir, c.Env = []string{"SYS_PTRACE", "NET_ADMIN"}, "/tmp", []string{"HOME=/somewhere", "A=b c"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			container := h.container("run")
			container.ID.Name = strings.ReplaceAll(c.name, " ", "-")
			c.with(&container)
			h.start(rt, container)
			differ(t)
			runs := h.said(rt, container.ID, runtime.Exec{Command: []string{"/box", "cage"}})
			h.said(rt, container.ID, runtime.Exec{Command: []string{"/box", "exit", "0"}, Bounded: true}) // the daemon is asked once
			goOn := h.hang()                                                                              // so it is not the runtime that does it
			entered := h.said(rt, container.ID, runtime.Exec{Command: []string{"/box", "cage"}, Bounded: true})
			goOn()
			for i, line := range entered {
				entered[i] = strings.TrimSuffix(line, "/probe")
			}
			slices.Sort(entered)
			// The runtime hands down what the process that started containerd ignored.
			ignored := func(line string) bool { return strings.HasPrefix(line, "status SigIgn:") }
			if i := slices.IndexFunc(entered, ignored); i < 0 || !strings.HasSuffix(entered[i], "\t0000000000000000") {
				t.Errorf("the command ignores signals: %q", entered)
			}
			if !slices.Contains(entered, map[bool]string{true: "status NoNewPrivs:\t1", false: "status NoNewPrivs:\t0"}[container.NoNewPrivileges]) {
				t.Errorf("no_new_privs is not as asked for, %v: %q", container.NoNewPrivileges, entered)
			}
			runs, entered = slices.DeleteFunc(runs, ignored), slices.DeleteFunc(entered, ignored)
			if d := cmp.Diff(runs, entered); d != "" {
				t.Errorf("by the runtime (-) and entered (+):\n%s", d)
			}
			if err := rt.Remove(t.Context(), container.ID); err != nil {
				t.Fatal(err)
			}
			if err := rt.RemoveSandbox(t.Context(), container.ID.ID); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestNothingOfTheMembersIsOpenedButFiles: the helper looks for HOME in the container's
// list of users, outside of the container's device cgroup. A member that puts a device
// there must not have it opened; a pipe tells whether it was.
func TestNothingOfTheMembersIsOpenedButFiles(t *testing.T) {
	h, rt, c := newRunning(t)
	home := func() string {
		t.Helper()
		for _, line := range h.said(rt, c.ID, runtime.Exec{Command: []string{"/box", "cage"}, Bounded: true}) {
			if dir, ok := strings.CutPrefix(line, "environment HOME="); ok {
				return dir
			}
		}
		return "none"
	}
	h.said(rt, c.ID, runtime.Exec{Command: []string{"/box", "write", "/etc/passwd", "me:x:0:0::/elsewhere:/box"}, Bounded: true})
	if got := home(); got != "/elsewhere" {
		t.Errorf("HOME is %q, want that of the list", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	made, opened := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := rt.Exec(ctx, c.ID, runtime.Exec{Command: []string{"/box", "pipe", "/etc/pipe"}, Stdout: &first{began: made}})
		opened <- err
	}()
	<-made
	h.said(rt, c.ID, runtime.Exec{Command: []string{"/box", "plant", "/etc/passwd", "/etc/pipe"}, Bounded: true})
	for range 5 {
		if got := home(); got != "/" {
			t.Errorf("HOME is %q, want /", got)
		}
	}
	cancel()
	if err := <-opened; !errors.Is(err, context.Canceled) {
		t.Errorf("the pipe was opened: %v", err)
	}
}
