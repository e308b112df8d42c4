package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// look says what is wanted and what is seen, and adopts what it finds.
func (w *Worker) look(ctx context.Context) (step.Wanted, step.Seen) {
	told := w.choose()
	w.haunted = false
	w.takeKicks()
	s := step.Seen{Standing: w.standing, Told: told}
	wanted := step.Wanted{Order: w.order}
	if told { // it is over, and nothing is looked at any more
		return wanted, s
	}
	if w.standing == step.Spent {
		s.Empty = w.seeEmpty(ctx, s)
		w.haunted = !s.Empty
		return wanted, s
	}
	if w.life != nil {
		wanted.OtherBoot, wanted.Restored = w.life.Member.Boot != w.c.Boot, w.token.Epoch < w.c.Epoch()
	}
	if w.order == step.OrderStop {
		w.keepStop()
	}
	if w.state.Signalled && w.stopAt.IsZero() { // by the agent before this one
		w.stopAt = w.c.Now().Add(w.grace())
	}
	w.lookAtContainers(ctx)
	w.watchAll(ctx)
	s.Unknown, s.Strange = w.away, w.strange
	s.Containers = w.seenContainers()
	s.Empty = w.seeEmpty(ctx, s)
	if w.order == step.OrderRun {
		s.Missing = w.missing()
	}
	s.Volumes, s.Sandbox, s.Network, s.Files = w.prepared.volumes, w.prepared.sandbox, w.prepared.network, w.prepared.files
	s.Signalled = w.state.Signalled
	s.GraceOver = !w.c.Now().Before(w.stopAt)
	s.Removed, s.Detached, s.Unpinned = !w.left.containers, !w.left.link, !w.left.sandbox
	s.Unmounted = !w.left.scratch && w.seeClean(ctx)
	s.Held = w.seenHeld()
	w.seeGuard(&s)
	return wanted, s
}

// choose picks the life to deal with and reports whether its end was told.
func (w *Worker) choose() bool {
	entry := w.c.Ledger.Look(w.id)
	m := step.Memory{Newest: entry.Newest, Open: entry.Open}
	for _, e := range entry.Ends {
		m.Ends = append(m.Ends, e.Token)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	token, standing, order := step.Choose(m, w.orders, func(t spec.Token) bool { return w.told[t] })
	w.standing, w.order = standing, order
	if token != w.token {
		w.turnTo(token)
	}
	w.life = nil
	if life, ok := w.lives[token]; ok {
		w.life = &life
		for i := range life.Template.Spec.Containers {
			if name := life.Template.Spec.Containers[i].Name; !slices.Contains(w.names, name) {
				w.names = append(w.names, name)
			}
		}
	}
	for t := range w.lives {
		if t != token && t != w.orders.Token {
			delete(w.lives, t)
		}
	}
	for _, t := range slices.SortedFunc(maps.Keys(w.asked), spec.Token.Compare) {
		w.answerOld(t)
	}
	return w.told[token] || token.IsZero()
}

// turnTo begins to deal with another life; the caller holds the lock.
func (w *Worker) turnTo(token spec.Token) {
	for _, b := range w.boxes {
		b.unwatch()
	}
	w.token = token
	w.prepared, w.boxes, w.held = prepared{}, map[string]*box{}, map[holdKey]*hold{}
	w.stopAt, w.dirty, w.sighted, w.last, w.strange = time.Time{}, true, false, nil, ""
	w.turned = w.c.Clock()
	kept, ok := w.c.Files.LoadState(w.id)
	if !ok || kept.Token != token {
		kept = State{Token: token}
	}
	w.state = kept
}

// keepStop makes an order to stop outlast this agent.
func (w *Worker) keepStop() {
	if w.life == nil {
		return
	}
	if w.life.Member.Goal != records.GoalStop {
		w.mu.Lock()
		life := w.lives[w.token]
		life.Member.Goal, life.Member.StopReason = records.GoalStop, records.ReasonReplace
		w.lives[w.token], w.life = life, &life
		w.mu.Unlock()
	}
	if err := w.c.Files.SaveLife(w.life); err != nil {
		w.log.Warn("life not kept", "token", w.token, "err", err)
	}
}

func (w *Worker) takeKicks() {
	w.mu.Lock()
	k := w.kicks
	w.kicks = kicks{}
	w.mu.Unlock()
	if k.containers {
		w.dirty = true
	}
	if k.confirmed && w.prepared.files {
		if err := w.c.Files.ShowConfirmed(w.id, files.Uptime(w.c.Confirmed())); err != nil {
			w.log.Warn("confirmation not written", "err", err)
		}
	}
	if k.repair {
		w.prepared.network, w.prepared.files = false, false
	}
	if k.files {
		w.tryRepaired()
		if w.renew.IsZero() {
			w.renew = w.wrote.Add(w.renewAfter())
		}
	}
	if !w.renew.IsZero() && !w.c.Now().Before(w.renew) {
		w.prepared.files, w.renew = false, time.Time{}
		delete(w.held, holdKey{step.WriteFiles, ""})
	}
	w.mu.Lock()
	w.renewing = !w.renew.IsZero() // no longer before what is known is read
	w.mu.Unlock()
	if k.images {
		maps.DeleteFunc(w.held, func(key holdKey, _ *hold) bool { return key.op == step.EnsureImage })
	}
	for name, h := range k.health {
		if b, ok := w.boxes[name]; ok {
			w.takeHealth(b, h)
		}
	}
}

// renewAfter is how long the files that were written may stand. All members of a set
// write all of it: together that grows with the square of their number.
func (w *Worker) renewAfter() time.Duration {
	picture, _ := w.c.Picture(w.id.Ref())
	return w.c.Tuning.Renew * time.Duration(min(1+len(picture.Peers)/50, 10))
}

// lookAtContainers asks the runtime, when something may have changed.
func (w *Worker) lookAtContainers(ctx context.Context) {
	if !w.dirty && w.c.Now().Sub(w.looked) < w.c.Tuning.Look {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.c.Tuning.Operation)
	defer cancel()
	w.looked = w.c.Now()
	entry := w.c.Ledger.Look(w.id)
	strange := ""
	for _, name := range w.names {
		st, err := w.c.Runtime.Status(ctx, runtime.ContainerID{ID: w.id, Name: name})
		switch {
		case errors.Is(err, runtime.ErrNotFound):
			w.box(name).clear()
			continue
		case err != nil:
			w.setAway(true)
			return
		}
		w.left.containers = true
		if st.Token != w.token && !entry.Spent(st.Token) {
			strange = fmt.Sprintf("container %s of token %s stands here, which this node's ledger does not know", name, st.Token)
			continue
		}
		w.see(ctx, w.box(name), st)
	}
	w.setAway(false)
	w.strange, w.dirty, w.sighted = strange, false, true
}

func (w *Worker) setAway(away bool) {
	if away != w.away {
		w.log.Info("runtime reached", "reached", !away)
	}
	w.away = away
	if away {
		w.dirty = true
	}
}

// seenContainers are those of the life; of a life whose template is not known, all
// that stand here.
func (w *Worker) seenContainers() []step.Container {
	names := w.names
	if w.life != nil {
		names = nil
		for i := range w.life.Template.Spec.Containers {
			names = append(names, w.life.Template.Spec.Containers[i].Name)
		}
	}
	now := w.c.Now()
	out := make([]step.Container, 0, len(names))
	for _, name := range names {
		b := w.box(name)
		out = append(out, step.Container{
			Name: name, State: b.seen, Loaded: b.status.Loaded, Unborn: b.unborn, Image: b.image, Due: !now.Before(b.due),
			Cause: b.Cause, Message: inContainer(name, b.waitMessage(now)), Unhealthy: b.unhealthy,
			Ending: !b.deadline.IsZero(), Overdue: !now.Before(b.deadline),
		})
	}
	return out
}

// seeEmpty looks at the host itself, where it matters; an error is no proof.
func (w *Worker) seeEmpty(ctx context.Context, s step.Seen) bool {
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

// seeClean looks whether scratch mounts are gone, where it matters.
func (w *Worker) seeClean(ctx context.Context) bool {
	if w.standing == step.Open && w.order != step.OrderStop {
		return true
	}
	clean, err := w.c.Volumes.Clean(ctx, w.id)
	w.left.scratch = err != nil || !clean
	return !w.left.scratch
}

// grace is the time between the stop signal and the kill.
func (w *Worker) grace() time.Duration {
	if w.life == nil {
		return unknownGrace
	}
	return time.Duration(w.life.Member.GraceSeconds) * time.Second
}

// unknownGrace is for a life whose description is lost: Kubernetes' default.
const unknownGrace = 30 * time.Second

// endCause is the ledger's word on how the token ended.
func (w *Worker) endCause() spec.Cause {
	for _, e := range w.c.Ledger.Look(w.id).Ends {
		if e.Token == w.token {
			return e.Cause
		}
	}
	return spec.CauseStopped
}
