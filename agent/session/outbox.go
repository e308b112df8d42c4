package session

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// pendingReport is the newest report of one life, kept until the server has stored it.
type pendingReport struct {
	report records.Report
	due    time.Time // when it is to be sent; zero: it was sent
}

// gatherTime is how long reports are gathered at most while others are under way: about as long
// as a server takes to store them.
const gatherTime = 5 * time.Millisecond

// burstTime is how long reports are gathered for each that went together last time but one, and burstMost at most, also when those are
// stored: where many members become ready at once, more are about to. After one that went alone nothing waits.
const burstTime, burstMost = 2 * time.Millisecond, 10 * time.Millisecond

// Outbox gathers reports: the newest of each life, sent at once when it matters
// and a little later when the next one may make it needless. While reports are under way, that
// is sent and not stored yet, those that come are gathered for a moment and sent together, and so are those that come soon after
// several; one that is alone is never delayed. Safe for concurrent use.
type Outbox struct {
	soon, later time.Duration
	now         func() time.Time
	changed     *notify.Signal

	mu      sync.Mutex
	pending map[spec.LifeID]*pendingReport
	ready   map[spec.LifeID]bool // what was last put of each life that is not over
	// What is under way: the reports that were sent last, at sentAt, and are not stored.
	underWay map[spec.LifeID]int64
	sentAt   time.Time
	sent     int // how many went together then
}

// NewOutbox returns an empty one that leaves reports of trouble that may pass for soon, and
// of progress for later; now is the wall clock.
func NewOutbox(soon, later time.Duration, now func() time.Time) *Outbox {
	return &Outbox{
		soon: soon, later: later, now: now, changed: notify.New(),
		pending: map[spec.LifeID]*pendingReport{}, ready: map[spec.LifeID]bool{}, underWay: map[spec.LifeID]int64{},
	}
}

// Put takes a report in place of an older one of the same life.
func (o *Outbox) Put(r records.Report) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := spec.LifeID{ID: r.ID, Token: r.Token}
	due := o.now().Add(o.delay(r, o.ready[key]))
	o.ready[key] = r.Ready
	if r.Phase.Over() {
		delete(o.ready, key)
	}
	if old, ok := o.pending[key]; ok {
		if old.report.Seq > r.Seq {
			return
		}
		if !old.due.IsZero() && old.due.Before(due) {
			due = old.due
		}
	}
	o.pending[key] = &pendingReport{r, due}
	o.changed.Notify()
}

// delay is zero for what somebody acts on. That a life is stopping its server has ordered: it
// counts as not ready since then, and the end may follow at once.
func (o *Outbox) delay(r records.Report, wasReady bool) time.Duration {
	switch {
	case r.Phase == records.PhaseStopping:
		return o.soon
	case r.Phase.Over(), r.Ready, wasReady:
		return 0
	case r.Cause != "", r.Phase.Rank() >= records.PhaseRunning.Rank():
		return o.soon
	}
	return o.later
}

// Notify wakes the sender although no report changed: something else is to be sent.
func (o *Outbox) Notify() { o.changed.Notify() }

// SendAgain puts the reports and marks everything as not sent, for a new session.
func (o *Outbox) SendAgain(reports []records.Report) {
	for _, r := range reports {
		o.Put(r)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	for _, l := range o.pending {
		l.due = now
	}
	clear(o.underWay)
	o.sent = 0
	o.changed.Notify()
}

// Due returns the reports that are due, in the order in which they were made, and
// how long until the next one is (0: none waits). Each counts as sent from now on.
func (o *Outbox) Due() (due []records.Report, next time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	held := min(burstMost, time.Duration(max(0, o.sent-1))*burstTime)
	if len(o.underWay) > 0 {
		held = max(held, gatherTime)
	}
	held = max(0, o.sentAt.Add(held).Sub(now))
	for _, l := range o.pending {
		switch wait := max(l.due.Sub(now), held); {
		case l.due.IsZero():
		case wait <= 0:
			due = append(due, l.report)
			l.due = time.Time{}
		case next == 0 || wait < next:
			next = wait
		}
	}
	if len(due) > 0 {
		o.sentAt, o.sent = now, len(due)
		clear(o.underWay)
		for _, r := range due {
			o.underWay[spec.LifeID{ID: r.ID, Token: r.Token}] = r.Seq
		}
	}
	slices.SortFunc(due, func(a, b records.Report) int { return cmp.Compare(a.Seq, b.Seq) })
	return due, next
}

// Stored takes the server's word that the report seq of a life needs no more
// sending; over: it was that life's end.
func (o *Outbox) Stored(id spec.Identity, token spec.Token, seq int64) (over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := spec.LifeID{ID: id, Token: token}
	if sent, ok := o.underWay[key]; ok && sent <= seq {
		delete(o.underWay, key)
		if len(o.underWay) == 0 {
			o.changed.Notify() // for what was gathered meanwhile
		}
	}
	l, ok := o.pending[key]
	if !ok || !l.due.IsZero() || l.report.Seq > seq {
		return false
	}
	delete(o.pending, key)
	return l.report.Phase.Over()
}
