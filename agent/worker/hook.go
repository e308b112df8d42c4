package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// leastGrace is what a container has to end after its preStop hook, however long that took, and a sidecar
// after all others: Kubernetes' number.
const leastGrace = 2 * time.Second

// HooksDone is how far the hooks of a container are, in one attempt. A hook that an agent began and
// did not see return is begun again by the next one, while the grace lasts.
type HooksDone struct {
	PostStart bool `json:"postStart,omitempty"` // it returned, and did not fail
	PreStop   bool `json:"preStop,omitempty"`   // it returned
	// StepDown: it returned, or its time is over. That is at StepDownBy, on the boot clock; 0: it has not started.
	StepDown   bool          `json:"stepDown,omitempty"`
	StepDownBy time.Duration `json:"stepDownBy,omitempty"`
	// Signalled: the container was asked to end after its preStop hook.
	Signalled bool `json:"signalled,omitempty"`
}

// hookRun is a hook that was begun.
type hookRun struct {
	kind   step.Kind // RunPostStart, RunPreStop or RunStepDown
	cancel context.CancelFunc
}

// hookEnd says that a hook has returned.
type hookEnd struct {
	container string
	run       *hookRun
	err       error
}

// endHook ends what runs of a hook.
func (c *container) endHook() {
	if c.hook != nil {
		c.hook.cancel()
	}
	c.hook = nil
}

// hooks says how far the hooks of a container are; c describes it, nil: it is not known.
func (w *subject) hooks(c *spec.Container, ctr *container) (h step.Hooks) {
	if c == nil || ctr.seen != step.Running {
		return h
	}
	running := func(kind step.Kind) step.HookState {
		if ctr.hook != nil && ctr.hook.kind == kind {
			return step.HookRunning
		}
		return step.HookDue
	}
	if w.isToStepDown(c, ctr) {
		h.StepDown = running(step.RunStepDown)
	}
	if c.Lifecycle == nil {
		return h
	}
	if w.awaitsPostStart(c, ctr) {
		h.PostStart = running(step.RunPostStart)
	}
	if c.Lifecycle.PreStop != nil && !ctr.Hooks.Signalled && w.graceOf(c, ctr) > 0 {
		h.PreStop = running(step.RunPreStop)
		if ctr.Hooks.PreStop || w.hookLate(ctr) {
			h.PreStop = step.HookOver
		}
	}
	return h
}

// awaitsPostStart: a container that runs has a postStart hook that has not returned yet.
func (w *subject) awaitsPostStart(c *spec.Container, ctr *container) bool {
	return c.Lifecycle != nil && c.Lifecycle.PostStart != nil && !ctr.Hooks.PostStart && !ctr.unhealthy
}

// hookLate: the grace of a container that is to end is over.
func (w *subject) hookLate(ctr *container) bool {
	over := ctr.deadline
	if w.order == step.OrderStop {
		over = w.stopAt
	}
	return !over.IsZero() && !w.c.Now().Before(over)
}

// beginHook begins a hook, which ends with ctx, with the container, or when another one begins.
func (w *actor) beginHook(ctx context.Context, op step.Op) error {
	ctr, c := w.container(op.Container), w.template(op.Container)
	h, err := w.hookFor(op.Kind, c, ctr)
	if err != nil {
		return fmt.Errorf("container %s: %w", op.Container, err)
	}
	ctr.endHook()
	ctx, cancel := context.WithCancel(ctx)
	run := &hookRun{op.Kind, cancel}
	ctr.hook = run
	w.background.Hook(ctx, w.target(c, ctr), *h, func(err error) {
		w.note(func(e *pendingEvents) {
			if ctx.Err() == nil {
				e.hooks = append(e.hooks, hookEnd{op.Container, run, err})
			}
		})
	})
	return nil
}

// hookFor is the hook of an operation.
func (w *actor) hookFor(kind step.Kind, c *spec.Container, ctr *container) (*spec.Hook, error) {
	switch {
	case c != nil && kind == step.RunStepDown:
		return c.StepDown, w.beginStepDown(c, ctr)
	case c == nil || c.Lifecycle == nil:
		return nil, errors.New("its hooks are not known")
	case kind == step.RunPreStop:
		return c.Lifecycle.PreStop, nil
	}
	return c.Lifecycle.PostStart, nil
}

// target is a running container for its probes and hooks.
func (w *subject) target(c *spec.Container, ctr *container) probe.Target {
	return probe.Target{
		ID: runtime.ContainerID{ID: w.id, Name: c.Name}, Container: *c, Address: w.address(),
		Adopted: !ctr.startedByUs, Since: ctr.since, Health: probe.Health{Started: ctr.Started, Ready: ctr.Ready, Leads: ctr.Led.Leads, Term: ctr.Led.Term},
	}
}

// address is where the member is reached: in the network of the host the address that this has now.
func (w *subject) address() netip.Addr {
	if now, err := netip.ParseAddr(w.c.Node.HostIP); err == nil && w.life.Member.HostNetwork {
		return now
	}
	return w.life.Member.Address
}

// takeHookEnds takes in which hooks have returned, but for those of containers that have ended.
func (w *observer) takeHookEnds() {
	for _, e := range w.hookEnds {
		w.takeHookEnd(e)
	}
	w.hookEnds = nil
}

// takeHookEnd takes in that a hook has returned. A postStart hook that failed has its container end.
func (w *observer) takeHookEnd(e hookEnd) {
	ctr, ok := w.containers[e.container]
	if !ok || ctr.hook != e.run {
		return // another began since, or the container has ended
	}
	ctr.endHook()
	switch {
	case e.run.kind == step.RunStepDown:
		w.steppedDown(ctr, e.err)
	case e.run.kind == step.RunPreStop:
		ctr.Hooks.PreStop = true
		if e.err != nil {
			w.preStopFailed(ctr, e.err.Error())
		}
	case e.err == nil:
		ctr.Hooks.PostStart = true
	default:
		ctr.unhealthy, ctr.Cause, ctr.Message = true, causes.FailedPostStartHook, "its postStart hook failed: "+e.err.Error()
		w.log.Warn("postStart hook failed", "token", w.token, "container", e.container, "err", e.err)
	}
	w.saveState()
}

// beginEnd: a container is to end. What ran before an end that did not come, for an agent died
// meanwhile and the container did well again, does not count for this one.
func (w *subject) beginEnd(ctr *container) {
	if ctr.Hooks.PreStop || ctr.Hooks.Signalled {
		ctr.Hooks.PreStop, ctr.Hooks.Signalled = false, false
		w.saveState()
	}
}

// preStopFailed notes that a preStop hook failed; why its container was given up stays known.
func (w *subject) preStopFailed(ctr *container, why string) {
	why = "its preStop hook failed: " + why
	if ctr.unhealthy {
		why = ctr.Message + "; " + why
	} else {
		ctr.Cause = causes.FailedPreStopHook
	}
	ctr.Message = why
	w.log.Warn("preStop hook failed", "token", w.token, "container", ctr.status.ID.Name, "reason", why)
}

// signalAfterHook asks a container to end whose preStop hook is over. It has at least leastGrace.
func (w *actor) signalAfterHook(ctx context.Context, id runtime.ContainerID, ctr *container) error {
	if err := ignoreGone(w.c.Runtime.Signal(ctx, id, w.stopSignal(id.Name, ctr), false)); err != nil {
		return err
	}
	w.preStopOver(ctr)
	least := w.c.Now().Add(leastGrace)
	switch {
	case w.order != step.OrderStop && ctr.deadline.Before(least):
		ctr.deadline = least
	case w.order == step.OrderStop && w.stopAt.Before(least):
		w.setStopAt(least)
	}
	w.saveState()
	w.keepState()
	w.dirty = true
	return nil
}

// preStopOver notes that a container was asked to end after its preStop hook.
func (w *subject) preStopOver(ctr *container) {
	if !ctr.Hooks.PreStop {
		w.preStopFailed(ctr, "it did not return within terminationGracePeriodSeconds")
	}
	ctr.endHook()
	ctr.Hooks.Signalled = true
}

// setStopAt sets when the grace of a stop is over, also for an agent after this one.
func (w *subject) setStopAt(at time.Time) {
	w.stopAt, w.state.StopAt = at, w.c.Clock()+at.Sub(w.c.Now())
	w.saveState()
}

// graceLeft is what is left of the grace of a stop that an agent before this one began.
func (w *subject) graceLeft() time.Duration {
	if w.state.StopAt == 0 {
		return w.grace()
	}
	return max(0, w.state.StopAt-w.c.Clock())
}

// beginHealth prepares the probes of a container that runs, and begins them when its postStart hook
// has returned; until then it is not ready.
func (w *observer) beginHealth(ctx context.Context, c *spec.Container, ctr *container) {
	ctr.beginProbe = func() { w.probe(ctx, c, ctr) }
	if w.awaitsPostStart(c, ctr) {
		w.takeHealth(ctr, probe.Health{Message: "waiting for its postStart hook"})
	}
	w.probeAfterHook(c, ctr)
}

func (w *observer) probeAfterHook(c *spec.Container, ctr *container) {
	if ctr.beginProbe == nil || ctr.unhealthy || w.awaitsPostStart(c, ctr) {
		return
	}
	ctr.beginProbe()
	ctr.beginProbe = nil
}

// preStopTrouble is which container's preStop hook failed; "": none.
func (w *subject) preStopTrouble() string {
	for _, name := range slices.Sorted(maps.Keys(w.containers)) {
		if ctr := w.containers[name]; ctr.Cause == causes.FailedPreStopHook {
			return w.inContainer(name, ctr.Message)
		}
	}
	return ""
}

// stopSignal is what the container is asked to end with: that of the template, or its image's
// STOPSIGNAL, as in Kubernetes.
func (w *subject) stopSignal(name string, ctr *container) int {
	if c := w.template(name); c != nil && c.Lifecycle != nil && c.Lifecycle.StopSignal != nil {
		if n, ok := spec.SignalNumber(*c.Lifecycle.StopSignal); ok {
			return n
		}
	}
	return cmp.Or(ctr.status.StopSignal, sigterm)
}
