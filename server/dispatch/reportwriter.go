package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

const (
	// maxPending bounds the lives of one session whose reports wait.
	maxPending = 20_000
	// firstRetry and lastRetry are the waits before reports that could not be stored are tried again.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// attempts bounds how often one report is tried while its member keeps moving.
	attempts = 5
)

// reportWriter stores the reports of all sessions: whatever came while one transaction
// was under way goes into the next ones, so an idle server writes at once and a
// busy one in batches. Only the newest report of a life waits.
type reportWriter struct {
	store store.Store
	cache cache.Reader
	offer Offer
	trace *trace.Tracer
	log   *slog.Logger
	added *notify.Signal
	// writes is what each node may have written, refusals who wants more.
	writes   *allowance
	refusals *refusals
	rev      store.Rev     // of the last commit: the cache must show it before the next round
	rest     time.Duration // before the next round
	// gathering is since when reports gather for which nobody waits; zero: none does.
	gathering time.Time

	mu      sync.Mutex
	pending map[*session]map[spec.LifeID]records.Report
	bytes   map[*session]int // that wait; what was replaced counts until the next round
}

// pendingReport is one report on its way into the store.
type pendingReport struct {
	se     *session
	report records.Report
	member store.Rev // mod-revision of the member it was judged by
	old    store.Rev // and of the report before it
	minor  bool      // nobody waits for it
	// first is the life that is ready for the first time by this report, if it is traced; nil: no such one.
	first *records.Member
}

func (p pendingReport) lifeID() spec.LifeID {
	return spec.LifeID{ID: p.report.ID, Token: p.report.Token}
}

func newReportWriter(cfg *Config, writes *allowance, f *refusals) *reportWriter {
	return &reportWriter{
		store: cfg.Store, cache: cfg.Cache, offer: cfg.Offer, trace: cfg.Trace, log: cfg.Logger, added: notify.New(), writes: writes, refusals: f,
		pending: map[*session]map[spec.LifeID]records.Report{}, bytes: map[*session]int{},
	}
}

// add queues reports of so many bytes; it does not block.
func (c *reportWriter) add(se *session, reports []records.Report, bytes int) {
	c.mu.Lock()
	mine := c.pending[se]
	if mine == nil {
		mine = map[spec.LifeID]records.Report{}
		c.pending[se] = mine
	}
	for _, r := range reports {
		l := spec.LifeID{ID: r.ID, Token: r.Token}
		if old, ok := mine[l]; !ok || r.Seq > old.Seq || r.Phase.Over() {
			mine[l] = r
		}
	}
	c.bytes[se] += bytes
	tooMuch := len(mine) > maxPending || c.bytes[se] > pendingBytes
	c.mu.Unlock()
	if tooMuch {
		why := fmt.Sprintf("reports of more than %d lives, or %d bytes, wait at once", maxPending, pendingBytes)
		c.refusals.add(se.node, LimitReports, 1, why)
		se.abort(codes.ResourceExhausted, why)
	}
	c.added.Notify()
}

func (c *reportWriter) run(ctx context.Context) {
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.added.C():
		}
		left := c.storePending(ctx, true)
		if len(left) == 0 {
			failures = 0
			backoff.Sleep(ctx, c.rest)
			continue
		}
		failures++
		if failures == 1 {
			c.log.Warn("reports not stored", "reports", len(left))
		}
		backoff.Sleep(ctx, backoff.After(firstRetry, lastRetry, failures))
		for _, p := range left {
			c.requeue(p)
		}
		c.added.Notify()
	}
}

// requeue puts a report back, unless a newer one waits.
func (c *reportWriter) requeue(p pendingReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := c.pending[p.se]
	if mine == nil {
		mine = map[spec.LifeID]records.Report{}
		c.pending[p.se] = mine
	}
	if _, ok := mine[p.lifeID()]; !ok {
		mine[p.lifeID()] = p.report
		c.bytes[p.se] += len(store.Encode(p.report))
	}
}

// storePending writes all that waits, but what gathers if it may wait; it returns what the store could not take now.
func (c *reportWriter) storePending(ctx context.Context, mayWait bool) (left []pendingReport) {
	c.mu.Lock()
	pending := c.pending
	c.pending, c.bytes = map[*session]map[spec.LifeID]records.Report{}, map[*session]int{}
	c.mu.Unlock()
	c.deferLimited(pending)
	if err := c.cache.Wait(ctx, c.rev); err != nil {
		return nil // ctx ended
	}
	var units []pendingReport
	held := false
	c.cache.Look(func(v cache.View) {
		held = v.Hold() != nil
		for se, reports := range pending {
			if held && se.ctx.Err() != nil {
				continue // a hold ends with a restore, and with that its session is another
			}
			for l, r := range reports {
				m, rev := v.Member(l.ID), v.ModRev(store.MemberKey(l.ID))
				if m == nil && rev != 0 {
					continue // unreadable: what it proves must not be answered
				}
				if held {
					units = append(units, pendingReport{se: se, report: r})
					continue
				}
				if p, ok := c.decide(pendingReport{se: se, report: r, member: rev, old: v.ModRev(store.ReportKey(l.ID))}, m, v.Report(l.ID), minReady(v, l.ID)); ok {
					units = append(units, p)
				}
			}
		}
	})
	if held {
		return units // none is judged by a store that may be wrong
	}
	slices.SortFunc(units, func(a, b pendingReport) int { // in one order, so that a simulation can be repeated
		return cmp.Or(cmp.Compare(a.se.node, b.se.node), compareLives(a.lifeID(), b.lifeID()), cmp.Compare(a.se.id, b.se.id))
	})
	units = c.join(ctx, units)
	if mayWait {
		units = c.gather(units)
	}
	began := time.Now()
	left = c.commit(ctx, units)
	c.rest = restAfter(len(units), time.Since(began))
	return left
}

// rateTime is how long what a node may not have written now waits.
const rateTime = time.Second

// deferLimited takes out of pending, and queues for later, what is of nodes that have had
// more written than they may.
func (c *reportWriter) deferLimited(pending map[*session]map[spec.LifeID]records.Report) {
	held := false
	for se, reports := range pending {
		if c.writes.mayWrite(se.node) {
			continue
		}
		delete(pending, se)
		if se.ctx.Err() != nil {
			continue // it says all again in its next session
		}
		held = true
		c.refusals.add(se.node, LimitRate, len(reports), "it reports more than the store can keep; the newest is stored later")
		for _, r := range reports {
			c.requeue(pendingReport{se: se, report: r})
		}
	}
	if held {
		time.AfterFunc(rateTime, c.added.Notify)
	}
}

func minReady(v cache.View, id spec.Identity) time.Duration {
	if set := v.Set(id.Ref()); set != nil {
		return time.Duration(set.Spec.MinReadySeconds) * time.Second
	}
	return 0
}
