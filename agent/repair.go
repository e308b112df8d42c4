package agent

import (
	"context"
	"time"

	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/spec"
)

// repair looks after the network until ctx ends: from time to time, and soon after
// something of it went.
func (a *Agent) repair(ctx context.Context) {
	var last trouble.Last
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(a.c.Tuning.Repair):
		case <-a.c.Changed:
			select { // one look for all that goes together
			case <-ctx.Done():
				return
			case <-time.After(a.c.Tuning.Settle):
			}
		}
		a.repairOnce(ctx, &last)
	}
}

// repairOnce looks after the host's part, which links need, and then the members'.
// Trouble is logged once.
func (a *Agent) repairOnce(ctx context.Context, last *trouble.Last) {
	if a.c.Repair != nil {
		sub, cancel := context.WithTimeout(ctx, a.c.Tuning.Repair)
		err := a.c.Repair(sub)
		cancel()
		if ctx.Err() == nil && last.IsErr(err) {
			a.log.Warn("repair of the host's network failed", "err", err)
		}
	}
	a.workers.each(func(_ spec.Identity, w *worker.Worker) { w.Repair() })
}
