package engine

import (
	"context"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// callTimeout bounds one turn's calls to the store.
const callTimeout = 10 * time.Second

// leader is one term: everything it remembers ends with it, so that a new leader
// starts every wait again (SAFETY S18). One goroutine owns it.
type leader struct {
	*Engine
	term  store.Leadership
	queue []spec.SetRef
	dirty map[spec.SetRef]bool      // stands in queue
	wakes map[spec.SetRef]time.Time // look again then, though nothing changed
	sets  map[spec.SetRef]*memory
	pool  *pool
	lease eventLease
	place placement
	// linked is the revision of the term's first link; 0: none could be made.
	linked store.Rev
}

// memory is what a term remembers of one set.
type memory struct {
	notBefore  store.Rev     // the cache shows the last commit from here on
	failed     time.Duration // the pause after the last failure; 0: none
	statusDue  time.Time     // when a differing status is written alone; zero: none differs
	statusAt   time.Time     // when the status was last written
	tellDue    time.Time     // when lives that began are told alone; zero: none is to be
	trials     trials
	outages    outages
	repeats    repeats
	standstill standstill
}

// eventLease is the lease of the events of this hour.
type eventLease struct {
	id      store.LeaseID
	granted time.Time
}

// lead works until ctx ends, which it does when the leadership is over.
func (e *Engine) lead(ctx context.Context, term store.Leadership) error {
	l := e.leader(term)
	if err := e.cfg.Cache.Wait(ctx, term.Created); err != nil {
		return nil // the term ended before the cache had seen its begin
	}
	if !l.begun(ctx) {
		return nil
	}
	sub := e.cfg.Cache.Subscribe()
	defer sub.Close()
	l.begin()
	e.log.Info("leadership begun", "revision", int64(term.Created))
	defer e.meter.over()
	defer e.log.Info("leadership ended", "revision", int64(term.Created))
	defer beside(ctx, l.chain)()
	if e.cfg.Beside != nil {
		defer beside(ctx, func(ctx context.Context) { e.cfg.Beside(ctx, term) })()
	}
	for l.await(ctx, sub) {
		l.take(sub.Take())
		l.ring(e.cfg.Now())
		l.endCount(ctx)
		if len(l.queue) > 0 {
			ref := l.queue[0]
			l.queue = l.queue[1:]
			delete(l.dirty, ref)
			l.renewEvents(ctx)
			l.turn(ctx, ref)
		}
	}
	return nil
}

// beside starts what runs beside the term; what it returns ends that and waits for it.
func beside(ctx context.Context, run func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	return func() { cancel(); <-done }
}

// leader is a term without any memory.
func (e *Engine) leader(term store.Leadership) *leader {
	return &leader{
		Engine: e, term: term, pool: newPool(e.cfg),
		dirty: map[spec.SetRef]bool{}, wakes: map[spec.SetRef]time.Time{}, sets: map[spec.SetRef]*memory{},
		place: placement{homeless: map[spec.SetRef]bool{}, early: map[spec.SetRef]bool{}},
	}
}

// begin starts the waits of the term: addresses at rest rest anew.
func (l *leader) begin() {
	l.cfg.Cache.Look(func(v cache.View) { l.pool.notice(v.Addresses(), l.cfg.Now()) })
}

// await blocks until there is something to do; false: ctx ended.
func (l *leader) await(ctx context.Context, sub *cache.Subscription) bool {
	if len(l.queue) > 0 {
		return ctx.Err() == nil
	}
	var due <-chan time.Time
	if at, ok := l.nextWake(); ok {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-sub.C():
	case <-due:
	case <-l.cfg.Fencing.C():
		l.take(cache.Changes{All: true})
	}
	return ctx.Err() == nil
}

// take queues the sets that changed. A change of any node may be what a waiting
// member waited for: all sets are looked at.
func (l *leader) take(ch cache.Changes) {
	if ch.All || len(ch.Nodes) > 0 {
		l.cfg.Cache.Look(func(v cache.View) {
			for _, ref := range append(v.Sets(), v.RemovedSets()...) {
				l.push(ref)
			}
		})
	}
	for ref := range ch.Sets {
		l.push(ref)
	}
	l.place.wake(ch, l.push)
}

func (l *leader) push(ref spec.SetRef) {
	if !l.dirty[ref] {
		l.dirty[ref] = true
		l.queue = append(l.queue, ref)
	}
}

func (l *leader) nextWake() (next time.Time, ok bool) {
	for _, at := range l.wakes {
		if !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}

// ring queues the sets whose time has come.
func (l *leader) ring(now time.Time) {
	for ref, at := range l.wakes {
		if !at.After(now) {
			delete(l.wakes, ref)
			l.push(ref)
		}
	}
}

// wake looks at a set again at the given time, or sooner.
func (l *leader) wake(ref spec.SetRef, at time.Time) {
	if old, ok := l.wakes[ref]; !ok || at.Before(old) {
		l.wakes[ref] = at
	}
}

func (l *leader) memory(ref spec.SetRef) *memory {
	m := l.sets[ref]
	if m == nil {
		m = &memory{trials: trials{}, outages: outages{}}
		l.sets[ref] = m
	}
	return m
}

// forget drops what is remembered of a set that is gone.
func (l *leader) forget(ref spec.SetRef) {
	l.meter.gone(ref)
	l.place.forget(ref)
	delete(l.sets, ref)
	delete(l.wakes, ref)
}

// renewEvents has a lease for the events of this hour; without one none are written.
func (l *leader) renewEvents(ctx context.Context) {
	now := l.cfg.Now()
	if now.Sub(l.lease.granted) < eventRenewal {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id, err := l.cfg.Store.Grant(ctx, eventLife+eventRenewal)
	if err != nil {
		return // the transactions tell the same; events alone are not worth a word
	}
	l.lease = eventLease{id, now}
}
