package host

import (
	"context"
	"log/slog"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/internal/trouble"
)

// keeper keeps this host at the newest of what it is offered.
type keeper[T any] struct {
	set    func(T) error
	same   func(a, b *T) bool
	failed string // what is logged when set fails
	log    *slog.Logger
	fresh  chan T         // the newest that is not done yet; it holds one
	again  *notify.Signal // what was set may be missing

	last *T // offer's alone; nil: nothing came yet
}

func newKeeper[T any](set func(T) error, same func(a, b *T) bool, failed string, log *slog.Logger) keeper[T] {
	return keeper[T]{set: set, same: same, failed: failed, log: log, fresh: make(chan T, 1), again: notify.New()}
}

// offer takes the newest; it does not block. One goroutine at a time may call it.
func (k *keeper[T]) offer(now T) {
	if k.last == nil || !k.same(k.last, &now) {
		k.last = &now
		replace(k.fresh, now)
	}
}

// repair has what was set last set again; it does not block.
func (k *keeper[T]) repair() { k.again.Notify() }

// run keeps the host at the newest until ctx ends. What fails is tried again by repair.
func (k *keeper[T]) run(ctx context.Context) error {
	var last trouble.Last
	var now *T
	for {
		select {
		case <-ctx.Done():
			return nil
		case newest := <-k.fresh:
			now = &newest
		case <-k.again.C():
		}
		if now == nil {
			continue
		}
		if err := k.set(*now); ctx.Err() == nil && last.IsErr(err) {
			k.log.Warn(k.failed, "err", err)
		}
	}
}
