// Package turns lets one caller at a time work on one thing.
package turns

import (
	"context"
	"sync"
)

// Of are the turns of things by their keys. The zero value is ready, and safe for concurrent
// use. It remembers each key that was ever used.
type Of[K comparable] struct{ held sync.Map }

// Wait waits for the turn of a key, or for the end of ctx, whose error it returns then. The
// caller calls done when it has finished.
func (o *Of[K]) Wait(ctx context.Context, key K) (done func(), err error) {
	turn, _ := o.held.LoadOrStore(key, make(chan struct{}, 1))
	held := turn.(chan struct{})
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
