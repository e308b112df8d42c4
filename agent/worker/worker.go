// Package worker runs the lives of one identity on this host: one goroutine looks,
// asks step.Next for one operation, performs it, and looks again. What it must not
// forget is in the ledger (on disk) or below the run directory (tmpfs: lost only
// with a reboot, which ends every life anyway); everything else is looked at again. A
// worker that ends leaves the containers as they are; the next one adopts them.
package worker

import (
	"context"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Worker deals with one identity on this host. What others say to it waits in its mailbox; a
// turn observes, decides (agent/step), reports and acts on the life that it deals with.
type Worker struct {
	*subject
	observer observer
	actor    actor
	reporter reporter

	group   *goroutines // watchers, probes and hooks, unless Config.Background has them
	lastOp  step.Op     // performed last; zero: none since the worker waited
	repeats int         // how often in a row
}

// The three parts of a turn.
type (
	observer struct{ *subject }
	reporter struct{ *subject }
	actor    struct {
		*subject
		reporter *reporter
	}
)

// subject is the life that a worker deals with, as far as it knows. All of it belongs to the
// goroutine that takes turns.
type subject struct {
	*mailbox
	background Background
	standing   step.Standing
	order      step.Order
	life       *records.Life // nil: its template is not known
	saved      *records.Life // kept as it is
	state      State
	stateMoved bool // state is not kept as it is
	left       left
	names      []string // containers that may be here
	prepared   prepared
	containers map[string]*container
	held       map[holdKey]*hold
	hookEnds   []hookEnd   // to be taken in
	ordered    *orderedRun // the ordered hook that runs, also one whose order is gone and that has not ended; nil: none
	orderedDue time.Time   // its back-off is over

	unknownContainer string        // the sentence about one that the ledger does not know; "": there is none
	runtimeDown      bool          // it did not answer
	dirty            bool          // containers must be looked at
	observed         bool          // they were, at least once in this life
	since            time.Duration // on Clock: this life is dealt with
	lookedAt         time.Time
	startedAt        time.Time // when a container was started last, if that is traced
	stopAt           time.Time // when the grace is over
	stopBounded      time.Time // the end of the host's time (StopHere) that stopAt was bounded by; zero: none
	filesWritten     time.Time
	rewriteFiles     time.Time // when they are to be written again; zero: nothing changed
	sourceGone       string    // which ConfigMap or Secret went away since they were first written
	processesLeft    bool      // of a token whose end is to be reported
	guardWait        bool      // the watchdog must say something first
	pulledWith       string    // files.Credentials.Print at the last pull
}

// left says what of any life may still be here; true until proven otherwise.
type left struct{ containers, link, scratch, sandbox bool }

// prepared is what was made for the life dealt with, by this worker.
type prepared struct {
	volumes, sandbox, network, files bool
	dirs                             map[string]string // host directories by volume name
	netns                            string
}

// Found is what the agent saw of an identity when it started.
type Found struct {
	// Containers are the names of containers that are there.
	Containers []string
	// Clean: for certain nothing of the identity is there.
	Clean bool
}

// New makes the worker of an identity. It takes up the life that the ledger says
// is open, with its description as kept below the run directory; a life that is
// not open is forgotten: it must be ordered again.
func New(c *Config, id spec.Identity, found Found) *Worker {
	w := &Worker{subject: &subject{
		mailbox: &mailbox{
			c: c, id: id, log: c.Logger.With("member", id.String()), wake: notify.New(),
			lives: map[spec.Token]*records.Life{}, reportedEnds: map[spec.Token]bool{}, unanswered: map[spec.Token]bool{},
		},
		background: c.Background, names: found.Containers, containers: map[string]*container{}, held: map[holdKey]*hold{}, dirty: true,
	}}
	w.observer, w.reporter, w.actor = observer{w.subject}, reporter{w.subject}, actor{w.subject, &w.reporter}
	w.group = &goroutines{c: c}
	if w.background == nil {
		w.background = w.group
	}
	entry := c.Ledger.Look(id)
	if !found.Clean || !entry.Newest.IsZero() {
		w.left = left{true, true, true, true}
	}
	if life, ok := c.Files.LoadLife(id); ok && life.Member.Token == entry.Open {
		w.lives[entry.Open] = &life
		w.orders = step.Orders{Token: entry.Open, Goal: life.Member.Goal}
	}
	return w
}

// Run works until ctx ends; it leaves containers as they are, and returns when all
// its watchers have ended.
func (w *Worker) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer w.group.group.Wait()
	defer w.keepState()
	defer cancel()
	for ctx.Err() == nil {
		if acted, next := w.Turn(ctx); !acted {
			w.sleep(ctx, next)
		}
	}
}

// Turn looks, reports, and performs at most one operation. acted: there was one, and the
// next turn is due at once. Else it is due at next, or when the worker is woken; zero: then
// only. One goroutine takes turns.
func (w *Worker) Turn(ctx context.Context) (acted bool, next time.Time) {
	wanted, seen := w.observer.look(ctx)
	op := w.c.next(w.id, w.token, wanted, seen)
	w.reporter.report(op)
	w.keepState()
	if op.Kind == step.Wait || op.Kind == step.Nothing {
		w.lastOp, w.repeats = step.Op{}, 0
		return false, w.next()
	}
	w.repeats++
	if op != w.lastOp {
		w.lastOp, w.repeats = op, 0
	}
	w.actor.do(ctx, op, w.repeats)
	return true, time.Time{}
}

// sleep waits for a wake-up or for the moment at which something is due.
func (w *Worker) sleep(ctx context.Context, at time.Time) {
	var due <-chan time.Time
	if !at.IsZero() {
		due = time.After(max(at.Sub(w.c.Now()), time.Millisecond))
	}
	select {
	case <-ctx.Done():
	case <-w.wake.C():
	case <-due:
	}
}

// next is the earliest moment at which something changes by itself; zero: never.
func (w *subject) next() time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	switch {
	case w.runtimeDown:
		sooner(w.lookedAt.Add(w.c.Tuning.Away))
	case w.standing == step.Open || w.unknownContainer != "":
		sooner(w.lookedAt.Add(w.c.Tuning.Look))
	case w.processesLeft:
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
	for _, ctr := range w.containers {
		if ctr.pull != nil {
			ahead(ctr.pull.longAt)
		}
		ahead(ctr.due)
		ahead(ctr.deadline)
		ahead(ctr.rewatch)
		ahead(now.Add(ctr.untilSteppedDown(w.c.Clock())))
	}
	ahead(w.stopAt)
	ahead(w.orderedDue)
	if left := untilOverdue(w); left > 0 {
		sooner(now.Add(left))
	}
	sooner(w.rewriteFiles)
	if w.guardWait {
		sooner(now.Add(guardAgain))
	}
	if left, ok := w.untilAvailable(); ok {
		sooner(now.Add(left))
	}
	if left, ok := w.state.Busy.untilLonger(w.c.Clock()); ok && w.standing == step.Open {
		sooner(now.Add(left))
	}
	return at
}

// Background does what goes on beside the turns of a worker, until ctx ends. Its methods
// return at once; what they call is safe to be called from any goroutine.
type Background interface {
	// Watch calls ended once: when the container may have ended, or when ctx did.
	Watch(ctx context.Context, id runtime.ContainerID, ended func())
	// Probe calls report with each change of health.
	Probe(ctx context.Context, t probe.Target, report func(probe.Health))
	// Pull calls pull once, which makes an image present.
	Pull(ctx context.Context, pull func(context.Context))
	// Hook runs a lifecycle hook and calls returned once, with why it failed; nil: it did not.
	Hook(ctx context.Context, t probe.Target, h spec.Hook, returned func(error))
	// Order runs a hook that the server ordered, with more variables, as Hook does.
	Order(ctx context.Context, t probe.Target, h spec.MemberHook, env []string, returned func(error))
}

// goroutines is Background with a goroutine for each container and task.
type goroutines struct {
	c     *Config
	group sync.WaitGroup
}

func (g *goroutines) Watch(ctx context.Context, id runtime.ContainerID, ended func()) {
	g.group.Go(func() {
		// What it says is only a hint: the worker looks for itself.
		_, _ = g.c.Runtime.Wait(ctx, id)
		ended()
	})
}

func (g *goroutines) Probe(ctx context.Context, t probe.Target, report func(probe.Health)) {
	g.group.Go(func() { g.c.Prober.Probe(ctx, t, report) })
}

func (g *goroutines) Pull(ctx context.Context, pull func(context.Context)) {
	g.group.Go(func() { pull(ctx) })
}

func (g *goroutines) Hook(ctx context.Context, t probe.Target, h spec.Hook, returned func(error)) {
	if g.c.Prober == nil {
		returned(nil)
		return
	}
	g.group.Go(func() { returned(g.c.Prober.Hook(ctx, t, h)) })
}

func (g *goroutines) Order(ctx context.Context, t probe.Target, h spec.MemberHook, env []string, returned func(error)) {
	if g.c.Prober == nil {
		returned(nil)
		return
	}
	g.group.Go(func() { returned(g.c.Prober.Order(ctx, t, h, env)) })
}
