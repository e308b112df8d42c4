package server

import (
	"context"
	"errors"
	"sync"
)

// group runs the parts of a server. The first that ends, ends all; they are
// stopped one by one, in the order in which their owner calls what start returned.
type group struct {
	ctx    context.Context // ends when the server shall stop
	cancel context.CancelCauseFunc
}

// errPartEnded is the cause when a part ended without an error of its own.
var errPartEnded = errors.New("a part of the server ended")

func newGroup(ctx context.Context) *group {
	g := &group{}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// start runs a part in a context of its own, which outlives the group's until the
// returned function stops the part and waits for it.
func (g *group) start(part func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		err := part(ctx)
		if err == nil {
			err = errPartEnded
		}
		g.cancel(err)
	})
	return func() {
		g.cancel(nil)
		cancel()
		wg.Wait()
	}
}

// cause is why the group ended, or otherwise.
func (g *group) cause(otherwise error) error {
	if cause := context.Cause(g.ctx); cause != nil {
		return cause
	}
	return otherwise
}
