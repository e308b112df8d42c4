package fakert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

const (
	sigKill = 9
	sigTerm = 15
)

type container struct {
	made      runtime.Container
	state     runtime.State
	behaviour Behaviour
	started   time.Time
	exit      runtime.Exit
	refused   int64         // processes, for its limit
	left      bool          // it has ended, and what it started has not
	done      chan struct{} // closed when it is no longer running
}

// Create makes a container. Its image and the sandbox of its token must be there.
func (h *Host) Create(ctx context.Context, c runtime.Container) error {
	return h.askOf(ctx, "Create", c.ID, func(have *container) error {
		if have != nil {
			return runtime.ErrExists
		}
		if s, ok := h.sandboxes[c.ID.ID]; !ok || s.Token != c.Token || h.lost[c.ID.ID] {
			return fmt.Errorf("sandbox of token %s: %w", c.Token, runtime.ErrNotFound)
		}
		if _, ok := h.images[c.Image]; !ok {
			return fmt.Errorf("image %q: %w", c.Image, runtime.ErrImageMissing)
		}
		c.Labels = maps.Clone(c.Labels)
		h.containers[c.ID] = &container{made: c, state: runtime.Created, done: make(chan struct{})}
		return nil
	})
}

// Start starts a created container as OnStart says.
func (h *Host) Start(ctx context.Context, id runtime.ContainerID) error {
	return h.askOf(ctx, "Start", id, func(c *container) error {
		switch {
		case c == nil:
			return runtime.ErrNotFound
		case c.state == runtime.Running:
			return nil
		case c.state != runtime.Created:
			return fmt.Errorf("it has run already: %w", runtime.ErrExists)
		}
		if h.script.behaviour != nil {
			c.behaviour = h.script.behaviour(c.made)
		}
		if err := c.behaviour.StartErr; err != nil {
			return err
		}
		c.state, c.started = runtime.Running, time.Now()
		h.starts[id.ID] = append(h.starts[id.ID], Start{id.Name, c.made.Token, c.made.Attempt, c.started})
		if c.behaviour.Exits {
			h.end(c, runtime.Exited, runtime.Exit{Code: c.behaviour.Code})
		}
		return nil
	})
}

// Signal sends a signal; what it does is the container's Behaviour.
func (h *Host) Signal(ctx context.Context, id runtime.ContainerID, sig int, all bool) error {
	return h.askOf(ctx, "Signal", id, func(c *container) error {
		switch {
		case c == nil:
			return runtime.ErrNotFound
		case c.left && all && sig == sigKill:
			c.left = c.behaviour.Unkillable
		case c.state != runtime.Running:
			return runtime.ErrNotRunning
		case sig == sigKill:
			h.kill(c)
		case sig == cmp.Or(c.behaviour.StopSignal, sigTerm) && !c.behaviour.IgnoreTerm:
			h.end(c, runtime.Exited, runtime.Exit{Code: c.behaviour.TermCode})
		}
		return nil
	})
}

// Resize changes what a container may use. A running one uses leastMemory, or what Use said.
func (h *Host) Resize(ctx context.Context, id runtime.ContainerID, r runtime.Resources) error {
	return h.askOf(ctx, "Resize", id, func(c *container) error {
		switch {
		case c == nil:
			return runtime.ErrNotFound
		case c.state != runtime.Running:
			return runtime.ErrNotRunning
		case r.MemoryBytes > 0 && r.MemoryBytes < max(h.used[id].MemoryBytes, leastMemory):
			return fmt.Errorf("it uses more than %d bytes of memory: %w", r.MemoryBytes, runtime.ErrRefused)
		}
		c.made.Resources = r
		return nil
	})
}

// leastMemory is what any running container uses.
const leastMemory = 64 << 10

// Remove deletes a container and kills what is left of it. An unkillable process
// keeps its container: ErrUnavailable.
func (h *Host) Remove(ctx context.Context, id runtime.ContainerID) error {
	return h.askOf(ctx, "Remove", id, func(c *container) error {
		if c != nil && (c.state == runtime.Running && !h.kill(c) || c.left && c.behaviour.Unkillable) {
			return fmt.Errorf("its process does not end: %w", runtime.ErrUnavailable)
		}
		delete(h.containers, id)
		return nil
	})
}

// Status looks at one container.
func (h *Host) Status(ctx context.Context, id runtime.ContainerID) (s runtime.Status, err error) {
	err = h.askOf(ctx, "Status", id, func(c *container) error {
		if c == nil {
			return runtime.ErrNotFound
		}
		s = c.status()
		return nil
	})
	return s, err
}

// List looks at all containers, sorted by identity and name.
func (h *Host) List(ctx context.Context) (out []runtime.Status, err error) {
	err = h.ask(ctx, Call{Op: "List"}, func() error {
		for _, c := range h.containers {
			out = append(out, c.status())
		}
		return nil
	})
	slices.SortFunc(out, func(a, b runtime.Status) int {
		return cmp.Or(a.ID.ID.Compare(b.ID.ID), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return out, err
}

// Wait blocks until the container has no running process.
func (h *Host) Wait(ctx context.Context, id runtime.ContainerID) (e runtime.Exit, err error) {
	var c *container
	var down chan struct{}
	err = h.askOf(ctx, "Wait", id, func(have *container) error {
		c, down = have, h.down
		switch {
		case c == nil:
			return runtime.ErrNotFound
		case c.state == runtime.Created:
			return runtime.ErrNotRunning
		}
		return nil
	})
	if err != nil {
		return e, err
	}
	select {
	case <-c.done:
		h.with(func() { e = c.exit })
		return e, nil
	case <-down:
		return e, fmt.Errorf("wait %s/%s: %w", id.ID, id.Name, runtime.ErrUnavailable)
	case <-ctx.Done():
		return e, ctx.Err()
	}
}

// Exec asks OnExec, for bounded commands of a container one after the other, and so for those of a member that are Alone.
func (h *Host) Exec(ctx context.Context, id runtime.ContainerID, e runtime.Exec) (int, error) {
	var exec func(context.Context, runtime.ContainerID, runtime.Exec) (int, error)
	err := h.askOf(ctx, "Exec", id, func(c *container) error {
		exec = h.script.exec
		switch {
		case c == nil || c.state != runtime.Running:
			return runtime.ErrNotRunning
		case (e.Bounded || e.Alone) && (e.Stdin != nil || e.Terminal != nil):
			return fmt.Errorf("bounded: %w", runtime.ErrBadSpec)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if e.Bounded || e.Alone {
		wait := func() (func(), error) { return h.turns.Wait(ctx, id) }
		if e.Alone {
			wait = func() (func(), error) { return h.alone.Wait(ctx, id.ID) }
		}
		done, err := wait()
		if err != nil {
			return 0, fmt.Errorf("exec in %s/%s: %w: %w", id.ID, id.Name, runtime.ErrUnavailable, err)
		}
		defer done()
	}
	if exec == nil {
		return 0, nil
	}
	return exec(ctx, id, e)
}

// Empty reports whether no container of the identity runs; it needs no daemon.
func (h *Host) Empty(ctx context.Context, id spec.Identity) (empty bool, err error) {
	err = h.do(ctx, Call{Op: "Empty", ID: id}, func() error {
		empty = h.empty(id)
		return nil
	})
	return empty, err
}

// KillAll kills all that can be killed; it needs no daemon.
func (h *Host) KillAll(ctx context.Context, id spec.Identity) error {
	return h.do(ctx, Call{Op: "KillAll", ID: id}, func() error {
		for _, c := range running(h, id) {
			h.kill(c)
		}
		killLeft(h, id)
		endPause(h, id)
		if !h.empty(id) {
			return errors.New("processes are left")
		}
		return nil
	})
}

// The functions below expect h.mu held.

func (h *Host) empty(id spec.Identity) bool {
	for cid, c := range h.containers {
		if cid.ID == id && c.left {
			return false
		}
	}
	return len(running(h, id)) == 0
}

// killLeft kills what containers that have ended left.
func killLeft(h *Host, id spec.Identity) {
	for cid, c := range h.containers {
		if cid.ID == id {
			c.left = c.left && c.behaviour.Unkillable
		}
	}
}

func running(h *Host, id spec.Identity) (out []*container) {
	for cid, c := range h.containers {
		if cid.ID == id && c.state == runtime.Running {
			out = append(out, c)
		}
	}
	return out
}

func (h *Host) kill(c *container) bool {
	if c.behaviour.Unkillable {
		return false
	}
	h.end(c, runtime.Exited, runtime.Exit{Code: 128 + sigKill})
	return true
}

func (h *Host) end(c *container, s runtime.State, e runtime.Exit) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	c.state, c.exit = s, e
	id := c.made.ID.ID
	c.left = c.behaviour.Leaves && h.sandboxes[id].SharedPIDs && !h.lost[id]
	close(c.done)
}

func (c *container) status() runtime.Status {
	s := runtime.Status{
		ID: c.made.ID, Token: c.made.Token, Attempt: c.made.Attempt, State: c.state,
		Started: c.started, Labels: maps.Clone(c.made.Labels), Image: c.made.Image,
		Refused: c.refused, StopSignal: c.behaviour.StopSignal,
	}
	s.Resources = &runtime.Resources{}
	*s.Resources = c.made.Resources
	if c.state == runtime.Exited {
		s.Exit, s.Left = c.exit, c.left
	}
	return s
}
