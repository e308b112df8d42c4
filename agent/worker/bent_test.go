package worker

import (
	"context"
	"strings"
	"sync"
	"testing/synctest"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/spec"
)

// bent is a host some of whose answers are others than the truth; what is nil is true.
type bent struct {
	*fakert.Host
	status  func(runtime.Status) runtime.Status
	empty   func(bool, error) (bool, error)
	clean   func(bool, error) (bool, error)
	killAll func(error) error
	remove  func() error // in place of a removal
}

// bend puts b between the workers and the host.
func (n *node) bend(b *bent) {
	b.Host = n.host
	n.change = func(c *Config) { c.Runtime, c.Volumes = b, b }
}

func (b *bent) Status(ctx context.Context, id runtime.ContainerID) (runtime.Status, error) {
	st, err := b.Host.Status(ctx, id)
	if err == nil && b.status != nil {
		st = b.status(st)
	}
	return st, err
}

func (b *bent) Empty(ctx context.Context, id spec.Identity) (bool, error) {
	empty, err := b.Host.Empty(ctx, id)
	if b.empty != nil {
		return b.empty(empty, err)
	}
	return empty, err
}

func (b *bent) Clean(ctx context.Context, id spec.Identity) (bool, error) {
	clean, err := b.Host.Clean(ctx, id)
	if b.clean != nil {
		return b.clean(clean, err)
	}
	return clean, err
}

func (b *bent) KillAll(ctx context.Context, id spec.Identity) error {
	err := b.Host.KillAll(ctx, id)
	if b.killAll != nil {
		return b.killAll(err)
	}
	return err
}

func (b *bent) Remove(ctx context.Context, id runtime.ContainerID) error {
	if b.remove != nil {
		return b.remove()
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
		if len(ops) == 0 || strings.Contains(" "+strings.Join(ops, " ")+" ", " "+op+" ") {
			sum += times
		}
	}
	return sum
}
