package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// look says what is wanted and what is seen, and adopts what it finds.
func (w *observer) look(ctx context.Context) (step.Wanted, step.Seen) {
	before := w.life
	reported := w.choose()
	w.takeChange(before)
	w.processesLeft = false
	w.takeEvents()
	s := step.Seen{Standing: w.standing, Told: reported}
	wanted := step.Wanted{Order: w.order}
	if reported { // it is over, and nothing is looked at any more
		return wanted, s
	}
	if w.standing == step.Spent {
		s.Empty = w.observeEmpty(ctx, s)
		w.processesLeft = !s.Empty
		return wanted, s
	}
	if w.life != nil {
		wanted.OtherBoot, wanted.Restored = w.life.Member.Boot != w.c.Boot, w.token.Epoch < w.c.Epoch()
	}
	if w.order == step.OrderStop {
		w.keepStop()
	}
	if w.state.Signalled && w.stopAt.IsZero() { // by the agent before this one
		w.stopAt = w.c.Now().Add(w.graceLeft())
		w.resumeStop()
	}
	if by := w.graceEnds(); by != w.stopBounded && w.state.Signalled { // once: leastGrace may lead beyond it
		w.stopBounded = by
		if w.stopAt.After(by) {
			w.setStopAt(by)
		}
	}
	w.lookAtContainers(ctx)
	w.takeHookEnds()
	w.endLateStepDowns()
	w.watchAll(ctx)
	s.Unknown, s.Strange = w.runtimeDown, w.unknownContainer
	s.Containers = w.seenContainers()
	s.Empty = w.observeEmpty(ctx, s)
	if w.order == step.OrderRun {
		s.Missing = w.missing()
	}
	s.Volumes, s.Sandbox, s.Network, s.Files = w.prepared.volumes, w.prepared.sandbox, w.prepared.network, w.prepared.files
	s.Signalled = w.state.Signalled
	s.GraceOver = !w.c.Now().Before(w.stopAt)
	s.Removed, s.Detached, s.Unpinned = !w.left.containers, !w.left.link, !w.left.sandbox
	s.Unmounted = !w.left.scratch && w.observeClean(ctx)
	s.Ordered = w.followOrder()
	s.Held = w.seenHeld()
	w.observeGuard(&s)
	return wanted, s
}

// choose picks the life to deal with, and says whether its end was reported.
func (w *observer) choose() bool {
	entry := w.c.Ledger.Look(w.id)
	m := step.Memory{Newest: entry.Newest, Open: entry.Open}
	for _, e := range entry.Ends {
		m.Ends = append(m.Ends, e.Token)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	token, standing, order := step.Choose(m, w.orders, func(t spec.Token) bool { return w.reportedEnds[t] })
	w.standing, w.order = standing, order
	if token != w.token {
		w.switchTo(token)
	}
	w.life = w.lives[token]
	for c := range w.all() {
		if !slices.Contains(w.names, c.Name) {
			w.names = append(w.names, c.Name)
		}
	}
	for t := range w.lives {
		if t != token && t != w.orders.Token {
			delete(w.lives, t)
		}
	}
	for _, t := range slices.SortedFunc(maps.Keys(w.unanswered), spec.Token.Compare) {
		w.answerOld(t)
	}
	return w.reportedEnds[token] || token.IsZero()
}

// switchTo starts to deal with another life; the caller holds the lock.
func (w *subject) switchTo(token spec.Token) {
	for _, ctr := range w.containers {
		ctr.unwatch()
		ctr.endPull()
	}
	w.ordered.breakOff()
	w.token, w.orderedDue = token, time.Time{}
	w.prepared, w.containers, w.held = prepared{}, map[string]*container{}, map[holdKey]*hold{}
	w.stopAt, w.stopBounded, w.dirty, w.observed, w.last, w.unknownContainer = time.Time{}, time.Time{}, true, false, nil, ""
	w.since = w.c.Clock()
	kept, ok := w.c.Files.LoadState(w.id)
	if !ok || kept.Token != token {
		kept = State{Token: token}
	}
	w.state, w.stateMoved = kept, false
}

// keepStop makes an order to stop outlast this agent.
func (w *observer) keepStop() {
	if w.life == nil {
		return
	}
	if w.life.Member.Goal != records.GoalStop {
		life := *w.life
		life.Member.Goal, life.Member.StopReason = records.GoalStop, records.ReasonReplace
		w.mu.Lock()
		w.lives[w.token], w.life = &life, &life
		w.mu.Unlock()
	}
	if err := w.saveLife(); err != nil {
		w.log.Warn("life not kept", "token", w.token, "err", err)
	}
}

func (w *observer) takeEvents() {
	w.mu.Lock()
	k := w.events
	w.events = pendingEvents{}
	w.mu.Unlock()
	if k.containers {
		w.dirty = true
	}
	if k.repair {
		w.prepared.network, w.prepared.files = false, false
	}
	if k.files {
		w.tryRepaired()
		w.retryPulls()
		if w.rewriteFiles.IsZero() {
			w.rewriteFiles = w.filesWritten.Add(w.c.Tuning.Renew)
		}
	}
	if !w.rewriteFiles.IsZero() && !w.c.Now().Before(w.rewriteFiles) {
		w.prepared.files, w.rewriteFiles = false, time.Time{}
		delete(w.held, holdKey{step.WriteFiles, ""})
	}
	if k.images {
		maps.DeleteFunc(w.held, func(key holdKey, _ *hold) bool { return key.op == step.EnsureImage })
	}
	for name, h := range k.health {
		if ctr, ok := w.containers[name]; ok {
			w.takeHealth(ctr, h)
		}
	}
	for name, c := range k.claims {
		if ctr, ok := w.containers[name]; ok && ctr.seen == step.Running {
			ctr.Claim = c
			w.saveState()
		}
	}
	w.takeOrderedEnds(k.ordered)
	takePullEnds(w, k.pulls)
	if len(k.hooks) > 0 { // a hook fails when its container ends: that is looked at first
		w.hookEnds, w.dirty = append(w.hookEnds, k.hooks...), true
	}
}

// lookAtContainers asks the runtime, when something may have changed.
func (w *observer) lookAtContainers(ctx context.Context) {
	if !w.dirty && w.c.Now().Sub(w.lookedAt) < w.c.Tuning.Look {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, operationTime)
	defer cancel()
	w.lookedAt = w.c.Now()
	entry := w.c.Ledger.Look(w.id)
	strange := ""
	for _, name := range w.names {
		if w.isDone(name) {
			continue
		}
		st, err := w.c.Runtime.Status(ctx, runtime.ContainerID{ID: w.id, Name: name})
		switch {
		case errors.Is(err, runtime.ErrNotFound):
			w.container(name).clear()
			continue
		case err != nil:
			w.setRuntimeDown(true)
			return
		}
		w.left.containers = true
		if st.Token != w.token && !entry.Spent(st.Token) {
			strange = fmt.Sprintf("container %s of token %s is on this node, whose ledger does not know that token", name, st.Token)
			continue
		}
		w.takeStatus(ctx, w.container(name), st)
	}
	w.takePassed()
	w.setRuntimeDown(false)
	w.unknownContainer, w.dirty, w.observed = strange, false, true
}

func (w *subject) setRuntimeDown(down bool) {
	if down != w.runtimeDown {
		if down {
			w.log.Warn("container runtime unavailable")
		} else {
			w.log.Info("container runtime available")
		}
	}
	w.runtimeDown = down
	if down {
		w.dirty = true
	}
}

// seenContainers are those of the life; of a life whose template is not known, all
// that are here.
func (w *observer) seenContainers() []step.Container {
	out := make([]step.Container, 0, len(w.names))
	if w.life == nil {
		for _, name := range w.names {
			out = append(out, w.seenContainer(name, nil, spec.RoleMain))
		}
		return out
	}
	for c, role := range w.all() {
		out = append(out, w.seenContainer(c.Name, c, role))
	}
	return out
}

// seenContainer is one of them; c describes it, nil: it is not known.
func (w *observer) seenContainer(name string, c *spec.Container, role spec.ContainerRole) step.Container {
	ctr, now := w.container(name), w.c.Now()
	out := step.Container{
		Name: name, Role: role, Passed: ctr.Passed, Asked: ctr.Asked, State: ctr.seen, Loaded: ctr.status.Loaded, Unborn: ctr.diedDuringStart,
		Left:  ctr.seen == step.Exited && ctr.status.Left,
		Image: ctr.image, Due: !now.Before(ctr.due), Cause: ctr.Cause, Message: inContainer(name, role, ctr.waitMessage(now)),
		Unhealthy: ctr.unhealthy, Ending: !ctr.deadline.IsZero(), Overdue: !now.Before(ctr.deadline), Hooks: w.hooks(c, ctr),
	}
	out.Pulling, out.PullText = ctr.pulls(now)
	out.PullText = inContainer(name, role, out.PullText)
	seeChange(w, &out, c, ctr)
	return out
}

// observeEmpty looks at the host itself, where it matters; an error is no proof.
func (w *observer) observeEmpty(ctx context.Context, s step.Seen) bool {
	up := slices.ContainsFunc(s.Containers, func(c step.Container) bool { return c.State == step.Running })
	if up && w.order == step.OrderRun {
		return false
	}
	empty, err := w.c.Runtime.Empty(ctx, w.id)
	if err != nil {
		w.log.Warn("processes not seen", "token", w.token, "err", err)
		return false
	}
	return empty
}

// observeClean looks whether scratch mounts are gone, where it matters.
func (w *observer) observeClean(ctx context.Context) bool {
	if w.standing == step.Open && w.order != step.OrderStop {
		return true
	}
	clean, err := w.c.Volumes.Clean(ctx, w.id)
	w.left.scratch = err != nil || !clean
	return !w.left.scratch
}

// grace is the time between the stop signal and the kill.
func (w *subject) grace() time.Duration {
	if w.life == nil {
		return unknownGrace
	}
	return time.Duration(w.life.Member.GraceSeconds) * time.Second
}

// graceOf is that of one container: what the probe that gave it up says, unless the life is being stopped.
func (w *subject) graceOf(c *spec.Container, ctr *container) time.Duration {
	if w.order == step.OrderStop || !ctr.unhealthy {
		return w.grace()
	}
	return time.Duration(ctr.gaveUp.Grace(c, int64(w.grace()/time.Second))) * time.Second
}

// unknownGrace is for a life whose description is lost: Kubernetes' default.
const unknownGrace = 30 * time.Second

// endCause is the ledger's word on how the token ended.
func (w *subject) endCause() causes.Cause {
	for _, e := range w.c.Ledger.Look(w.id).Ends {
		if e.Token == w.token {
			return e.Cause
		}
	}
	return causes.Stopped
}
