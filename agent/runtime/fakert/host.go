// Package fakert is a machine in memory: a runtime.Runtime, runtime.Network and
// runtime.Volumes that do at once what they are asked, and can be scripted to fail.
// One Host outlives any number of agents, as a real machine does; give the same
// value to the next agent to restart it.
//
// Nothing here starts a goroutine or a timer, so it runs in a synctest bubble.
package fakert

import (
	"context"
	"fmt"
	"sync"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/turns"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var (
	_ runtime.Runtime = (*Host)(nil)
	_ runtime.Network = (*Host)(nil)
	_ runtime.Volumes = (*Host)(nil)
)

// Host is one machine: daemon, images, sandboxes, containers, links and volumes.
// Safe for concurrent use.
type Host struct {
	*machine
	*network
	*storage
	*meter
	down       chan struct{} // closed while the daemon is away
	isDown     bool
	images     map[string]runtime.Image
	containers map[runtime.ContainerID]*container
	starts     map[spec.Identity][]Start
	turns      turns.Of[runtime.ContainerID] // of bounded commands
	alone      turns.Of[spec.Identity]       // of those that are Alone
	script     script
}

// machine is what all of a Host shares.
type machine struct {
	mu   sync.Mutex
	call func(context.Context, Call) error // nil: none
}

// New makes an empty host whose daemon is up, where every image can be pulled and
// every container runs until it is asked to end.
func New() *Host {
	m := &machine{}
	containers := map[runtime.ContainerID]*container{}
	return &Host{
		machine: m,
		network: &network{
			machine:   m,
			sandboxes: map[spec.Identity]runtime.Sandbox{},
			lost:      map[spec.Identity]bool{},
			links:     map[spec.Identity]link{},
		},
		storage: &storage{
			machine: m,
			volumes: map[string]records.VolumeID{},
			made:    map[records.VolumeID]bool{},
			users:   map[records.VolumeID]map[spec.Identity]spec.Token{},
			trash:   map[records.VolumeID]trashed{},
			scratch: map[scratchKey]spec.Token{},
		},
		down:       make(chan struct{}),
		images:     map[string]runtime.Image{},
		containers: containers,
		meter:      &meter{machine: m, containers: containers, used: map[runtime.ContainerID]runtime.Used{}},
		starts:     map[spec.Identity][]Start{},
	}
}

// Ping fails while the daemon is down.
func (h *Host) Ping(ctx context.Context) error {
	return h.ask(ctx, Call{Op: "Ping"}, func() error { return nil })
}

// Close does nothing: the host lives on for the next agent.
func (h *Host) Close() error { return nil }

// ask is do for calls that need the daemon.
func (h *Host) ask(ctx context.Context, c Call, f func() error) error {
	return h.do(ctx, c, func() error {
		if h.isDown {
			return runtime.ErrUnavailable
		}
		return f()
	})
}

// askOf is ask for calls that concern a container: nil, if there is none.
func (h *Host) askOf(ctx context.Context, op string, id runtime.ContainerID, f func(*container) error) error {
	return h.ask(ctx, Call{op, id.ID, id.Name}, func() error { return f(h.containers[id]) })
}

// do lets the script speak, and then does f under the lock.
func (m *machine) do(ctx context.Context, c Call, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	hook := m.call
	m.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, c); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := f(); err != nil {
		return fmt.Errorf("%s %s %s: %w", c.Op, c.ID, c.Name, err)
	}
	return nil
}

func (m *machine) with(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}
