package engine

import (
	"context"
	"sync"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// callTimeout bounds the calls to the store of one evaluation.
const callTimeout = 10 * time.Second

// leader is one term: everything it remembers ends with it, so that a new leader
// starts every wait again (SAFETY S18). One goroutine owns it.
type leader struct {
	*Engine
	term      store.Leadership
	sub       *cache.Subscription // of all changes
	queue     []spec.SetRef
	queued    map[spec.SetRef]bool      // is in queue
	due       map[spec.SetRef]time.Time // evaluated again then, though nothing changed
	allQueued time.Time                 // when all sets were queued last because nodes changed
	sets      map[spec.SetRef]*setMemory
	pool      *pool
	lease     eventLease
	placement placement
	offered   offers
	// linked is the revision of the term's first link; 0: none could be made.
	linked store.Rev
}

// setMemory is what a term remembers of one set.
type setMemory struct {
	notBefore   store.Rev // the cache shows the last commit from here on
	joined      store.Rev // of the last transaction with reports and all that followed from them
	failures    int       // of commits, in a row
	statusDue   time.Time // when a differing status is written alone; zero: none differs
	statusAt    time.Time // when the status was last written
	members     *foldedMembers
	history     historySeen
	historyDue  time.Time // when lives that started are recorded alone; zero: none is to be
	backoff     replaceBackoff
	moveRests   moveRests
	outages     outages
	recurrences recurrences
	stall       stallTimer
}

// eventLease is the lease of the events of this hour.
type eventLease struct {
	id      store.LeaseID
	granted time.Time
}

// lead works until ctx ends, which it does when the leadership is over.
func (e *Engine) lead(ctx context.Context, term store.Leadership) error {
	l := e.leader(term)
	defer l.sub.Close()
	if err := e.cfg.Cache.Wait(ctx, term.Created); err != nil {
		return nil // the term ended before the cache had shown its start
	}
	if !l.startChain(ctx) {
		return nil
	}
	l.startQuarantines()
	e.log.Info("leadership started", "revision", int64(term.Created))
	defer e.meter.clear()
	defer e.log.Info("leadership ended", "revision", int64(term.Created))
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(func() { l.chain(ctx) })
	if e.cfg.WhileLeading != nil {
		group.Go(func() { e.cfg.WhileLeading(ctx, term) })
	}
	defer l.takeOffers()()
	for l.await(ctx) {
		l.joinOffered(ctx)
		l.cfg.Cache.Look(l.takeChanges)
		l.enqueueDue(e.cfg.Now())
		l.completeCount(ctx)
		if len(l.queue) > 0 {
			ref := l.queue[0]
			l.queue = l.queue[1:]
			delete(l.queued, ref)
			l.renewEventLease(ctx)
			l.reconcile(ctx, ref)
		}
	}
	return nil
}

// leader is a term that remembers nothing yet.
func (e *Engine) leader(term store.Leadership) *leader {
	return &leader{
		Engine: e, term: term, sub: e.cfg.Cache.Subscribe(), pool: newPool(e.cfg),
		queued: map[spec.SetRef]bool{}, due: map[spec.SetRef]time.Time{}, sets: map[spec.SetRef]*setMemory{},
		placement: placement{unplaced: map[spec.SetRef]bool{}, waiting: map[spec.SetRef]bool{}},
	}
}

// startQuarantines starts the waits of the term: freed addresses rest again.
func (l *leader) startQuarantines() {
	l.cfg.Cache.Look(func(v cache.View) { l.pool.startQuarantines(v.Addresses(), l.cfg.Now()) })
}

// await blocks until there is something to do; false: ctx ended.
func (l *leader) await(ctx context.Context) bool {
	if len(l.queue) > 0 {
		return ctx.Err() == nil
	}
	var due <-chan time.Time
	if at, ok := l.nextDue(); ok {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-l.sub.C():
	case o := <-l.offered.c:
		l.answer(ctx, o)
	case <-due:
	case <-l.cfg.Fencing.C():
		l.cfg.Cache.Look(func(v cache.View) { l.changed(v, &cache.Changes{All: true}) })
	}
	return ctx.Err() == nil
}

// takeChanges takes up what changed until v.
func (l *leader) takeChanges(v cache.View) {
	ch := l.sub.Take()
	l.changed(v, &ch)
}

// gatherNodes is the least time between two evaluations of all sets because nodes changed.
const gatherNodes = 250 * time.Millisecond

// changed queues the sets that changed, and notes what of them. A change of any node may be what a
// waiting member waited for: it queues all sets, those with a member there at once, the others
// together with what else changes in a while.
func (l *leader) changed(v cache.View, ch *cache.Changes) {
	for id := range ch.Members {
		if mem := l.sets[id.Ref()]; mem != nil {
			mem.note(id.Ordinal)
		}
	}
	if ch.All || len(ch.Nodes) > 0 {
		l.nodesChanged(v, ch)
	}
	for ref := range ch.Sets {
		if mem := l.sets[ref]; mem != nil && mem.joined == v.Rev() {
			l.wakeAt(ref, l.cfg.Now().Add(joinedRest)) // nothing came after it
		} else {
			l.enqueue(ref)
		}
	}
	l.placement.enqueueWaiting(v.Rev(), ch.Room, l.enqueue)
}

func (l *leader) nodesChanged(v cache.View, ch *cache.Changes) {
	for _, mem := range l.sets {
		mem.members.moved.addAll(ch)
		mem.history.moved.addAll(ch)
	}
	for node := range ch.Nodes {
		for _, ref := range v.On(node).Sets() {
			l.enqueue(ref)
		}
	}
	now := l.cfg.Now()
	wait := l.allQueued.Add(gatherNodes).Sub(now)
	if ch.All || wait <= 0 || wait > gatherNodes {
		l.allQueued, wait = now, 0
	}
	for _, ref := range append(v.Sets(), v.RemovedSets()...) {
		if wait > 0 {
			l.wakeAt(ref, now.Add(wait))
		} else {
			l.enqueue(ref)
		}
	}
}

func (l *leader) enqueue(ref spec.SetRef) {
	if !l.queued[ref] {
		l.queued[ref] = true
		l.queue = append(l.queue, ref)
	}
}

func (l *leader) nextDue() (next time.Time, ok bool) {
	for _, at := range l.due {
		if !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}

// enqueueDue queues the sets whose time has come.
func (l *leader) enqueueDue(now time.Time) {
	for ref, at := range l.due {
		if !at.After(now) {
			delete(l.due, ref)
			l.enqueue(ref)
		}
	}
}

// wakeAt has a set evaluated again at the given time, or sooner.
func (l *leader) wakeAt(ref spec.SetRef, at time.Time) {
	if old, ok := l.due[ref]; !ok || at.Before(old) {
		l.due[ref] = at
	}
}

func (l *leader) remembered(ref spec.SetRef) *setMemory {
	m := l.sets[ref]
	if m == nil {
		m = &setMemory{members: newFoldedMembers(), history: newHistorySeen(), backoff: replaceBackoff{}}
		l.sets[ref] = m
	}
	return m
}

// forget drops what is remembered of a set that is gone.
func (l *leader) forget(ref spec.SetRef) {
	l.meter.forget(ref)
	l.placement.forget(ref)
	delete(l.sets, ref)
	delete(l.due, ref)
}

// renewEventLease has a lease for the events of this hour; without one none are written.
func (l *leader) renewEventLease(ctx context.Context) {
	now := l.cfg.Now()
	if now.Sub(l.lease.granted) < eventRenewal {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id, err := l.cfg.Store.Grant(ctx, eventLife+eventRenewal)
	if err != nil {
		return // the transactions report the same failure
	}
	l.lease = eventLease{id, now}
}

// ManualTerm is one leadership worked by hand, for a simulation, which owns order and time.
// It is not to be mixed with Run.
type ManualTerm struct{ l *leader }

// End ends it.
func (t *ManualTerm) End() { t.l.sub.Close() }

// Start is the start of the server's process: see Config.Cold. The cache must show the
// store.
func (e *Engine) Start() {
	e.cfg.Cache.Look(func(v cache.View) { e.coldStart.start(v, e.cfg.Now()) })
}

// Begin starts a term that was won. The cache must show the term's creation.
func (e *Engine) Begin(term store.Leadership) *ManualTerm {
	l := e.leader(term)
	l.startQuarantines()
	return &ManualTerm{l}
}

// Link adds a link to the chain of the store.
func (t *ManualTerm) Link(ctx context.Context) { _, _ = t.l.link(ctx) }

// Reconcile evaluates a set once and commits, in the caller's goroutine. When to do so again is the
// caller's to know: whenever it may matter.
func (t *ManualTerm) Reconcile(ctx context.Context, ref spec.SetRef) {
	t.l.completeCount(ctx)
	t.l.reconcile(ctx, ref)
}
