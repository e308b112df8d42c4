package worker

import (
	"context"
	"sync"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
)

// Background does what goes on beside the turns of a worker, until ctx ends. Its methods
// return at once; what they call is safe to be called from any goroutine.
type Background interface {
	// Watch calls ended once: when the container may have ended, or when ctx did.
	Watch(ctx context.Context, id runtime.ContainerID, ended func())
	// Probe calls report with each change of health.
	Probe(ctx context.Context, t probe.Target, report func(probe.Health))
}

// goroutines is Background with a goroutine for each container and task.
type goroutines struct {
	c     *Config
	group sync.WaitGroup
}

func (g *goroutines) Watch(ctx context.Context, id runtime.ContainerID, ended func()) {
	g.group.Go(func() {
		// What it says is only a hint: the worker looks for itself.
		_, _ = g.c.Runtime.Wait(ctx, id)
		ended()
	})
}

func (g *goroutines) Probe(ctx context.Context, t probe.Target, report func(probe.Health)) {
	g.group.Go(func() { g.c.Prober.Probe(ctx, t, report) })
}
