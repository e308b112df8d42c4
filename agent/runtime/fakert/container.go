package fakert

import (
	"cmp"
	"context"
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
	done      chan struct{} // closed when it is no longer running
}

// Create makes a container. Its image and the sandbox of its token must be there.
func (h *Host) Create(ctx context.Context, c runtime.Container) error {
	if err := h.enter(ctx, Call{"Create", c.ID.ID, c.ID.Name}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.containers[c.ID] != nil {
		return fmt.Errorf("create %s/%s: %w", c.ID.ID, c.ID.Name, runtime.ErrExists)
	}
	if s, ok := h.sandboxes[c.ID.ID]; !ok || s.Token != c.Token {
		return fmt.Errorf("create %s/%s: sandbox of token %s: %w", c.ID.ID, c.ID.Name, c.Token, runtime.ErrNotFound)
	}
	if _, ok := h.images[c.Image]; !ok {
		return fmt.Errorf("create %s/%s: image %q: %w", c.ID.ID, c.ID.Name, c.Image, runtime.ErrImageMissing)
	}
	c.Labels = maps.Clone(c.Labels)
	h.containers[c.ID] = &container{made: c, state: runtime.Created, done: make(chan struct{})}
	return nil
}

// Start starts a created container as OnStart says.
func (h *Host) Start(ctx context.Context, id runtime.ContainerID) error {
	if err := h.enter(ctx, Call{"Start", id.ID, id.Name}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.containers[id]
	switch {
	case c == nil:
		return fmt.Errorf("start %s/%s: %w", id.ID, id.Name, runtime.ErrNotFound)
	case c.state == runtime.Running:
		return nil
	case c.state != runtime.Created:
		return fmt.Errorf("start %s/%s: it has run already: %w", id.ID, id.Name, runtime.ErrExists)
	}
	if h.script.behaviour != nil {
		c.behaviour = h.script.behaviour(c.made)
	}
	if err := c.behaviour.StartErr; err != nil {
		return fmt.Errorf("start %s/%s: %w", id.ID, id.Name, err)
	}
	c.state, c.started = runtime.Running, h.now()
	h.starts[id.ID] = append(h.starts[id.ID], Start{id.Name, c.made.Token, c.made.Attempt, c.started})
	if c.behaviour.Exits {
		h.end(c, runtime.Exited, runtime.Exit{Code: c.behaviour.Code})
	}
	return nil
}

// Signal sends a signal; what it does is the container's Behaviour.
func (h *Host) Signal(ctx context.Context, id runtime.ContainerID, sig int, _ bool) error {
	if err := h.enter(ctx, Call{"Signal", id.ID, id.Name}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.containers[id]
	switch {
	case c == nil:
		return fmt.Errorf("signal %s/%s: %w", id.ID, id.Name, runtime.ErrNotFound)
	case c.state != runtime.Running:
		return fmt.Errorf("signal %s/%s: %w", id.ID, id.Name, runtime.ErrNotRunning)
	case sig == sigKill:
		h.kill(c)
	case sig == sigTerm && !c.behaviour.IgnoreTerm:
		h.end(c, runtime.Exited, runtime.Exit{Code: c.behaviour.TermCode})
	}
	return nil
}

// Remove deletes a container and kills what is left of it. An unkillable process
// keeps its container: ErrUnavailable.
func (h *Host) Remove(ctx context.Context, id runtime.ContainerID) error {
	if err := h.enter(ctx, Call{"Remove", id.ID, id.Name}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.containers[id]
	if c == nil {
		return nil
	}
	if c.state == runtime.Running && !h.kill(c) {
		return fmt.Errorf("remove %s/%s: its process does not end: %w", id.ID, id.Name, runtime.ErrUnavailable)
	}
	delete(h.containers, id)
	return nil
}

// Status looks at one container.
func (h *Host) Status(ctx context.Context, id runtime.ContainerID) (runtime.Status, error) {
	if err := h.enter(ctx, Call{"Status", id.ID, id.Name}); err != nil {
		return runtime.Status{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.containers[id]
	if c == nil {
		return runtime.Status{}, fmt.Errorf("status %s/%s: %w", id.ID, id.Name, runtime.ErrNotFound)
	}
	return c.status(), nil
}

// List looks at all containers, sorted by identity and name.
func (h *Host) List(ctx context.Context) ([]runtime.Status, error) {
	if err := h.enter(ctx, Call{Op: "List"}); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]runtime.Status, 0, len(h.containers))
	for _, c := range h.containers {
		out = append(out, c.status())
	}
	slices.SortFunc(out, func(a, b runtime.Status) int {
		return cmp.Or(a.ID.ID.Compare(b.ID.ID), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return out, nil
}

// Wait blocks until the container has no running process.
func (h *Host) Wait(ctx context.Context, id runtime.ContainerID) (runtime.Exit, error) {
	if err := h.enter(ctx, Call{"Wait", id.ID, id.Name}); err != nil {
		return runtime.Exit{}, err
	}
	h.mu.Lock()
	c, down := h.containers[id], h.down
	var created bool
	if c != nil {
		created = c.state == runtime.Created
	}
	h.mu.Unlock()
	if c == nil {
		return runtime.Exit{}, fmt.Errorf("wait %s/%s: %w", id.ID, id.Name, runtime.ErrNotFound)
	}
	if created {
		return runtime.Exit{}, fmt.Errorf("wait %s/%s: %w", id.ID, id.Name, runtime.ErrNotRunning)
	}
	select {
	case <-c.done:
		h.mu.Lock()
		defer h.mu.Unlock()
		return c.exit, nil
	case <-down:
		return runtime.Exit{}, fmt.Errorf("wait %s/%s: %w", id.ID, id.Name, runtime.ErrUnavailable)
	case <-ctx.Done():
		return runtime.Exit{}, ctx.Err()
	}
}

// Exec asks OnExec, for bounded commands of a container one after the other.
func (h *Host) Exec(ctx context.Context, id runtime.ContainerID, e runtime.Exec) (int, error) {
	if err := h.enter(ctx, Call{"Exec", id.ID, id.Name}); err != nil {
		return 0, err
	}
	h.mu.Lock()
	c, exec := h.containers[id], h.script.exec
	running := c != nil && c.state == runtime.Running
	h.mu.Unlock()
	if !running {
		return 0, fmt.Errorf("exec in %s/%s: %w", id.ID, id.Name, runtime.ErrNotRunning)
	}
	if e.Bounded {
		if e.Stdin != nil || e.Terminal != nil {
			return 0, fmt.Errorf("exec in %s/%s: bounded: %w", id.ID, id.Name, runtime.ErrBadSpec)
		}
		done, err := h.turn(ctx, id)
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

// turn waits until no bounded command runs in the container.
func (h *Host) turn(ctx context.Context, id runtime.ContainerID) (done func(), err error) {
	h.mu.Lock()
	turn := h.turns[id]
	if turn == nil {
		turn = make(chan struct{}, 1)
		h.turns[id] = turn
	}
	h.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Empty reports whether no container of the identity runs; it needs no daemon.
func (h *Host) Empty(ctx context.Context, id spec.Identity) (bool, error) {
	if err := h.intercept(ctx, Call{Op: "Empty", ID: id}); err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.empty(id), nil
}

// KillAll kills all that can be killed; it needs no daemon.
func (h *Host) KillAll(ctx context.Context, id spec.Identity) error {
	if err := h.intercept(ctx, Call{Op: "KillAll", ID: id}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for cid, c := range h.containers {
		if cid.ID == id && c.state == runtime.Running {
			h.kill(c)
		}
	}
	if !h.empty(id) {
		return fmt.Errorf("kill all of %s: processes are left", id)
	}
	return nil
}

// The functions below expect h.mu held.

func (h *Host) empty(id spec.Identity) bool {
	for cid, c := range h.containers {
		if cid.ID == id && c.state == runtime.Running {
			return false
		}
	}
	return true
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
		e.At = h.now()
	}
	c.state, c.exit = s, e
	close(c.done)
}

func (c *container) status() runtime.Status {
	s := runtime.Status{
		ID: c.made.ID, Token: c.made.Token, Attempt: c.made.Attempt, State: c.state,
		Started: c.started, Labels: maps.Clone(c.made.Labels), Image: c.made.Image,
		Refused: c.refused,
	}
	if c.state == runtime.Exited {
		s.Exit = c.exit
	}
	return s
}
