package agent

import (
	"context"
	"time"

	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/spec"
)

// repair looks after the network until ctx ends: from time to time, and soon after
// something of it went.
func (a *Agent) repair(ctx context.Context) {
	told := ""
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
		told = a.repairOnce(ctx, told)
	}
}

// repairOnce looks after the host's part, which links need, and then the members'.
// It returns the trouble there is, so that it is told once.
func (a *Agent) repairOnce(ctx context.Context, told string) string {
	trouble := ""
	if a.c.Repair != nil {
		sub, cancel := context.WithTimeout(ctx, a.c.Tuning.Repair)
		err := a.c.Repair(sub)
		cancel()
		if err != nil && ctx.Err() == nil {
			trouble = err.Error()
		}
		if trouble != "" && trouble != told {
			a.log.Warn("host's network not repaired", "err", err)
		}
	}
	a.workers.each(func(_ spec.Identity, w *worker.Worker) { w.Repair() })
	return trouble
}
