package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Worker deals with one identity on this host.
type Worker struct {
	c     *Config
	id    spec.Identity
	log   *slog.Logger
	wake  *notify.Signal
	group *goroutines // watchers and probes; nil: Config.Background has them
	back  Background

	mu         sync.Mutex // guards what others tell the worker
	orders     step.Orders
	lives      map[spec.Token]records.Life // told or kept, by token
	told       map[spec.Token]bool         // ends that were reported
	asked      map[spec.Token]bool         // old ones, to be answered when nothing is left here
	kicks      kicks
	last       *records.Report
	lastEnough time.Duration      // enough at that report
	renewing   bool               // files will be written from what is known then
	cancelOp   context.CancelFunc // of an operation that a Stop may break off

	// What follows belongs to the goroutine of Run.
	token    spec.Token // the life dealt with
	standing step.Standing
	order    step.Order
	life     *records.Life // nil: its template is not known
	state    State
	left     left
	names    []string // containers that may stand here
	prepared prepared
	boxes    map[string]*box
	held     map[holdKey]*hold
	strange  string
	away     bool          // the runtime did not answer
	dirty    bool          // containers must be looked at
	sighted  bool          // they were, at least once in this life
	turned   time.Duration // on Clock, when this life was first dealt with
	looked   time.Time
	stopAt   time.Time // when the grace is over
	wrote    time.Time // files were written
	renew    time.Time // when they are to be written again; zero: nothing changed
	gone     string    // which ConfigMap or Secret went away since they were first written

	lastOp  step.Op // performed last; zero: none since the worker waited
	repeats int     // how often in a row

	haunted   bool // processes are left of a token that is to be told over
	guardWait bool // the watchdog must say something first
}

// kicks are what others noticed since the worker last looked.
type kicks struct {
	containers bool // something may have happened to a container
	files      bool // a picture, history, ConfigMap or Secret changed
	confirmed  bool // what the files say was confirmed anew
	images     bool // an image came
	repair     bool // link and files are to be looked after
	health     map[string]probe.Health
}

// left says what of any life may still stand here; true until proven otherwise.
type left struct{ containers, link, scratch, sandbox bool }

// prepared is what was made for the life dealt with, by this worker.
type prepared struct {
	volumes, sandbox, network, files bool
	dirs                             map[string]string // host directories by volume name
	netns                            string
}

// Found is what the agent saw of an identity when it started.
type Found struct {
	// Containers are the names of containers that stand there.
	Containers []string
	// Clean: for certain nothing of the identity stands there.
	Clean bool
}

// New makes the worker of an identity. It takes up the life that the ledger says
// is open, with its description as kept below the run directory; a life that is
// not open is forgotten: it must be told anew.
func New(c *Config, id spec.Identity, found Found) *Worker {
	w := &Worker{
		c: c, id: id, wake: notify.New(), back: c.Background,
		log:   c.Logger.With("member", id.String()),
		lives: map[spec.Token]records.Life{}, told: map[spec.Token]bool{}, asked: map[spec.Token]bool{},
		names: found.Containers, boxes: map[string]*box{}, held: map[holdKey]*hold{}, dirty: true,
	}
	if w.back == nil {
		w.group = &goroutines{c: c}
		w.back = w.group
	}
	entry := c.Ledger.Look(id)
	if !found.Clean || !entry.Newest.IsZero() {
		w.left = left{true, true, true, true}
	}
	if life, ok := c.Files.LoadLife(id); ok && life.Member.Token == entry.Open {
		w.lives[entry.Open] = life
		w.orders = step.Orders{Token: entry.Open, Goal: life.Member.Goal}
	}
	return w
}

// Tell hands over what the server wants of a life. A Stop once told stays.
func (w *Worker) Tell(life records.Life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	token := life.Member.Token
	switch c := token.Compare(w.orders.Token); {
	case c < 0:
		w.answerOld(token)
		return
	case c == 0 && w.orders.Goal == records.GoalStop && life.Member.Goal != records.GoalStop:
		life.Member.Goal = records.GoalStop
		life.Member.StopReason = w.lives[token].Member.StopReason
	}
	w.orders.Token, w.orders.Goal = token, life.Member.Goal
	w.lives[token] = life
	delete(w.told, token)
	if (life.Member.Goal == records.GoalStop || token != w.token) && w.cancelOp != nil {
		w.cancelOp()
	}
	w.wake.Notify()
}

// Over tells that the identity has a newer token than the given one: whatever runs
// here under that token or an older one is to end.
func (w *Worker) Over(token spec.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if token.Compare(w.orders.Over) > 0 {
		w.orders.Over = token
	}
	if w.cancelOp != nil {
		w.cancelOp()
	}
	delete(w.told, token)
	w.wake.Notify()
}

// Confirmed tells that Config.Confirmed moved on.
func (w *Worker) Confirmed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kicks.confirmed = true
	w.wake.Notify()
}

// Expired tells that the life's token was closed because it missed its deadline.
func (w *Worker) Expired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancelOp != nil {
		w.cancelOp()
	}
	w.wake.Notify()
}

// FilesChanged tells that a picture, history, ConfigMap or Secret may have changed.
func (w *Worker) FilesChanged() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kicks.files = true
	w.wake.Notify()
}

// ImagesChanged tells that an image came, so that waiting for one ends at once.
func (w *Worker) ImagesChanged() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kicks.images = true
	w.wake.Notify()
}

// Repair puts back what somebody may have taken from the member's link and files.
// It does nothing for what stands, and nothing while no container runs.
func (w *Worker) Repair() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kicks.repair = true
	w.wake.Notify()
}

// Pending is a life that this worker was told to run and has not opened yet; false:
// there is none.
func (w *Worker) Pending() (spec.Token, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.orders.Token
	return t, w.orders.Goal == records.GoalRun && w.orders.Over.Compare(t) < 0 && t.Compare(w.c.Ledger.Look(w.id).Newest) > 0
}

// Last is the newest report of the life dealt with; false: there was none.
func (w *Worker) Last() (records.Report, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		return records.Report{}, false
	}
	return *w.last, true
}

// Run works until ctx ends; it leaves containers as they are, and returns when all
// its watchers have ended.
func (w *Worker) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	if w.group != nil {
		defer w.group.group.Wait()
	}
	defer cancel()
	for ctx.Err() == nil {
		if acted, next := w.Turn(ctx); !acted {
			w.sleep(ctx, next)
		}
	}
}

// Turn looks, reports, and performs at most one operation. acted: there was one, and the
// next turn is due at once. Else it is due at next, or when somebody tells the worker
// something; zero: then only. One goroutine takes turns.
func (w *Worker) Turn(ctx context.Context) (acted bool, next time.Time) {
	wanted, seen := w.look(ctx)
	op := w.c.next(w.id, w.token, wanted, seen)
	w.report(op)
	if op.Kind == step.Wait || op.Kind == step.Nothing {
		w.lastOp, w.repeats = step.Op{}, 0
		return false, w.next()
	}
	w.repeats++
	if op != w.lastOp {
		w.lastOp, w.repeats = op, 0
	}
	w.do(ctx, op, w.repeats)
	return true, time.Time{}
}

// sleep waits for a wake-up or for the moment at which something is due.
func (w *Worker) sleep(ctx context.Context, at time.Time) {
	var timer <-chan time.Time
	if !at.IsZero() {
		t := time.NewTimer(max(at.Sub(w.c.Now()), time.Millisecond))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
	case <-w.wake.C():
	case <-timer:
	}
}

// next is the earliest moment at which something changes by itself; zero: never.
func (w *Worker) next() time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	switch {
	case w.away:
		sooner(w.looked.Add(w.c.Tuning.Away))
	case w.standing == step.Open || w.strange != "":
		sooner(w.looked.Add(w.c.Tuning.Look))
	case w.haunted:
		sooner(w.c.Now().Add(w.c.Tuning.Look))
	}
	now := w.c.Now()
	ahead := func(t time.Time) {
		if t.After(now) {
			sooner(t)
		}
	}
	for _, h := range w.held {
		ahead(h.until)
	}
	for _, b := range w.boxes {
		ahead(b.due)
		ahead(b.deadline)
		ahead(b.rewatch)
	}
	ahead(w.stopAt)
	sooner(w.renew)
	if w.guardWait {
		sooner(now.Add(guardAgain))
	}
	if left, ok := w.untilAvailable(); ok {
		sooner(now.Add(left))
	}
	return at
}
