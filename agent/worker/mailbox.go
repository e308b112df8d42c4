package worker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// mailbox is what others say to a worker and ask of it. Safe for concurrent use.
type mailbox struct {
	c    *Config
	id   spec.Identity
	log  *slog.Logger
	wake *notify.Signal

	mu sync.Mutex
	// token is the life dealt with. The goroutine that takes turns writes it, and reads it
	// without the lock.
	token        spec.Token
	orders       step.Orders
	lives        map[spec.Token]*records.Life // ordered or kept, by token; a life is replaced, never changed
	reportedEnds map[spec.Token]bool
	unanswered   map[spec.Token]bool // old ones, to be answered when nothing is left here
	events       pendingEvents
	last         *records.Report
	lastEnough   time.Duration      // how long was enough to be available, at that report
	cancelOp     context.CancelFunc // of an operation that a Stop may break off
	stopBy       time.Time          // no stop has a grace beyond it; zero: each has its own
}

// pendingEvents are what others noticed since the worker last looked.
type pendingEvents struct {
	containers bool // something may have happened to a container
	files      bool // a ConfigMap or Secret of a life changed
	images     bool // an image came
	repair     bool // link and files are to be checked
	health     map[string]probe.Health
	claims     map[string]records.Claim
	hooks      []hookEnd // in the order in which they returned
	ordered    []orderedEnd
	pulls      []pullEnd
}

// Tell hands over what the server wants of a life. A Stop stays a Stop, and what its containers run changes by order only.
func (w *mailbox) Tell(life records.Life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	token := life.Member.Token
	had := w.lives[token]
	switch c := token.Compare(w.orders.Token); {
	case c < 0:
		w.answerOld(token)
		return
	case c == 0 && w.orders.Goal == records.GoalStop && life.Member.Goal != records.GoalStop:
		life.Member.Goal = records.GoalStop
		if had != nil {
			life.Member.StopReason = had.Member.StopReason
		}
	}
	another := had != nil && takeOrKeep(&life, had)
	w.orders.Token, w.orders.Goal = token, life.Member.Goal
	w.lives[token] = &life
	delete(w.reportedEnds, token)
	if (another || life.Member.Goal == records.GoalStop || token != w.token) && w.cancelOp != nil {
		w.cancelOp()
	}
	w.wake.Notify()
}

// StopHere has the life that is here end, or that was to begin, as if its server ordered so, and whatever that says later: the host
// goes down, and everything of this boot ends with it (SAFETY S2). No grace lasts beyond by, but for the leastGrace of a container
// whose preStop hook lasted until then. It may be repeated.
func (w *mailbox) StopHere(reason records.Reason, by time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopBy = by
	if open := w.c.Ledger.Look(w.id).Open; open.Compare(w.orders.Token) > 0 { // that nobody spoke of since the agent began
		w.orders.Token, w.orders.Goal = open, ""
	}
	if token := w.orders.Token; !token.IsZero() && w.orders.Goal != records.GoalStop {
		w.orders.Goal = records.GoalStop
		if had := w.lives[token]; had != nil {
			life := *had
			life.Member.Goal, life.Member.StopReason = records.GoalStop, reason
			w.lives[token] = &life
		}
		if w.cancelOp != nil {
			w.cancelOp()
		}
	}
	w.wake.Notify()
}

// Open is the grace of the life that is open here; false: none is.
func (w *mailbox) Open() (grace time.Duration, open bool) {
	token := w.c.Ledger.Look(w.id).Open
	if token.IsZero() {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if life := w.lives[token]; life != nil {
		return time.Duration(life.Member.GraceSeconds) * time.Second, true
	}
	return unknownGrace, true
}

func (w *mailbox) graceEnds() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopBy
}

// Over says that the identity has a newer token than the given one: whatever runs
// here under that token or an older one is to end.
func (w *mailbox) Over(token spec.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if token.Compare(w.orders.Over) > 0 {
		w.orders.Over = token
	}
	if w.cancelOp != nil {
		w.cancelOp()
	}
	delete(w.reportedEnds, token)
	w.wake.Notify()
}

// Expired wakes the worker: the life's token was closed because it missed its deadline.
func (w *mailbox) Expired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancelOp != nil {
		w.cancelOp()
	}
	w.wake.Notify()
}

// note takes in what happened, for the next turn.
func (w *mailbox) note(happened func(*pendingEvents)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	happened(&w.events)
	w.wake.Notify()
}

// Confirmed wakes the worker of a guarded life: a server confirmed the node.
func (w *mailbox) Confirmed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, life := range w.lives {
		if life.Member.Bound > 0 {
			w.wake.Notify()
			return
		}
	}
}

// SourcesChanged wakes the worker when a life of it names a ConfigMap or Secret for which of is true.
func (w *mailbox) SourcesChanged(of func(files.FileSource) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, life := range w.lives {
		if files.IsNamed(life, of) {
			w.events.files = true
			w.wake.Notify()
			return
		}
	}
}

// ImagesChanged wakes the worker: an image came, so that waiting for one ends at once.
func (w *mailbox) ImagesChanged() { w.note(func(e *pendingEvents) { e.images = true }) }

// Repair puts back what may have been removed from the member's link and files. It changes
// nothing that is there, and nothing while no container runs.
func (w *mailbox) Repair() { w.note(func(e *pendingEvents) { e.repair = true }) }

// Pending is a life that this worker was ordered to run and has not opened yet; false:
// there is none.
func (w *mailbox) Pending() (spec.Token, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.orders.Token
	return t, w.orders.Goal == records.GoalRun && w.orders.Over.Compare(t) < 0 && t.Compare(w.c.Ledger.Look(w.id).Newest) > 0
}

// Images are those that the lives of the identity need here, as their templates write them: of the
// one that is open, and of the one that is to begin.
func (w *mailbox) Images() (refs []string) {
	pending, isPending := w.Pending()
	w.mu.Lock()
	defer w.mu.Unlock()
	open := w.c.Ledger.Look(w.id).Open
	for token, life := range w.lives {
		if token == open || isPending && token == pending {
			for c := range life.Template.Spec.All() {
				refs = append(refs, c.Image)
			}
		}
	}
	return refs
}

// Last is the newest report of the life dealt with; false: there was none.
func (w *mailbox) Last() (records.Report, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		return records.Report{}, false
	}
	return *w.last, true
}

// interruptible lets an order break off the operation; false: one came already.
func (w *mailbox) interruptible(cancel context.CancelFunc) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancelOp = cancel
	return w.orders.Token == w.token && w.orders.Goal == records.GoalRun && w.orders.Over.Compare(w.token) < 0
}

// answerOld reports the end of a token older than the one last ordered, as a restored
// store may ask for: this worker will not come to deal with it. Before a life is opened, and
// before an end is reported, all that was here is seen to be gone; an end that is not reported
// yet may have processes left, and is waited for (SAFETY S13). The caller holds the lock.
func (w *mailbox) answerOld(token spec.Token) {
	delete(w.unanswered, token)
	entry := w.c.Ledger.Look(w.id)
	if !entry.Spent(token) {
		return
	}
	if slices.ContainsFunc(entry.Ends, func(e ledger.End) bool { return !w.reportedEnds[e.Token] }) {
		w.unanswered[token] = true
		return
	}
	w.c.Report(records.Report{
		ID: w.id, Token: token, Node: w.c.Node.Name, Phase: records.PhaseStopped, Message: messageSpent, Seq: w.c.Seq(), At: w.c.Now(),
	})
}

// reportWork repeats the last report with what takes long now. The caller holds the lock.
func (w *mailbox) reportWork(cause causes.Cause, text string) {
	if w.last == nil {
		return
	}
	r := *w.last
	r.Cause, r.Message = cause, text
	r.Seq, r.At = w.c.Seq(), w.c.Now()
	w.last = &r
	w.c.Report(r)
}

// reportOverdue repeats the last report with what is wrong now. The caller holds the lock.
func (w *mailbox) reportOverdue(op step.Op) {
	if w.last == nil {
		return
	}
	verb := "creating"
	if op.Kind == step.StartContainer {
		verb = "starting"
	}
	r := *w.last
	r.Cause, r.Message = causes.StartError, fmt.Sprintf("container %s: %s it has taken %s so far; the host's runtime or disk does not answer. "+
		"Other members are not affected; this one continues by itself when it does", op.Container, verb, placeTime)
	r.Seq, r.At = w.c.Seq(), w.c.Now()
	w.last = &r
	w.c.Report(r)
	w.log.Warn("operation overdue", "token", r.Token, "reason", r.Message)
}
