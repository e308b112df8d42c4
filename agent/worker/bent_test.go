package worker

import (
	"context"
	"slices"
	"sync"
	"testing/synctest"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/spec"
)

// bent is a host that gives other answers than its own.
type bent struct {
	*fakert.Host
	mu  sync.Mutex
	now answers
}

// answers take the place of those of the host; what is nil is the host's own.
type answers struct {
	status  func(runtime.Status) runtime.Status
	empty   func() (bool, error)
	clean   func() (bool, error)
	killAll func() error
	remove  func() error // in place of a removal
}

// bend puts a bent host between the next worker and the node's.
func (n *node) bend(a answers) *bent {
	b := &bent{Host: n.host, now: a}
	n.change = func(c *Config) { c.Runtime, c.Volumes = b, b }
	return b
}

func (b *bent) say(a answers) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = a
}

func (b *bent) answers() answers {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bent) Status(ctx context.Context, id runtime.ContainerID) (runtime.Status, error) {
	st, err := b.Host.Status(ctx, id)
	if a := b.answers(); err == nil && a.status != nil {
		st = a.status(st)
	}
	return st, err
}

func (b *bent) Empty(ctx context.Context, id spec.Identity) (bool, error) {
	if a := b.answers(); a.empty != nil {
		return a.empty()
	}
	return b.Host.Empty(ctx, id)
}

func (b *bent) Clean(ctx context.Context, id spec.Identity) (bool, error) {
	if a := b.answers(); a.clean != nil {
		return a.clean()
	}
	return b.Host.Clean(ctx, id)
}

func (b *bent) KillAll(ctx context.Context, id spec.Identity) error {
	err := b.Host.KillAll(ctx, id)
	if a := b.answers(); a.killAll != nil {
		return a.killAll()
	}
	return err
}

func (b *bent) Remove(ctx context.Context, id runtime.ContainerID) error {
	if a := b.answers(); a.remove != nil {
		return a.remove()
	}
	return b.Host.Remove(ctx, id)
}

// counter counts the calls of a host.
type counter struct {
	mu    sync.Mutex
	calls map[string]int
}

// count counts calls from now on; f, if any, answers them.
func (n *node) count(f func(fakert.Call) error) *counter {
	synctest.Wait()
	c := &counter{calls: map[string]int{}}
	n.host.OnCall(func(_ context.Context, call fakert.Call) error {
		c.mu.Lock()
		c.calls[call.Op]++
		c.mu.Unlock()
		if f == nil {
			return nil
		}
		return f(call)
	})
	return c
}

// of is how often these operations were called; of none: how often any was.
func (c *counter) of(ops ...string) (sum int) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for op, times := range c.calls {
		if len(ops) == 0 || slices.Contains(ops, op) {
			sum += times
		}
	}
	return sum
}
