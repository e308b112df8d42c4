package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// The bounds of one operation, of one pull of an image, and of how long one start may keep others
// waiting (Config.Starts).
const (
	operationTime = 2 * time.Minute
	pullTime      = 30 * time.Minute
	placeTime     = time.Minute
)

// mostRepeats is how often in a row an operation may succeed and still be wanted.
const mostRepeats = 3

var errNoEffect = errors.New("the operation succeeded and had no effect")

// do performs one operation. Whatever fails is tried again after its back-off, and
// so is what succeeds again and again.
func (w *actor) do(ctx context.Context, op step.Op, repeats int) {
	if op.Kind == step.RunPostStart || op.Kind == step.RunPreStop || op.Kind == step.RunStepDown {
		noteOutcome(w.subject, op, w.beginHook(ctx, op)) // ctx, for the hook goes on beside the turns
		return
	}
	if op.Kind == step.EnsureImage && w.container(op.Container).isHere() {
		w.beginPull(ctx, op.Container) // it runs on meanwhile
		return
	}
	if op.Kind == step.RunOrdered {
		w.beginOrdered(ctx, op.Container)
		return
	}
	if op.Kind == step.CreateContainer || op.Kind == step.StartContainer {
		if !w.awaitPlace(ctx) {
			return
		}
		defer w.occupyPlace(op)()
	}
	sub, cancel := withBound(ctx, op.Kind)
	defer cancel()
	if op.Kind == step.EnsureImage || op.Kind == step.EnsureVolumes {
		// A stop does not wait for a pull, nor for a large volume that is given to a group.
		if !w.interruptible(cancel) {
			return
		}
		defer w.interruptible(nil)
	}
	began := w.c.Now()
	err := w.perform(sub, op)
	traceOp(w.subject, op, began, err)
	if ctx.Err() != nil {
		return // the agent ends; nothing failed
	}
	if repeats >= mostRepeats {
		err = cmp.Or(err, errNoEffect)
	}
	noteOutcome(w.subject, op, err)
}

// withBound gives an operation its time. Volumes have no bound: each file of a large one may have to be
// looked at, and what has no end is reported.
func withBound(ctx context.Context, kind step.Kind) (context.Context, context.CancelFunc) {
	switch kind {
	case step.EnsureVolumes:
		return context.WithCancel(ctx)
	case step.EnsureImage:
		return context.WithTimeout(ctx, pullTime)
	}
	return context.WithTimeout(ctx, operationTime)
}

// awaitPlace waits for one of the node's places for starting a container, without a
// bound; false: an order or the agent's end came first. The place must be left.
func (w *actor) awaitPlace(ctx context.Context) bool {
	if w.c.Starts == nil {
		return true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !w.interruptible(cancel) {
		return false
	}
	defer w.interruptible(nil)
	select {
	case w.c.Starts <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *actor) perform(ctx context.Context, op step.Op) error {
	switch op.Kind {
	case step.OpenToken:
		return w.openToken()
	case step.Refuse:
		return w.c.Ledger.CloseToken(w.id, w.token, causes.Refused)
	case step.EnsureImage, step.CreateContainer, step.StartContainer, step.EndContainer, step.KillContainer, step.KillLeft, step.RemoveContainer,
		step.ResizeContainer, step.SignalContainer, step.SignalSidecar:
		return w.performOn(ctx, op, w.container(op.Container))
	case step.RefuseChange:
		refuseChange(w, op.Container, op.Message)
		return nil
	case step.EnsureVolumes:
		return w.ensureVolumes(ctx)
	case step.EnsureSandbox:
		return w.ensureSandbox(ctx)
	case step.AttachNetwork:
		return w.attach(ctx)
	case step.WriteFiles:
		return w.writeFiles()
	case step.ShowReason:
		return w.showReason()
	case step.SignalStop:
		return w.signalStop(ctx)
	case step.KillAll:
		return w.killAll(ctx)
	case step.RemoveContainers:
		return w.removeContainers(ctx)
	case step.Detach:
		return w.proven(w.c.Network.Detach(ctx, w.id), &w.left.link)
	case step.RemoveScratch:
		return w.proven(w.c.Volumes.RemoveScratch(ctx, w.id), &w.left.scratch)
	case step.RemoveSandbox:
		return w.proven(w.c.Runtime.RemoveSandbox(ctx, w.id), &w.left.sandbox)
	case step.Expire:
		return w.c.Guard.Expire(w.id, w.token)
	case step.CloseToken:
		return w.c.Ledger.CloseToken(w.id, w.token, causes.Stopped)
	case step.ReportOver:
		return w.reportOver()
	}
	return fmt.Errorf("operation %s is not known", op.Kind)
}

// proven notes that something is gone when the call that removed it says so.
func (w *actor) proven(err error, there *bool) error {
	if err == nil {
		*there = false
	}
	return err
}

func (w *actor) openToken() error {
	if err := w.saveLife(); err != nil {
		return err
	}
	if err := w.recordGuard(); err != nil {
		return err
	}
	if err := w.c.Ledger.OpenToken(w.id, w.token); err != nil {
		return err
	}
	w.log.Info("life started", "token", w.token, "reason", w.life.Member.Reason, "revision", w.life.Member.Revision)
	return nil
}

// performOn performs an operation on one container.
func (w *actor) performOn(ctx context.Context, op step.Op, ctr *container) error {
	id := runtime.ContainerID{ID: w.id, Name: op.Container}
	c := w.template(op.Container)
	if c == nil {
		return fmt.Errorf("container %s: the life's template is not known", op.Container)
	}
	switch op.Kind {
	case step.EnsureImage:
		return w.ensureImage(ctx, c, ctr)
	case step.CreateContainer:
		return w.create(ctx, c, ctr)
	case step.StartContainer:
		return w.start(ctx, id, ctr)
	case step.EndContainer:
		return w.endContainer(ctx, c, ctr)
	case step.ResizeContainer:
		return w.resize(ctx, c)
	case step.SignalContainer:
		return w.signalAfterHook(ctx, id, ctr)
	case step.SignalSidecar:
		return w.signalSidecar(ctx, id, ctr)
	case step.KillContainer:
		ctr.deadline = w.c.Now().Add(killAgain)
		w.dirty = true
		return ignoreGone(w.c.Runtime.Signal(ctx, id, sigkill, true))
	case step.KillLeft:
		w.dirty = true
		return ignoreGone(w.c.Runtime.Signal(ctx, id, sigkill, true))
	}
	w.dirty = true
	if w.role(op.Container) == spec.RoleInit && ctr.Passed {
		if err := w.writeState(); err != nil { // its end is not seen any more once it is removed
			return err
		}
	}
	return w.c.Runtime.Remove(ctx, id)
}

// The signals, by number: the contract of the runtime takes Linux' numbers.
const (
	sigterm = 15
	sigkill = 9
)

// killAgain is how long a killed container may take to be gone.
const killAgain = 2 * time.Second

func ignoreGone(err error) error {
	if errors.Is(err, runtime.ErrNotRunning) || errors.Is(err, runtime.ErrNotFound) {
		return nil
	}
	return err
}

// occupyPlace ends when an operation has had one of the node's places for placeTime: the
// place goes to the next member, and what takes so long is reported. The operation itself is
// waited for, since nothing can be done about the member while it may still have an
// effect; release may be called in any case when it has ended.
func (w *actor) occupyPlace(op step.Op) (release func()) {
	leave := sync.OnceFunc(func() {
		if w.c.Starts != nil {
			<-w.c.Starts
		}
	})
	ended := false // guarded by mu
	stop := w.c.after(placeTime, func() {
		leave()
		w.mu.Lock()
		defer w.mu.Unlock()
		if !ended {
			w.reportOverdue(op)
		}
	})
	return func() {
		stop()
		leave()
		w.mu.Lock()
		defer w.mu.Unlock()
		ended = true
	}
}
