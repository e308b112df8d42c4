package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// rewatchAfter keeps a watch that ends at once from spinning.
const rewatchAfter = 200 * time.Millisecond

// crashReset is how long a container must run for its restarts before to be forgotten.
const crashReset = 10 * time.Minute

// container is one of the containers of the life, over all its restarts in place.
type container struct {
	ContainerState
	seen   step.State
	status runtime.Status
	image  bool // present, as far as this worker knows
	// broken: it was created but could not be started.
	broken          bool
	diedDuringStart bool      // it was lost between its creation and the first look that saw it run
	startedByUs     bool      // started by this worker, not adopted
	since           time.Time // it was seen running since
	// processRefused: when it was seen since to have been refused a process.
	processRefused time.Time
	loggerDead     time.Time // its logger was seen dead since; zero: it is not
	due            time.Time // its back-off, which lasted wait, is over
	wait           time.Duration
	// unhealthy: its probes gave it up, or its postStart hook did; it was asked to end, until deadline.
	// gaveUp is which probe, if one did.
	unhealthy bool
	gaveUp    probe.Kind
	deadline  time.Time
	pull      *pullRun // of its image, beside the turns; nil: none
	hook      *hookRun // that this worker began and that has not returned; nil: none

	watching   chan struct{} // closed when the watch ended
	rewatch    time.Time
	stopWatch  context.CancelFunc // ends watch and probes
	beginProbe func()             // begins its probes, once, when its postStart hook has returned; nil: they were
}

// container returns what is known of a container of the life, with what an agent before this one kept.
func (w *subject) container(name string) *container {
	ctr, ok := w.containers[name]
	if !ok {
		ctr = &container{ContainerState: w.state.Containers[name]}
		w.containers[name] = ctr
	}
	return ctr
}

func (c *container) over() bool { return c.seen == step.Exited || c.seen == step.Lost }

// clear: there is no such container here.
func (c *container) clear() {
	c.unwatch()
	c.seen, c.status, c.broken, c.unhealthy, c.gaveUp, c.deadline = step.Absent, runtime.Status{}, false, false, "", time.Time{}
	c.diedDuringStart = false
}

func (c *container) unwatch() {
	if c.stopWatch != nil {
		c.stopWatch()
	}
	c.stopWatch, c.watching, c.beginProbe = nil, nil, nil
	c.endHook()
}

// takeStatus takes in what the runtime says of a container of the life, or of a spent one
// that is still to be cleared away.
func (w *observer) takeStatus(ctx context.Context, ctr *container, st runtime.Status) {
	if st.Refused > ctr.status.Refused {
		ctr.processRefused = w.c.Now()
	}
	ctr.status = st
	if st.Token != w.token {
		ctr.unwatch()
		ctr.seen, ctr.due = step.Exited, time.Time{}
		return
	}
	switch st.State {
	case runtime.Running:
		followChange(w, ctr, st)
		ctr.Attempt = st.Attempt
		if ctr.seen != step.Running {
			ctr.seen, ctr.since, ctr.broken = step.Running, w.c.Now(), false
		}
		w.checkLogger(ctr)
		return
	case runtime.Created:
		ctr.seen = step.Created
		if ctr.broken {
			ctr.seen = step.Exited
		}
		ctr.Attempt = max(ctr.Attempt, st.Attempt)
		return
	}
	ctr.diedDuringStart = ctr.seen == step.Created || ctr.seen == step.Lost && ctr.diedDuringStart
	ctr.seen = step.Exited
	if st.State != runtime.Exited {
		ctr.seen, st.Exit = step.Lost, runtime.Exit{Unknown: true}
	}
	ctr.unwatch()
	switch {
	case w.takeCompleted(ctr, st):
	case st.Attempt >= ctr.Attempt && ctr.EndBy != 0 && w.order != step.OrderStop:
		endedForChange(w, ctr, st)
	case st.Attempt >= ctr.Attempt:
		ctr.Attempt = st.Attempt
		w.countEnd(ctr, w.ending(ctx, ctr, st), st.Exit)
	case ctr.due.IsZero() && ctr.Streak > 1: // counted by the agent before this one
		ctr.wait = backoff.After(w.c.Tuning.CrashFirst, w.c.Tuning.CrashMost, ctr.Streak-1)
		ctr.due = w.c.Now().Add(ctr.wait)
	}
}

// ending says why a container ended: a word and a sentence.
type ending struct {
	cause   causes.Cause
	message string
}

func (w *observer) ending(ctx context.Context, ctr *container, st runtime.Status) ending {
	switch {
	case ctr.unhealthy && ctr.Cause == causes.FailedPostStartHook:
		return ending{ctr.Cause, ctr.Message}
	case ctr.unhealthy:
		return ending{causes.Unhealthy, ctr.Message}
	case st.Exit.Unknown:
		return ending{causes.Lost, "it ended, and its exit code is not known"}
	case st.Exit.OOM && !w.limited(st.ID.Name):
		return ending{causes.OOMKilled, "it was killed by the kernel, for the members of this host together used all the memory they may; " +
			"it has no limit of its own: write resources.limits.memory for those that use most, or move members away"}
	case st.Exit.OOM:
		return ending{causes.OOMKilled, "it used more memory than its limit and was killed by the kernel; raise resources.limits.memory, or let it use less"}
	}
	return w.exited(ctx, st)
}

// limited: the container has a limit of memory of its own.
func (w *observer) limited(name string) bool {
	c := w.template(name)
	if c == nil {
		return true
	}
	_, has := c.Resources.Limits["memory"]
	return has
}

// countEnd counts the end of an attempt: the first restart is at once, those after
// it wait longer and longer. Under an order to stop nothing is counted.
func (w *subject) countEnd(ctr *container, e ending, exit runtime.Exit) {
	ctr.Exit = nil
	if !exit.Unknown && e.cause != causes.StartError {
		code := exit.Code
		ctr.Exit = &code
	}
	ctr.Cause, ctr.Message = e.cause, e.message
	ctr.forgetRun()
	if w.order == step.OrderStop {
		return
	}
	if !ctr.since.IsZero() && w.c.Now().Sub(ctr.since) >= crashReset {
		ctr.Streak = 0
	}
	ctr.since = time.Time{}
	ctr.wait = 0
	if ctr.Streak > 0 {
		ctr.wait = backoff.After(w.c.Tuning.CrashFirst, w.c.Tuning.CrashMost, ctr.Streak)
		if ctr.Cause == causes.Exited || ctr.Cause == causes.Lost {
			ctr.Cause = causes.CrashLoop
		}
	}
	ctr.Streak++
	ctr.Attempt++
	ctr.due = w.c.Now().Add(ctr.wait)
	w.saveState()
	w.log.Info("container ended", "token", w.token, "reason", e.message)
}

// forgetRun: what was known of a run that has ended counts no more.
func (c *container) forgetRun() {
	c.Started, c.Ready, c.unhealthy, c.gaveUp, c.deadline = false, false, false, "", time.Time{}
	c.Hooks, c.Claim, c.EndBy = HooksDone{}, records.Claim{}, 0
}

// waitMessage says how the last attempt ended, and how long the next start waits.
func (c *container) waitMessage(now time.Time) string {
	if !c.due.After(now) {
		return c.Message
	}
	return fmt.Sprintf("%s, %d times in a row; the next start waits %s", c.Message, c.Streak, c.wait)
}

// watchAll has every running container of the life watched and probed.
func (w *observer) watchAll(ctx context.Context) {
	if w.runtimeDown || w.standing != step.Open {
		return
	}
	for c, role := range w.all() {
		ctr := w.container(c.Name)
		if ctr.seen != step.Running {
			continue
		}
		if ctr.stopWatch == nil {
			var sub context.Context
			sub, ctr.stopWatch = context.WithCancel(ctx)
			if role == spec.RoleInit { // it has no probes and hooks, and is never ready
				ctr.Cause, ctr.Message = "", ""
			} else {
				w.beginHealth(sub, c, ctr)
				w.followSelf(sub, c.Name)
			}
			w.watch(sub, c.Name, ctr)
			continue
		}
		w.probeAfterHook(c, ctr)
		select {
		case <-ctr.watching:
			if ctr.rewatch.IsZero() {
				ctr.rewatch = w.c.Now().Add(rewatchAfter)
			}
			if !w.c.Now().Before(ctr.rewatch) {
				// The probes continue; only the watch is started again.
				sub, cancel := context.WithCancel(ctx)
				stop := ctr.stopWatch
				ctr.stopWatch = func() { stop(); cancel() }
				w.watch(sub, c.Name, ctr)
			}
		default:
		}
	}
}

// watch wakes the worker when the container ends or the runtime goes away.
func (w *observer) watch(ctx context.Context, name string, ctr *container) {
	done := make(chan struct{})
	ctr.watching, ctr.rewatch = done, time.Time{}
	w.background.Watch(ctx, runtime.ContainerID{ID: w.id, Name: name}, func() {
		close(done)
		if ctx.Err() != nil {
			return
		}
		w.note(func(e *pendingEvents) { e.containers = true })
	})
}

// probe starts the probes of a running container; one without probes is ready.
func (w *observer) probe(ctx context.Context, c *spec.Container, ctr *container) {
	if w.c.Prober == nil && w.c.Background == nil || (c.StartupProbe == nil && c.ReadinessProbe == nil && c.LivenessProbe == nil && c.LeaderProbe == nil) {
		w.takeHealth(ctr, probe.Health{Started: true, Ready: true})
		return
	}
	w.background.Probe(ctx, w.target(c, ctr), func(h probe.Health) {
		w.note(func(e *pendingEvents) {
			if ctx.Err() != nil { // of an attempt that is over
				return
			}
			if e.health == nil {
				e.health = map[string]probe.Health{}
			}
			e.health[c.Name] = h
		})
	})
}

// takeHealth takes in what probes say. A container given up stays given up.
func (w *observer) takeHealth(ctr *container, h probe.Health) {
	if ctr.seen != step.Running || ctr.unhealthy || ctr.EndBy != 0 {
		return
	}
	if h.Failed {
		ctr.unhealthy, ctr.gaveUp, h.Ready = true, h.By, false
	}
	led := records.Claim{Leads: h.Leads, Term: h.Term}
	changed := ctr.Started != h.Started || ctr.Ready != h.Ready || ctr.Led != led
	ctr.Started, ctr.Ready, ctr.Led = h.Started, h.Ready, led
	if ctr.Cause != causes.FailedPreStopHook { // which is kept: it is being stopped
		ctr.Cause, ctr.Message = "", h.Message
		if !h.Ready && h.Message != "" {
			ctr.Cause = causes.NotReady
		}
	}
	if changed {
		w.saveState()
	}
	if h.Started && w.role(ctr.status.ID.Name) == spec.RoleSidecar {
		w.pass(ctr)
	}
}
