package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/containerd/errdefs"

	"github.com/stead-project/stead/agent/cgroup"
	"github.com/stead-project/stead/agent/enter"
	"github.com/stead-project/stead/agent/runtime"
)

// openContainers remembers the containers that commands are entered into, so that the
// daemon is asked once for each of their lives.
type openContainers struct {
	mu     sync.Mutex
	helper *enter.Helper // nil: not made yet
	open   map[runtime.ContainerID]*openContainer
	failed map[runtime.ContainerID]failedOpen
	used   map[runtime.ContainerID]bool // a command ran there before
	logged map[runtime.ContainerID]bool // it was logged that one ran through the daemon
}

func newOpenContainers() *openContainers {
	return &openContainers{
		open: map[runtime.ContainerID]*openContainer{}, failed: map[runtime.ContainerID]failedOpen{},
		used: map[runtime.ContainerID]bool{}, logged: map[runtime.ContainerID]bool{},
	}
}

// isFirst reports, once, that no command ran in a container before.
func (o *openContainers) isFirst(id runtime.ContainerID) bool { return o.once(o.used, id) }

// isNewRefusal reports, once, that a container cannot be entered directly.
func (o *openContainers) isNewRefusal(id runtime.ContainerID) bool { return o.once(o.logged, id) }

func (o *openContainers) once(m map[runtime.ContainerID]bool, id runtime.ContainerID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := !m[id]
	m[id] = true
	return first
}

// openContainer is a container that commands are entered into.
type openContainer struct {
	*enter.Container
	// own is the cgroup of its commands while it is known to be empty. Only who holds the
	// container's turn looks at it: each command takes it, and gives it back when the
	// sweep at its end went well. nil: it may not be empty.
	own *cgroup.Own
}

// take returns the cgroup for a command that begins: from now on it may not be empty.
func (c *openContainer) take() *cgroup.Own {
	own := c.own
	c.own = nil
	return own
}

// giveBack ends the use of own by a command; err is its error, left that of the sweep. Of a
// command that was late the child may be put there after the sweep, without leave to begin.
// Of one that was refused the cause may be that own is not there any more: it is made again.
func (c *openContainer) giveBack(own *cgroup.Own, err, left error) {
	if left == nil && !errors.Is(err, enter.ErrRefused) && !errors.Is(err, enter.ErrLate) {
		c.own = own
	}
}

// failedOpen is a container whose filter could not be copied: it is not stopped for that again.
type failedOpen struct {
	pid int
	err error
}

// get returns a container that was entered before and lives, nil where there is none.
func (o *openContainers) get(id runtime.ContainerID) *openContainer {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.open[id]
	if c != nil && !c.Alive() {
		c.Close()
		delete(o.open, id)
		return nil
	}
	return c
}

func (o *openContainers) put(id runtime.ContainerID, c *enter.Container) *openContainer {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[id] = &openContainer{Container: c}
	return o.open[id]
}

// failure is why a process could not be opened before; nil: it was not tried.
func (o *openContainers) failure(id runtime.ContainerID, pid int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.failed[id]; f.pid == pid {
		return f.err
	}
	return nil
}

func (o *openContainers) putFailure(id runtime.ContainerID, pid int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed[id] = failedOpen{pid, err}
}

// forget is for containers that are removed.
func (o *openContainers) forget(id runtime.ContainerID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.open[id]; c != nil {
		c.Close()
	}
	delete(o.open, id)
	delete(o.failed, id)
	delete(o.used, id)
	delete(o.logged, id)
}

func (o *openContainers) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.open {
		c.Close()
	}
	clear(o.open)
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

// openForCommands returns what the container is entered with. The caller has its turn, so that
// nobody else closes it.
func (r *commands) openForCommands(ctx context.Context, id runtime.ContainerID) (*enter.Helper, *openContainer, error) {
	helper, err := r.entered.program(r.cfg.Logger)
	if err != nil {
		return nil, nil, err
	}
	if c := r.entered.get(id); c != nil {
		return helper, c, nil
	}
	ctx, done := r.begin(ctx, lookTime)
	defer done()
	c, err := r.open(ctx, id)
	if errdefs.IsNotFound(err) {
		err = runtime.ErrNotRunning
	}
	switch {
	case err == nil:
		return helper, r.entered.put(id, c), nil
	case errors.Is(err, enter.ErrRefused):
		return nil, nil, err
	}
	return nil, nil, r.startError(ctx, "look at the container", err)
}

func (r *commands) open(ctx context.Context, id runtime.ContainerID) (*enter.Container, error) {
	task, s, err := r.runningTask(ctx, id)
	if err != nil {
		return nil, err
	}
	plan, err := direct(containerID(id), s)
	if err != nil {
		return nil, err
	}
	pid := int(task.Pid())
	if err := r.entered.failure(id, pid); err != nil {
		return nil, err
	}
	c, err := enter.Open(pid, plan, s.Linux.Seccomp != nil, func() error { return r.isOf(pid, id) })
	if errors.Is(err, enter.ErrFilter) {
		r.entered.putFailure(id, pid, err)
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
