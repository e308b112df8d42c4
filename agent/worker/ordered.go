package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
)

// OrderedState is what a worker keeps of the hook that the server ordered last. Without it, after a loss of the run
// directory's file, the hook is run once more.
type OrderedState struct {
	hooks.HookResult
	// Since is when the node learnt of the order, on the boot clock.
	Since time.Duration `json:"since"`
	// Last is the newest job that was started in this life. It stays when its order is gone, for an older copy of the life may have that order.
	Last spec.Sequence `json:"last,omitzero"`
}

// orderedRun is one run of it.
type orderedRun struct {
	id     spec.Sequence
	cancel context.CancelCauseFunc
}

// orderedEnd says that a run has ended, and why it failed; nil: it succeeded. broken: it was broken off, for its order was gone.
type orderedEnd struct {
	run    *orderedRun
	err    error
	broken bool
}

// errLate breaks off a run that takes longer than its hook's time-out.
var errLate = errors.New("it did not return within timeoutSeconds and was broken off")

// hookOrder is the hook that the life is to run; nil: none, or the life is to end.
func (w *subject) hookOrder() *hooks.HookOrder {
	if w.life == nil || w.standing != step.Open || w.order != step.OrderRun {
		return nil
	}
	return w.life.Member.Hook
}

// followOrder takes in which hook is ordered now, and says how far it is. A run of another order is broken off, and waited for.
func (w *observer) followOrder() (o step.Ordered) {
	order, state := w.hookOrder(), &w.state.Ordered
	if w.ordered != nil && (order == nil || w.ordered.id != order.ID) {
		w.ordered.breakOff()
	}
	if w.order != step.OrderRun || w.life == nil {
		return o // what is shown, and reported, stays
	}
	o.Untold = w.state.Reason != w.life.Member.StopReason
	if order == nil {
		if none := (OrderedState{Last: state.Last}); *state != none {
			w.takeOrder(none)
		}
		return o
	}
	if state.ID != order.ID {
		w.takeOrder(OrderedState{HookResult: hooks.HookResult{ID: order.ID}, Since: w.c.Clock(), Last: state.Last})
	}
	w.followJob(order)
	if !state.Overdue && w.c.Clock()-state.Since >= order.Hook.Timeout() {
		state.Overdue = true
		w.saveState()
	}
	o.Container = order.Hook.Container
	c := w.template(o.Container)
	if c == nil && state.Message == "" {
		state.Message = fmt.Sprintf("it is to run in the container %s, which the member's revision does not have", o.Container)
		w.saveState()
	}
	switch {
	case w.ordered != nil:
		o.State = step.HookRunning
	case c == nil || state.Done || order.Job != nil && state.ended() || w.c.Now().Before(w.orderedDue):
	case w.container(c.Name).seen == step.Running && !w.container(c.Name).unhealthy && !w.awaitsPostStart(c, w.container(c.Name)):
		o.State = step.HookDue
	}
	return o
}

// takeOrder takes in another order, or that there is none, also for an agent after this one.
func (w *observer) takeOrder(s OrderedState) {
	w.state.Ordered, w.orderedDue = s, time.Time{}
	w.saveState()
	if err := w.saveLife(); err != nil {
		w.log.Warn("life not kept", "token", w.token, "err", err)
	}
}

// untilOverdue is the time until the present order is overdue; 0: it is, or there is none.
func untilOverdue(w *subject) time.Duration {
	order := w.hookOrder()
	if order == nil || w.state.Ordered.Overdue || w.state.Ordered.ID != order.ID {
		return 0
	}
	return max(time.Millisecond, w.state.Ordered.Since+order.Hook.Timeout()-w.c.Clock())
}

// breakOff ends what runs of a hook; it counts as running until it has ended. r may be nil.
func (r *orderedRun) breakOff() {
	if r != nil {
		r.cancel(context.Canceled)
	}
}

// beginOrdered begins the ordered hook, which ends with ctx or when it is late.
func (w *actor) beginOrdered(ctx context.Context, container string) {
	order, c := w.hookOrder(), w.template(container)
	if order == nil || c == nil || w.ordered != nil {
		return
	}
	if order.Job != nil && !w.keepBegun() {
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	run := &orderedRun{order.ID, cancel}
	w.ordered = run
	late := w.c.after(order.Hook.Timeout(), func() { cancel(errLate) })
	w.log.Info("ordered hook started", "token", w.token, "container", container, "reason", order.Kind)
	w.background.Order(ctx, w.target(c, w.container(container)), order.Hook, orderedEnv(w.life, order), func(err error) {
		late()
		end := orderedEnd{run, err, false}
		if err != nil && ctx.Err() != nil {
			end.err = context.Cause(ctx)
			end.broken = !errors.Is(end.err, errLate)
		}
		w.note(func(e *pendingEvents) { e.ordered = append(e.ordered, end) })
	})
}

// takeOrderedEnds takes in that runs have ended. One that succeeded has, also when its end came too late to be kept from it.
func (w *observer) takeOrderedEnds(ends []orderedEnd) {
	for _, e := range ends {
		if w.ordered != e.run {
			continue
		}
		w.ordered.cancel(nil)
		w.ordered = nil
		state := &w.state.Ordered
		switch {
		case state.ID != e.run.id || e.broken && !state.Begun:
			continue
		case e.err == nil:
			state.Done, state.Message = true, ""
		case state.Begun:
			w.takeJobEnd(e)
		default:
			state.Failures++
			state.Message = e.err.Error()
			w.orderedDue = w.c.Now().Add(backoff.After(w.c.Tuning.RetryFirst, w.c.Tuning.RetryMost, state.Failures))
			w.log.Warn("ordered hook failed", "token", w.token, "err", e.err)
		}
		w.saveState()
	}
}

// showReason has the member read why it is to leave, or nothing when it is to stay after all.
func (w *actor) showReason() error {
	reason := w.life.Member.StopReason
	if err := w.c.Files.ShowTermination(w.id, reason); err != nil {
		return err
	}
	w.state.Reason = reason
	w.saveState()
	return nil
}

// orderedEnv are the variables that tell a hook what it is about.
func orderedEnv(life *records.Life, order *hooks.HookOrder) []string {
	env := []string{"STEAD_HOOK=" + string(order.Kind)}
	if order.Job != nil {
		return append(env, jobEnv(order)...)
	}
	g := order.Gone
	if g == nil {
		return env
	}
	env = append(env,
		"STEAD_GONE="+g.ID.MemberName(), "STEAD_GONE_ORDINAL="+strconv.Itoa(g.ID.Ordinal), "STEAD_GONE_TOKEN="+g.Token.String(),
		"STEAD_GONE_FQDN="+records.MemberFQDN(g.ID, g.Service, life.Domain))
	if g.Address.IsValid() {
		env = append(env, "STEAD_GONE_ADDRESS="+g.Address.String())
	}
	return env
}
