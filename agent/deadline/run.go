package deadline

import (
	"context"
	"time"

	"github.com/stead-project/stead/internal/backoff"
)

// tickTime is how often the watchdog and the deadlines are checked at least.
const tickTime = time.Second

// Run ends lives at their deadlines, and keeps a watchdog alive, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	if k == nil {
		return
	}
	for backoff.Sleep(ctx, k.Tick()) {
	}
}

// Tick is one turn of Run: it starts a watchdog if none runs, ends the lives whose deadline
// has passed, and returns how long until the next deadline, at most a second.
func (k *Keeper) Tick() time.Duration {
	k.keepWatchdog()
	k.warn(k.EndMissed())
	k.mu.Lock()
	defer k.mu.Unlock()
	wait, now := tickTime, k.c.Clock()
	for _, r := range k.lives {
		if left := k.confirmed + r.Bound - now; !r.Ended && left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

func (k *Keeper) keepWatchdog() {
	if k.c.Records.Alive() {
		return
	}
	err := k.c.StartWatchdog()
	if err == nil {
		k.log.Info("watchdog started")
	}
	k.warn(err)
}

// Watched reports whether a watchdog runs.
func (k *Keeper) Watched() bool { return k != nil && k.c.Records.Alive() }

// warn logs trouble once, not each time.
func (k *Keeper) warn(err error) {
	if err == nil {
		return // of something else than what was logged last
	}
	k.mu.Lock()
	news := k.logged.IsErr(err)
	k.mu.Unlock()
	if news {
		k.log.Error("keeping deadlines failed", "err", err)
	}
}

// watchdogTime is how long a first watchdog may take to start.
const watchdogTime = 5 * time.Second

// AwaitWatchdog starts the watchdog and waits for it, at most watchdogTime: without one the node
// says that it guards no lives. One that an agent of another release left is replaced; if that cannot be, it goes on.
func (k *Keeper) AwaitWatchdog(ctx context.Context) {
	k.keepWatchdog()
	replaces := k.c.Foreign()
	if replaces {
		k.warn(k.c.StartWatchdog())
	}
	ctx, cancel := context.WithTimeout(ctx, watchdogTime)
	defer cancel()
	for (!k.Watched() || k.c.Foreign()) && backoff.Sleep(ctx, watchdogTime/200) {
	}
	switch {
	case !replaces:
	case k.c.Foreign():
		k.log.Warn("watchdog of another release left as it is; watchdog.log beside its records says why")
	default:
		k.log.Info("watchdog of another release replaced")
	}
}

// Close lets the watchdog go when there is nothing that it guards.
func (k *Keeper) Close() {
	if k == nil {
		return
	}
	k.mu.Lock()
	none := len(k.lives) == 0
	k.mu.Unlock()
	if none {
		k.c.Records.Dismiss()
	}
}
