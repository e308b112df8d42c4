package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/spec"
)

// rewatchAfter keeps a watch that ends at once from spinning.
const rewatchAfter = 200 * time.Millisecond

// box is one container of the life, over all its restarts in place.
type box struct {
	ContainerState
	seen   step.State
	status runtime.Status
	image  bool // present, as far as this worker knows
	// broken: it was created but could not be started.
	broken bool
	unborn bool      // it was lost between its creation and the first look that saw it run
	ours   bool      // started by this worker, not adopted
	since  time.Time // it was seen running since
	// crowded: it was seen since to have been refused a process.
	crowded time.Time
	mute    time.Time // its logger was seen dead since; zero: it is not
	due     time.Time // its back-off, which lasted wait, is over
	wait    time.Duration
	// unhealthy: its probes gave it up; it was asked to end, until deadline.
	unhealthy bool
	deadline  time.Time

	watching  chan struct{} // closed when the watch ended
	rewatch   time.Time
	stopWatch context.CancelFunc // ends watch and probes
}

// box returns the box of a container, with what an agent before this one kept.
func (w *Worker) box(name string) *box {
	b, ok := w.boxes[name]
	if !ok {
		b = &box{ContainerState: w.state.Containers[name]}
		w.boxes[name] = b
	}
	return b
}

func (b *box) over() bool { return b.seen == step.Exited || b.seen == step.Lost }

// clear: no such container stands here.
func (b *box) clear() {
	b.unwatch()
	b.seen, b.status, b.broken, b.unhealthy, b.deadline = step.Absent, runtime.Status{}, false, false, time.Time{}
	b.unborn = false
}

func (b *box) unwatch() {
	if b.stopWatch != nil {
		b.stopWatch()
	}
	b.stopWatch, b.watching = nil, nil
}

// see takes in what the runtime says of a container of the life, or of a spent one
// that is still to be cleared away.
func (w *Worker) see(ctx context.Context, b *box, st runtime.Status) {
	if st.Refused > b.status.Refused {
		b.crowded = w.c.Now()
	}
	b.status = st
	if st.Token != w.token {
		b.unwatch()
		b.seen, b.due = step.Exited, time.Time{}
		return
	}
	switch st.State {
	case runtime.Running:
		b.Attempt = st.Attempt
		if b.seen != step.Running {
			b.seen, b.since, b.broken = step.Running, w.c.Now(), false
		}
		w.hear(b)
		return
	case runtime.Created:
		b.seen = step.Created
		if b.broken {
			b.seen = step.Exited
		}
		b.Attempt = max(b.Attempt, st.Attempt)
		return
	}
	b.unborn = b.seen == step.Created || b.seen == step.Lost && b.unborn
	b.seen = step.Exited
	if st.State != runtime.Exited {
		b.seen, st.Exit = step.Lost, runtime.Exit{Unknown: true}
	}
	b.unwatch()
	switch {
	case st.Attempt >= b.Attempt:
		b.Attempt = st.Attempt
		w.countEnd(b, w.endOf(ctx, b, st), st.Exit)
	case b.due.IsZero() && b.Streak > 1: // counted by the agent before this one
		b.wait = backoff.After(w.c.Tuning.CrashFirst, w.c.Tuning.CrashMost, b.Streak-1)
		b.due = w.c.Now().Add(b.wait)
	}
}

// ending says why a container ended: a word and a sentence.
type ending struct {
	cause   spec.Cause
	message string
}

func (w *Worker) ending(b *box, st runtime.Status) ending {
	switch {
	case b.unhealthy:
		return ending{spec.CauseUnhealthy, b.Message}
	case st.Exit.Unknown:
		return ending{spec.CauseLost, "it ended, and its exit code is not known"}
	case st.Exit.OOM && !w.limited(st.ID.Name):
		return ending{spec.CauseOOMKilled, "it was killed by the kernel, for the members of this host together used all the memory they may; " +
			"it has no limit of its own: write resources.limits.memory for those that use most, or move members away"}
	case st.Exit.OOM:
		return ending{spec.CauseOOMKilled, "it used more memory than its limit and was killed by the kernel; raise resources.limits.memory, or let it use less"}
	}
	return ending{spec.CauseExited, fmt.Sprintf("exited with code %d", st.Exit.Code)}
}

// limited: the container has a limit of memory of its own.
func (w *Worker) limited(name string) bool {
	c := w.container(name)
	if c == nil {
		return true
	}
	_, has := c.Resources.Limits["memory"]
	return has
}

// countEnd counts the end of an attempt: the first restart is at once, those after
// it wait longer and longer. Under an order to stop nothing is counted.
func (w *Worker) countEnd(b *box, e ending, exit runtime.Exit) {
	b.Exit = nil
	if !exit.Unknown && e.cause != spec.CauseStartError {
		code := exit.Code
		b.Exit = &code
	}
	b.Cause, b.Message = e.cause, e.message
	b.Started, b.Ready, b.unhealthy, b.deadline = false, false, false, time.Time{}
	if w.order == step.OrderStop {
		return
	}
	if !b.since.IsZero() && w.c.Now().Sub(b.since) >= w.c.Tuning.CrashReset {
		b.Streak = 0
	}
	b.since = time.Time{}
	b.wait = 0
	if b.Streak > 0 {
		b.wait = backoff.After(w.c.Tuning.CrashFirst, w.c.Tuning.CrashMost, b.Streak)
		if b.Cause == spec.CauseExited || b.Cause == spec.CauseLost {
			b.Cause = spec.CauseCrashLoop
		}
	}
	b.Streak++
	b.Attempt++
	b.due = w.c.Now().Add(b.wait)
	w.saveState()
	w.log.Info("container ended", "token", w.token, "reason", e.message)
}

// waitMessage tells of the last end and how long the next start waits.
func (b *box) waitMessage(now time.Time) string {
	if !b.due.After(now) {
		return b.Message
	}
	return fmt.Sprintf("%s, %d times in a row; the next start waits %s", b.Message, b.Streak, b.wait)
}

// watchAll has every running container of the life watched and probed.
func (w *Worker) watchAll(ctx context.Context) {
	if w.away || w.life == nil || w.standing != step.Open {
		return
	}
	for i := range w.life.Template.Spec.Containers {
		c := &w.life.Template.Spec.Containers[i]
		b := w.box(c.Name)
		if b.seen != step.Running {
			continue
		}
		if b.stopWatch == nil {
			var sub context.Context
			sub, b.stopWatch = context.WithCancel(ctx)
			w.probe(sub, c, b)
			w.watch(sub, c.Name, b)
			continue
		}
		select {
		case <-b.watching:
			if b.rewatch.IsZero() {
				b.rewatch = w.c.Now().Add(rewatchAfter)
			}
			if !w.c.Now().Before(b.rewatch) {
				// The probes go on; only the watch begins anew.
				sub, cancel := context.WithCancel(ctx)
				stop := b.stopWatch
				b.stopWatch = func() { stop(); cancel() }
				w.watch(sub, c.Name, b)
			}
		default:
		}
	}
}

// watch wakes the worker when the container ends or the runtime goes away.
func (w *Worker) watch(ctx context.Context, name string, b *box) {
	done := make(chan struct{})
	b.watching, b.rewatch = done, time.Time{}
	w.back.Watch(ctx, runtime.ContainerID{ID: w.id, Name: name}, func() {
		close(done)
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.kicks.containers = true
		w.wake.Notify()
	})
}

// probe starts the probes of a running container; one without probes is ready.
func (w *Worker) probe(ctx context.Context, c *spec.Container, b *box) {
	if w.c.Prober == nil && w.c.Background == nil || (c.StartupProbe == nil && c.ReadinessProbe == nil && c.LivenessProbe == nil) {
		w.takeHealth(b, probe.Health{Started: true, Ready: true})
		return
	}
	target := probe.Target{
		ID: runtime.ContainerID{ID: w.id, Name: c.Name}, Container: *c, Address: w.life.Member.Address,
		Adopted: !b.ours, Health: probe.Health{Started: b.Started, Ready: b.Ready},
	}
	w.back.Probe(ctx, target, func(h probe.Health) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if ctx.Err() != nil { // of an attempt that is over
			return
		}
		if w.kicks.health == nil {
			w.kicks.health = map[string]probe.Health{}
		}
		w.kicks.health[c.Name] = h
		w.wake.Notify()
	})
}

// takeHealth takes in what probes say. A container given up stays given up.
func (w *Worker) takeHealth(b *box, h probe.Health) {
	if b.seen != step.Running || b.unhealthy {
		return
	}
	if h.Failed {
		b.unhealthy, h.Ready = true, false
	}
	changed := b.Started != h.Started || b.Ready != h.Ready
	b.Started, b.Ready, b.Cause, b.Message = h.Started, h.Ready, "", h.Message
	if !h.Ready && h.Message != "" {
		b.Cause = spec.CauseNotReady
	}
	if changed {
		w.saveState()
	}
}
