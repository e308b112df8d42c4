package engine

import (
	"context"
	"slices"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

const (
	// offerTime is how long an offer waits for the leader's loop to come round. Reports that were not taken by
	// then are written by themselves.
	offerTime = 50 * time.Millisecond
	// mostOffered bounds the reports of one offer, and mostJoined those of one set in a transaction: of
	// more, the reports alone fill transactions, and a decision follows that is about all of them.
	mostOffered = 64
	mostJoined  = 16
)

// offers is where one term takes reports that are on their way into the store.
type offers struct {
	c    chan offer
	over chan struct{} // closed when the term takes no more
}

// offer are reports; stored is answered once, whatever comes, by whoever took it.
type offer struct {
	reports []cache.JudgedReport
	stored  chan []store.Rev
}

// Offer stores reports in one transaction with what is decided because of them, if this engine
// leads and decides something. It returns, for each report, the revision at which it was stored, or 0: then it may be stored
// or not, as after a commit with an unknown outcome, and the caller stores it by itself, with the
// same compares. It returns at once where another engine leads, and waits while a set is
// decided about, for 50 ms at most; after that only for the store, for 5 s at most. nil: none was taken.
func (e *Engine) Offer(ctx context.Context, reports []cache.JudgedReport) []store.Rev {
	x := e.offers.Load()
	if x == nil || len(reports) == 0 || len(reports) > mostOffered || e.onlyMarks(reports) {
		return nil
	}
	o := offer{reports, make(chan []store.Rev, 1)}
	timer := time.NewTimer(offerTime)
	defer timer.Stop()
	select {
	case x.c <- o:
		return <-o.stored
	case <-x.over:
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// onlyMarks: of none of the reports anything but marks can follow.
func (e *Engine) onlyMarks(reports []cache.JudgedReport) (only bool) {
	e.cfg.Cache.Look(func(v cache.View) {
		only = !slices.ContainsFunc(reports, func(r cache.JudgedReport) bool {
			return !onlyMarks(v, r.Report.ID.Ref(), []cache.JudgedReport{r})
		})
	})
	return only
}

// takeOffers starts to take offers; end refuses those that nobody took.
func (l *leader) takeOffers() (end func()) {
	l.offered = offers{make(chan offer), make(chan struct{})}
	l.offers.Store(&l.offered)
	return func() {
		l.offers.Store(nil)
		close(l.offered.over)
	}
}

// joinOffered takes the offer that waits, if any.
func (l *leader) joinOffered(ctx context.Context) {
	select {
	case o := <-l.offered.c:
		l.answer(ctx, o)
	default:
	}
}

// answer has an offer decided about. The lease of events is renewed by the evaluation that follows:
// a report does not wait for it.
func (l *leader) answer(ctx context.Context, o offer) {
	o.stored <- l.join(ctx, o.reports)
}

// Join is Engine.Offer, in the caller's goroutine.
func (t *ManualTerm) Join(ctx context.Context, reports []cache.JudgedReport) []store.Rev {
	return t.l.join(ctx, reports)
}
