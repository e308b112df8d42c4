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

func newDoors() doors {
	return doors{
		open: map[runtime.ContainerID]*door{}, shut: map[runtime.ContainerID]shut{},
		seen: map[runtime.ContainerID]bool{}, told: map[runtime.ContainerID]bool{},
	}
}

// doors remembers the containers that commands are entered into, so that the daemon is
// asked once for each of their lives.
type doors struct {
	mu     sync.Mutex
	helper *enter.Helper // nil: not made yet
	open   map[runtime.ContainerID]*door
	shut   map[runtime.ContainerID]shut
	seen   map[runtime.ContainerID]bool // a command ran there before
	told   map[runtime.ContainerID]bool // one ran through the daemon
}

// first reports, once, that no command ran in a container before.
func (d *doors) first(id runtime.ContainerID) bool { return d.once(d.seen, id) }

// refused reports, once, that a container cannot be entered directly.
func (d *doors) refused(id runtime.ContainerID) bool { return d.once(d.told, id) }

func (d *doors) once(m map[runtime.ContainerID]bool, id runtime.ContainerID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := !m[id]
	m[id] = true
	return first
}

// door is a container that commands are entered into.
type door struct {
	*enter.Container
	// own is the cgroup of its commands while it is known to be empty: each begins by the
	// turn of the container, and leaves it here when the sweep at its end went well. nil:
	// nobody knows. It is looked at only by who has the turn.
	own *cgroup.Own
}

// take returns the cgroup for a command that begins: from now on it may not be empty.
func (d *door) take() *cgroup.Own {
	own := d.own
	d.own = nil
	return own
}

// leave is told of the end of a command in own: its error, and that of the sweep. Of one
// that was late the child may be put there after the sweep, without leave to begin. Of one
// that was refused the cause may be that own is not there any more: it is made again.
func (d *door) leave(own *cgroup.Own, err, left error) {
	if left == nil && !errors.Is(err, enter.ErrRefused) && !errors.Is(err, enter.ErrLate) {
		d.own = own
	}
}

// shut is a container whose filter could not be copied: it is not stopped for that again.
type shut struct {
	pid int
	err error
}

// get returns a container that was entered before and lives, nil where there is none.
func (d *doors) get(id runtime.ContainerID) *door {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.open[id]
	if c != nil && !c.Alive() {
		c.Close()
		delete(d.open, id)
		return nil
	}
	return c
}

func (d *doors) put(id runtime.ContainerID, c *enter.Container) *door {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[id] = &door{Container: c}
	return d.open[id]
}

// forget is for containers that nobody enters any more.
func (d *doors) forget(id runtime.ContainerID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.open[id]; c != nil {
		c.Close()
	}
	delete(d.open, id)
	delete(d.shut, id)
	delete(d.seen, id)
	delete(d.told, id)
}

func (d *doors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.open {
		c.Close()
	}
	clear(d.open)
	if d.helper != nil {
		d.helper.Close()
	}
}

// program is made once; a failure is tried again.
func (d *doors) program(path string) (*enter.Helper, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.helper == nil {
		h, err := enter.NewHelper(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, enter.ErrRefused)
		}
		d.helper = h
	}
	return d.helper, nil
}

// enterable returns what the container is entered with. The caller has its turn, so that
// nobody else closes it.
func (r *Runtime) enterable(ctx context.Context, id runtime.ContainerID) (*enter.Helper, *door, error) {
	helper, err := r.doors.program(r.cfg.Logger)
	if err != nil {
		return nil, nil, err
	}
	if c := r.doors.get(id); c != nil {
		return helper, c, nil
	}
	ctx, done := r.begin(ctx, lookTime)
	defer done()
	c, err := r.openDoor(ctx, id)
	if errdefs.IsNotFound(err) {
		err = runtime.ErrNotRunning
	}
	switch {
	case err == nil:
		return helper, r.doors.put(id, c), nil
	case errors.Is(err, enter.ErrRefused):
		return nil, nil, err
	}
	return nil, nil, r.notBegun(ctx, "look at the container", err)
}

func (r *Runtime) openDoor(ctx context.Context, id runtime.ContainerID) (*enter.Container, error) {
	task, s, err := r.running(ctx, id)
	if err != nil {
		return nil, err
	}
	plan, err := direct(containerID(id), s)
	if err != nil {
		return nil, err
	}
	pid := int(task.Pid())
	r.doors.mu.Lock()
	before, known := r.doors.shut[id]
	r.doors.mu.Unlock()
	if known && before.pid == pid {
		return nil, before.err
	}
	door, err := enter.Open(pid, plan, s.Linux.Seccomp != nil, func() error { return r.isOf(pid, id) })
	if errors.Is(err, enter.ErrFilter) {
		r.doors.mu.Lock()
		r.doors.shut[id] = shut{pid, err}
		r.doors.mu.Unlock()
	}
	if err != nil && !errors.Is(err, enter.ErrRefused) {
		err = fmt.Errorf("%w: %w", err, enter.ErrRefused) // it may have ended: the runtime will know
	}
	return door, err
}

// isOf fails unless a process is in the container's cgroup.
func (r *Runtime) isOf(pid int, id runtime.ContainerID) error {
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
