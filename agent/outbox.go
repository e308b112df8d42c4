package agent

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

type lifeKey struct {
	id    spec.Identity
	token spec.Token
}

// letter is the newest report of one life, kept until the server has stored it.
type letter struct {
	report records.Report
	due    time.Time // when it is to be sent; zero: it was sent
}

// outbox gathers reports: the newest of each life, sent at once when it matters
// and a little later when the next one may make it needless.
type outbox struct {
	soon, later time.Duration
	wake        chan struct{}

	mu      sync.Mutex
	letters map[lifeKey]*letter
	ready   map[lifeKey]bool // what was last put of each life that is not over
}

func newOutbox(soon, later time.Duration) *outbox {
	return &outbox{
		soon: soon, later: later, wake: make(chan struct{}, 1),
		letters: map[lifeKey]*letter{}, ready: map[lifeKey]bool{},
	}
}

// put takes a report in place of an older one of the same life.
func (o *outbox) put(r records.Report) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := lifeKey{r.ID, r.Token}
	due := time.Now().Add(o.delay(r, o.ready[key]))
	o.ready[key] = r.Ready
	if r.Phase.Over() {
		delete(o.ready, key)
	}
	if old, ok := o.letters[key]; ok {
		if old.report.Seq > r.Seq {
			return
		}
		if !old.due.IsZero() && old.due.Before(due) {
			due = old.due
		}
	}
	o.letters[key] = &letter{r, due}
	o.ring()
}

// delay is zero for what somebody acts on.
func (o *outbox) delay(r records.Report, wasReady bool) time.Duration {
	switch {
	case r.Phase.Over(), r.Ready, wasReady:
		return 0
	case r.Cause != "", r.Phase.Rank() >= records.PhaseRunning.Rank():
		return o.soon
	}
	return o.later
}

// again marks everything as not sent: a new session begins.
func (o *outbox) again(reports []records.Report) {
	for _, r := range reports {
		o.put(r)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for _, l := range o.letters {
		l.due = now
	}
	o.ring()
}

// take returns the reports that are due, in the order in which they were made, and
// how long until the next one is (0: none waits).
func (o *outbox) take() (due []records.Report, next time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for _, l := range o.letters {
		switch wait := l.due.Sub(now); {
		case l.due.IsZero():
		case wait <= 0:
			due = append(due, l.report)
			l.due = time.Time{}
		case next == 0 || wait < next:
			next = wait
		}
	}
	slices.SortFunc(due, func(a, b records.Report) int { return cmp.Compare(a.Seq, b.Seq) })
	return due, next
}

// stored takes the server's word that the report seq of a life needs no more
// sending; over: it was that life's end.
func (o *outbox) stored(id spec.Identity, token spec.Token, seq int64) (over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := lifeKey{id, token}
	l, ok := o.letters[key]
	if !ok || !l.due.IsZero() || l.report.Seq > seq {
		return false
	}
	delete(o.letters, key)
	return l.report.Phase.Over()
}

func (o *outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
