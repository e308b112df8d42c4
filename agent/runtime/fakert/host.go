// Package fakert is a machine in memory: a runtime.Runtime, runtime.Network and
// runtime.Volumes that do at once what they are told and can be scripted to fail.
// One Host outlives any number of agents, as a real machine does; give the same
// value to the next agent to restart it.
//
// Nothing here starts a goroutine or a timer, so it runs in a synctest bubble and
// under a simulator's clock (SetNow) alike.
package fakert

import (
	"context"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/runtime"
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
	down       chan struct{} // closed while the daemon is away
	isDown     bool
	images     map[string]runtime.Image
	containers map[runtime.ContainerID]*container
	starts     map[spec.Identity][]Start
	turns      map[runtime.ContainerID]chan struct{} // full while a bounded command runs
	script     script
}

// machine is what all of a Host shares.
type machine struct {
	mu   sync.Mutex
	now  func() time.Time
	call func(context.Context, Call) error // nil: none
}

// New makes an empty host whose daemon is up, where every image can be pulled and
// every container runs until it is told to end.
func New() *Host {
	m := &machine{now: time.Now}
	return &Host{
		machine: m,
		network: &network{
			machine:   m,
			sandboxes: map[spec.Identity]runtime.Sandbox{},
			links:     map[spec.Identity]link{},
		},
		storage: &storage{
			machine: m,
			volumes: map[string]records.VolumeID{},
			made:    map[records.VolumeID]bool{},
			trash:   map[records.VolumeID]trashed{},
			scratch: map[scratchKey]spec.Token{},
		},
		down:       make(chan struct{}),
		images:     map[string]runtime.Image{},
		containers: map[runtime.ContainerID]*container{},
		starts:     map[spec.Identity][]Start{},
		turns:      map[runtime.ContainerID]chan struct{}{},
	}
}

// Ping fails while the daemon is down.
func (h *Host) Ping(ctx context.Context) error {
	return h.enter(ctx, Call{Op: "Ping"})
}

// Close does nothing: the host lives on for the next agent.
func (h *Host) Close() error { return nil }

// enter lets the script speak, then refuses while the daemon is away.
func (h *Host) enter(ctx context.Context, c Call) error {
	if err := h.intercept(ctx, c); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isDown {
		return runtime.ErrUnavailable
	}
	return nil
}

// intercept lets the script speak; for calls that need no daemon.
func (m *machine) intercept(ctx context.Context, c Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	hook := m.call
	m.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(ctx, c)
}
