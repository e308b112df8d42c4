package worker

import (
	"context"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
)

// followSelf takes in what a container that runs says of the member, until ctx ends.
func (w *observer) followSelf(ctx context.Context, name string) {
	if w.c.Self == nil {
		return
	}
	w.c.Self(ctx, runtime.ContainerID{ID: w.id, Name: name}, func(c records.Claim) {
		w.note(func(e *pendingEvents) {
			if ctx.Err() != nil { // of an attempt that is over
				return
			}
			if e.claims == nil {
				e.claims = map[string]records.Claim{}
			}
			e.claims[name] = c
		})
	})
}

// claim is what the containers that run say of the member, by their files and by leader probes.
func (w *subject) claim() (c records.Claim) {
	for of := range w.all() {
		if ctr := w.container(of.Name); ctr.seen == step.Running {
			c = c.And(ctr.Claim).And(ctr.Led)
		}
	}
	return c
}
