package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/containerd/v2/pkg/cap"
	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/cgroup"
	"github.com/stead-project/stead/agent/enter"
	"github.com/stead-project/stead/agent/runtime"
)

// direct is how a container is entered without the runtime, from its spec. It refuses
// each option that it does not know to do as the runtime does.
func direct(id string, s *specs.Spec) (enter.Plan, error) {
	if what := unknown(s); what != "" {
		return enter.Plan{}, fmt.Errorf("its %s is not known here: %w", what, enter.ErrRefused)
	}
	p := s.Process
	plan := enter.Plan{
		Env: p.Env, Dir: p.Cwd, Umask: 0o022,
		UID: p.User.UID, GID: p.User.GID, Groups: p.User.AdditionalGids, NoNewPrivileges: p.NoNewPrivileges,
		Keyring: "_ses." + id, // runc's name for it
	}
	if p.User.Umask != nil {
		plan.Umask = *p.User.Umask
	}
	for _, set := range []struct {
		names []string
		to    *uint64
	}{
		{p.Capabilities.Bounding, &plan.Caps.Bounding}, {p.Capabilities.Effective, &plan.Caps.Effective},
		{p.Capabilities.Permitted, &plan.Caps.Permitted}, {p.Capabilities.Inheritable, &plan.Caps.Inheritable},
		{p.Capabilities.Ambient, &plan.Caps.Ambient},
	} {
		for _, name := range set.names {
			number := slices.Index(cap.Known(), name)
			if number < 0 {
				return enter.Plan{}, fmt.Errorf("capability %s is not known here: %w", name, enter.ErrRefused)
			}
			*set.to |= 1 << number
		}
	}
	for _, l := range p.Rlimits {
		kind, ok := rlimits[l.Type]
		if !ok {
			return enter.Plan{}, fmt.Errorf("limit %s is not known here: %w", l.Type, enter.ErrRefused)
		}
		plan.Limits = append(plan.Limits, enter.Limit{Kind: kind, Soft: l.Soft, Hard: l.Hard})
	}
	return plan, nil
}

// unknown names what makes a process differ from one that direct describes; "": nothing.
func unknown(s *specs.Spec) string {
	if s.Process == nil || s.Linux == nil || s.Process.Capabilities == nil {
		return "process without capabilities"
	}
	p, l := s.Process, s.Linux
	for _, c := range []struct {
		what string
		is   bool
	}{
		{"AppArmor profile", p.ApparmorProfile != ""},
		{"SELinux label", p.SelinuxLabel != ""},
		{"scheduler", p.Scheduler != nil},
		{"I/O priority", p.IOPriority != nil},
		{"processor affinity", p.ExecCPUAffinity != nil},
		{"mapping of users", len(l.UIDMappings)+len(l.GIDMappings) > 0},
		{"personality", l.Personality != nil},
		{"RDT class", l.IntelRdt != nil},
		{"memory policy", l.MemoryPolicy != nil},
		{"seccomp option", l.Seccomp != nil && (len(l.Seccomp.Flags) > 0 || l.Seccomp.ListenerPath != "")},
	} {
		if c.is {
			return c.what
		}
	}
	for _, ns := range l.Namespaces {
		switch ns.Type {
		case specs.PIDNamespace, specs.NetworkNamespace, specs.MountNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.CgroupNamespace:
		default:
			return "namespace " + string(ns.Type)
		}
	}
	return ""
}

var rlimits = map[string]int{
	"RLIMIT_CPU": unix.RLIMIT_CPU, "RLIMIT_FSIZE": unix.RLIMIT_FSIZE, "RLIMIT_DATA": unix.RLIMIT_DATA,
	"RLIMIT_STACK": unix.RLIMIT_STACK, "RLIMIT_CORE": unix.RLIMIT_CORE, "RLIMIT_RSS": unix.RLIMIT_RSS,
	"RLIMIT_NPROC": unix.RLIMIT_NPROC, "RLIMIT_NOFILE": unix.RLIMIT_NOFILE, "RLIMIT_MEMLOCK": unix.RLIMIT_MEMLOCK,
	"RLIMIT_AS": unix.RLIMIT_AS, "RLIMIT_LOCKS": unix.RLIMIT_LOCKS, "RLIMIT_SIGPENDING": unix.RLIMIT_SIGPENDING,
	"RLIMIT_MSGQUEUE": unix.RLIMIT_MSGQUEUE, "RLIMIT_NICE": unix.RLIMIT_NICE, "RLIMIT_RTPRIO": unix.RLIMIT_RTPRIO,
	"RLIMIT_RTTIME": unix.RLIMIT_RTTIME,
}

// openContainers remembers the containers that commands are entered into, so that the
// daemon is asked once for each of their lives.
type openContainers struct {
	mu     sync.Mutex
	helper *enter.Helper // nil: not made yet
	of     map[runtime.ContainerID]*openContainer
}

// openContainer is what is remembered of a container between its commands. But for forget and
// close, only who holds the container's turn uses it.
type openContainer struct {
	*enter.Container // nil: not entered yet, or it has ended; written under the lock
	// own is the cgroup of its commands while it is known to be empty: each command takes it,
	// and gives it back when the sweep at its end went well. nil: it may not be empty.
	own    *cgroup.Own
	used   bool // a command ran there before
	logged bool // it was logged that one ran through the daemon
	// failed is why the filter of the process failedPid could not be copied: it is not
	// stopped for that again.
	failed    error
	failedPid int
}

// take returns the cgroup for a command that starts: from now on it may not be empty.
func (c *openContainer) take() *cgroup.Own {
	own := c.own
	c.own = nil
	return own
}

// giveBack ends the use of own by a command; err is its error, left that of the sweep. Of a
// command that was late the child may be put there after the sweep, without leave to start.
// Of one that was refused the cause may be that own is not there any more: it is made again.
func (c *openContainer) giveBack(own *cgroup.Own, err, left error) {
	if left == nil && !errors.Is(err, enter.ErrRefused) && !errors.Is(err, enter.ErrLate) {
		c.own = own
	}
}

// get returns what is remembered of a container.
func (o *openContainers) get(id runtime.ContainerID) *openContainer {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.of[id]
	switch {
	case c == nil:
		c = &openContainer{}
		o.of[id] = c
	case c.Container != nil && !c.Alive():
		c.Close()
		c.Container, c.own = nil, nil
	}
	return c
}

func (o *openContainers) put(c *openContainer, entered *enter.Container) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.Container = entered
}

// forget is for containers that are removed.
func (o *openContainers) forget(id runtime.ContainerID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.of[id]; c != nil && c.Container != nil {
		c.Close()
	}
	delete(o.of, id)
}

func (o *openContainers) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.of {
		if c.Container != nil {
			c.Close()
		}
	}
	clear(o.of)
	if o.helper != nil {
		o.helper.Close()
	}
}

// program is made once; a failure is tried again.
func (o *openContainers) program(path string) (*enter.Helper, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.helper == nil {
		h, err := enter.NewHelper(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, enter.ErrRefused)
		}
		o.helper = h
	}
	return o.helper, nil
}

// openForCommands makes sure that the container is open, and returns what enters it. The caller
// has its turn, so that no other closes it.
func (r *commands) openForCommands(ctx context.Context, id runtime.ContainerID, c *openContainer) (*enter.Helper, error) {
	helper, err := r.entered.program(r.cfg.Logger)
	if err != nil || c.Container != nil {
		return helper, err
	}
	ctx, done := r.begin(ctx, lookTime)
	defer done()
	entered, err := r.open(ctx, id, c)
	if errdefs.IsNotFound(err) {
		err = runtime.ErrNotRunning
	}
	switch {
	case err == nil:
		r.entered.put(c, entered)
		return helper, nil
	case errors.Is(err, enter.ErrRefused):
		return nil, err
	}
	return nil, r.startError(ctx, "look at the container", err)
}

func (r *commands) open(ctx context.Context, id runtime.ContainerID, known *openContainer) (*enter.Container, error) {
	task, s, err := r.runningTask(ctx, id)
	if err != nil {
		return nil, err
	}
	plan, err := direct(containerID(id), s)
	if err != nil {
		return nil, err
	}
	pid := int(task.Pid())
	if known.failed != nil && known.failedPid == pid {
		return nil, known.failed
	}
	c, err := enter.Open(pid, plan, s.Linux.Seccomp != nil, func() error { return r.isOf(pid, id) })
	if errors.Is(err, enter.ErrFilter) {
		known.failed, known.failedPid = err, pid
	}
	if err != nil && !errors.Is(err, enter.ErrRefused) {
		err = fmt.Errorf("%w: %w", err, enter.ErrRefused) // it may have ended: the runtime will know
	}
	return c, err
}

// isOf fails unless a process is in the container's cgroup.
func (r *commands) isOf(pid int, id runtime.ContainerID) error {
	text, err := os.ReadFile(filepath.Join(procDir(pid), "cgroup"))
	if err != nil {
		return err
	}
	want := r.cgroupPath(id)
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && (f[2] == want || strings.HasPrefix(f[2], want+"/")) {
			return nil
		}
	}
	return fmt.Errorf("process %d is not in cgroup %s", pid, want)
}
