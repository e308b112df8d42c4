package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// workers are a node's, one an identity that has or had something here. Safe for concurrent
// use.
type workers struct {
	log  *slog.Logger
	sets *files.SetFiles
	self selfFunc // nil: members say nothing
	// sourcesChanged hears of changes of ConfigMaps and Secrets beside the workers.
	sourcesChanged func()

	mu     sync.Mutex
	all    map[spec.Identity]*worker.Worker
	shared *worker.Config // nil: there are none yet
	found  map[spec.Identity]worker.Found
	clean  bool                 // what found does not name was seen to be absent
	start  func(*worker.Worker) // runs one until the agent ends
}

var _ session.Workers = (*workers)(nil)

// Tell implements session.Workers.
func (w *workers) Tell(l records.Life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(l.Member.ID).Tell(l)
}

// Over implements session.Workers.
func (w *workers) Over(id spec.Identity, token spec.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(id).Over(token)
}

// FilesChanged implements session.Workers.
func (w *workers) FilesChanged(of func(spec.SetRef) bool) { w.sets.Changed(of) }

// SourcesChanged implements session.Workers.
func (w *workers) SourcesChanged(of func(files.FileSource) bool) {
	w.sourcesChanged()
	w.each(func(_ spec.Identity, one *worker.Worker) { one.SourcesChanged(of) })
}

// Confirmed implements session.Workers.
func (w *workers) Confirmed() {
	w.sets.ConfirmedMoved()
	w.each(func(_ spec.Identity, one *worker.Worker) { one.Confirmed() })
}

// Last implements session.Workers.
func (w *workers) Last() (reports []records.Report) {
	w.each(func(_ spec.Identity, one *worker.Worker) {
		if r, ok := one.Last(); ok && !r.Phase.Over() {
			reports = append(reports, r)
		}
	})
	return reports
}

// Pending implements session.Workers.
func (w *workers) Pending() (lives []spec.LifeID) {
	w.each(func(id spec.Identity, one *worker.Worker) {
		if token, ok := one.Pending(); ok {
			lives = append(lives, spec.LifeID{ID: id, Token: token})
		}
	})
	return lives
}

// expired has a life cleared away that missed its deadline. Before there are workers, the
// first look at the host starts one for what the ledger closed.
func (w *workers) expired(id spec.Identity) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shared != nil {
		w.of(id).Expired()
	}
}

// each calls f with every worker.
func (w *workers) each(f func(spec.Identity, *worker.Worker)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, one := range w.all {
		f(id, one)
	}
}

// of returns the worker of an identity, started if need be; the caller holds the lock.
func (w *workers) of(id spec.Identity) *worker.Worker {
	if known, ok := w.all[id]; ok {
		return known
	}
	f, ok := w.found[id]
	f.Clean = w.clean && !ok
	fresh := worker.New(w.shared, id, f)
	w.all[id] = fresh
	w.start(fresh)
	return fresh
}

// adoptTime bounds the first look at the host.
const adoptTime = 30 * time.Second

// adopt looks at the host once and starts a worker for each identity that has
// something here or in the ledger. If the host cannot be seen yet, the workers look
// for themselves; then nothing counts as clean.
func (w *workers) adopt(ctx context.Context, shared *worker.Config, start func(*worker.Worker), ended []ledger.Entry) {
	ctx, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	w.mu.Lock()
	w.shared, w.start = shared, start
	w.mu.Unlock()
	found, err := lookAround(ctx, shared)
	if err != nil {
		w.log.Warn("host's containers and links not listed", "err", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found, w.clean = found, err == nil
	for id := range found {
		w.of(id)
	}
	for _, e := range ended {
		if !e.Open.IsZero() || len(e.Ends) > 0 {
			w.of(e.ID)
		}
	}
}

// lookAround lists every identity that has anything on this host.
func lookAround(ctx context.Context, c *worker.Config) (map[spec.Identity]worker.Found, error) {
	found := map[spec.Identity]worker.Found{}
	here := func(id spec.Identity, containers ...string) {
		found[id] = worker.Found{Containers: append(found[id].Containers, containers...)}
	}
	containers, err := c.Runtime.List(ctx)
	for _, st := range containers {
		here(st.ID.ID, st.ID.Name)
	}
	sandboxes, err2 := c.Runtime.Sandboxes(ctx)
	for _, b := range sandboxes {
		here(b.ID)
	}
	links, err3 := c.Network.Attached(ctx)
	for _, id := range links {
		here(id)
	}
	return found, errors.Join(err, err2, err3)
}
