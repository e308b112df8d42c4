package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stead-project/stead/agent/deadline"
	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/reclaim"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/spec"
)

// Agent is one node's agent.
type Agent struct {
	c         Config
	log       *slog.Logger
	ledger    *ledger.Ledger
	book      files.Book
	gallery   *gallery
	outbox    *outbox
	reclaimer *reclaim.Reclaimer
	deadlines *deadline.Keeper // nil: this node guards no lives
	contact   contact
	// confirmed is the moment, on Clock, until which pictures and histories are.
	confirmed atomic.Int64
	seq       atomic.Int64
	newest    spec.Sequence // of accepted wanted lists; the session's alone
	memory    *memory

	mu      sync.Mutex
	workers map[spec.Identity]*worker.Worker
	shared  *worker.Config
	found   map[spec.Identity]worker.Found
	clean   bool // what found does not name was seen to be absent
	begin   func(*worker.Worker)
}

// New checks the configuration and starts nothing.
func New(c Config) (*Agent, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	return &Agent{
		c: c, log: c.Logger.With("node", string(c.Home.Name())),
		outbox:  newOutbox(c.Tuning.Soon, c.Tuning.Later),
		workers: map[spec.Identity]*worker.Worker{},
	}, nil
}

// Run takes up what stands on this host and serves until ctx ends; it returns nil
// on such a requested stop, with every member left running. It fails at once when
// the ledger cannot be opened. It may be called once.
func (a *Agent) Run(ctx context.Context) (err error) {
	if err := os.MkdirAll(a.c.RunDir, 0o755); err != nil {
		return fmt.Errorf("make the run directory: %w", err)
	}
	a.ledger, err = ledger.Open(a.c.Home.LedgerPath(), a.c.Boot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.ledger.Close()) }()
	// Reports grow over restarts of the agent: the count of starts stands above.
	a.seq.Store(a.ledger.Starts() << 32)
	a.newest = a.c.Home.Newest()
	a.memory = openMemory(a.c.Home.KnownPath(), a.log)
	a.gallery = newGallery(a.c.RunDir, a.log)
	a.takeBook()
	a.c.Pictures(a.gallery.all())
	if hosts := a.gallery.nodes(); hosts != nil {
		a.c.Hosts(hosts)
	}

	a.reclaimer = reclaim.New(reclaim.Config{
		Volumes: a.c.Volumes, Open: func(id spec.Identity) spec.Token { return a.ledger.Look(id).Open }, Empty: a.c.Runtime.Empty,
		RetryFirst: a.c.Tuning.Worker.RetryFirst, RetryMost: a.c.Tuning.Worker.RetryMost,
		Now: time.Now, Reported: a.outbox.ring, Logger: a.log,
	})
	if err := a.keepDeadlines(ctx); err != nil {
		return err
	}
	defer a.deadlines.Close()
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.share()
	a.begin = func(w *worker.Worker) { group.Go(func() { w.Run(ctx) }) }
	a.adopt(ctx)
	group.Go(func() { a.gallery.keep(ctx, a.c.Tuning.Keep) })
	group.Go(func() { a.memory.keep(ctx, keepKnown) })
	group.Go(func() { a.repair(ctx) })
	group.Go(func() { a.reclaimer.Run(ctx) })
	group.Go(func() { a.deadlines.Run(ctx) })
	a.sessions(ctx)
	return nil
}

// share makes what all workers have in common.
func (a *Agent) share() {
	a.shared = &worker.Config{
		Runtime: a.c.Runtime, Network: a.c.Network, Volumes: a.c.Volumes, Ledger: a.ledger,
		Starts: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0))),
		Prober: a.c.Prober, Find: a.book.Find, Picture: a.gallery.find, History: a.gallery.history,
		Confirmed: func() time.Duration { return time.Duration(a.confirmed.Load()) },
		Report:    a.outbox.put, Seq: func() int64 { return a.seq.Add(1) },
		Node: files.Node{Name: a.c.Home.Name(), HostIP: a.c.Facts.HostIP, Gateway: a.c.Gateway},
		Boot: a.c.Boot, Epoch: func() int64 { return a.memory.now().At.Epoch },
		RunDir: a.c.RunDir, Files: worker.OnHost(a.c.Home.Root(), a.c.RunDir), Clock: a.c.Clock, Now: time.Now, Tuning: a.c.Tuning.Worker, Logger: a.log,
	}
	if a.deadlines != nil {
		a.shared.Guard = a.deadlines
	}
}

// keepDeadlines takes up the node's guarded lives, before anything is done for any life.
func (a *Agent) keepDeadlines(ctx context.Context) (err error) {
	if a.c.Watchdog == nil {
		return nil
	}
	dir := watchdog.Below(a.c.RunDir)
	a.deadlines, err = deadline.New(deadline.Config{
		Records: dir, Ledger: a.ledger, Clock: a.c.Clock, Cgroup: a.c.Cgroup,
		StartWatchdog: func() error { return a.c.Watchdog(string(dir)) }, Missed: a.expired, Logger: a.log,
	})
	if err == nil {
		a.deadlines.AwaitWatchdog(ctx)
	}
	return err
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

// adoptTime bounds the first look at the host.
const adoptTime = 30 * time.Second

// adopt looks at the host once and begins a worker for each identity that has
// something here or in the ledger. If the host cannot be seen yet, the workers look
// for themselves; then nothing counts as clean.
func (a *Agent) adopt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	found, err := a.lookAround(ctx)
	if err != nil {
		a.log.Warn("host not seen", "err", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found, a.clean = found, err == nil
	for id := range found {
		a.worker(id)
	}
	for _, e := range a.ledger.Entries() {
		if !e.Open.IsZero() || len(e.Ends) > 0 {
			a.worker(e.ID)
		}
	}
}

// lookAround lists every identity that has anything on this host.
func (a *Agent) lookAround(ctx context.Context) (map[spec.Identity]worker.Found, error) {
	found := map[spec.Identity]worker.Found{}
	containers, err := a.c.Runtime.List(ctx)
	for _, st := range containers {
		f := found[st.ID.ID]
		f.Containers = append(f.Containers, st.ID.Name)
		found[st.ID.ID] = f
	}
	boxes, err2 := a.c.Runtime.Sandboxes(ctx)
	for _, b := range boxes {
		notice(found, b.ID)
	}
	links, err3 := a.c.Network.Attached(ctx)
	for _, id := range links {
		notice(found, id)
	}
	return found, errors.Join(err, err2, err3)
}

// notice makes an identity found, with nothing of it known but that.
func notice(found map[spec.Identity]worker.Found, id spec.Identity) {
	if _, known := found[id]; !known {
		found[id] = worker.Found{}
	}
}

// worker returns the worker of an identity, begun if need be; the caller holds
// the lock.
func (a *Agent) worker(id spec.Identity) *worker.Worker {
	if w, ok := a.workers[id]; ok {
		return w
	}
	f, ok := a.found[id]
	f.Clean = a.clean && !ok
	w := worker.New(a.shared, id, f)
	a.workers[id] = w
	a.begin(w)
	return w
}

// each calls f with every worker.
func (a *Agent) each(f func(spec.Identity, *worker.Worker)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, w := range a.workers {
		f(id, w)
	}
}
