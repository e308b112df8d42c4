package agent

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/spec"
)

// beginGuard takes up the node's guarded lives, before anything is done for any life.
func (a *Agent) beginGuard(ctx context.Context) error {
	if a.c.Watchdog == nil {
		return nil
	}
	g := &guard{
		dir: guardDir(a.c.RunDir), ledger: a.ledger, clock: a.c.Clock, cgroup: a.c.Cgroup, start: a.c.Watchdog, log: a.log,
		over: a.expired,
	}
	if err := newGuard(g); err != nil {
		return err
	}
	a.guard = g
	g.begin(ctx)
	return nil
}

// expired has a life cleared away that missed its deadline. Before there are workers, the
// first look at the host begins one for what the ledger closed.
func (a *Agent) expired(id spec.Identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shared != nil {
		a.worker(id).Expired()
	}
}

// tickTime is how often the watchdog and the deadlines are looked after at least.
const tickTime = time.Second

// run ends lives at their deadlines, and keeps a watchdog alive, until ctx ends.
func (g *guard) run(ctx context.Context) {
	for {
		g.keepWatchdog()
		g.warn(g.Missed())
		select {
		case <-ctx.Done():
			return
		case <-time.After(g.next()):
		}
	}
}

// next is how long until the next deadline, at most a tick.
func (g *guard) next() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait, now := tickTime, g.clock()
	for _, r := range g.lives {
		if left := g.confirmed + r.Bound - now; !r.Ended && left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

func (g *guard) keepWatchdog() {
	if g.dir.Alive() {
		return
	}
	err := g.start(string(g.dir))
	if err == nil {
		g.log.Info("watchdog started")
	}
	g.warn(err)
}

// warn tells of trouble once, not each time.
func (g *guard) warn(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	g.mu.Lock()
	news := text != "" && text != g.trouble
	if news {
		g.trouble = text
	}
	g.mu.Unlock()
	if news {
		g.log.Error("guarded lives not kept", "err", err)
	}
}

// watchdogTime is how long a first watchdog may take to begin.
const watchdogTime = 5 * time.Second

// begin starts the watchdog and waits for it, not for ever: without one the node says
// that it guards no lives.
func (g *guard) begin(ctx context.Context) {
	g.keepWatchdog()
	for waited := time.Duration(0); !g.dir.Alive() && waited < watchdogTime && ctx.Err() == nil; waited += watchdogTime / 200 {
		time.Sleep(watchdogTime / 200)
	}
}

// end lets the watchdog go when there is nothing that it guards. g may be nil.
func (g *guard) end() {
	if g == nil {
		return
	}
	g.mu.Lock()
	none := len(g.lives) == 0
	g.mu.Unlock()
	if none {
		g.dir.Dismiss()
	}
}

// guardDir is where a node's guarded lives are recorded, below its run directory.
func guardDir(runDir string) watchdog.Dir { return watchdog.Dir(filepath.Join(runDir, "guard")) }

// Watched tells how many guarded lives are recorded below a run directory, and whether a
// watchdog runs there.
func Watched(runDir string) (lives int, alive bool, err error) {
	dir := guardDir(runDir)
	found, err := dir.Records()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	return len(found), dir.Alive(), err
}
