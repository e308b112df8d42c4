package worker

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
)

// Changes in place (SEMANTICS Part 3, In place). The newest order that was taken in a life is in the life itself, Member.Change, beside
// the template that it brought: both are kept as one document.

// takeOrKeep has a life bring the images and bounds of its containers only with a newer order than that of the life had, which is
// the same one as it was: what an older copy of it says of them, one of a restored store, or one without an order, does not count.
// another: it brings a newer order.
func takeOrKeep(life, had *records.Life) (another bool) {
	order, taken := life.Member.Change, had.Member.Change
	if order != nil && (taken == nil || order.ID.Compare(taken.ID) > 0) {
		return true
	}
	life.Member.Change = taken
	s := &life.Template.Spec
	s.Containers, s.InitContainers = slices.Clone(s.Containers), slices.Clone(s.InitContainers)
	for was := range had.Template.Spec.All() {
		for c := range s.All() {
			if c.Name == was.Name {
				c.Image, c.Resources = was.Image, was.Resources
			}
		}
	}
	return false
}

// takeChange takes a newer order when the life is kept with it: what begins again by it does so also under the next agent. Until
// then the life is what it was before.
func (w *observer) takeChange(before *records.Life) {
	if w.order != step.OrderRun || w.standing != step.Open { // by an order to run the life is known
		return
	}
	order := w.life.Member.Change
	if order == nil || order.ID.Compare(w.state.Change.ID) <= 0 {
		return
	}
	if err := w.saveLife(); err != nil {
		w.log.Warn("change in place not taken: the life cannot be kept with it", "token", w.token, "err", err)
		w.life = cmp.Or(before, w.life)
		return
	}
	w.state.Change = inplace.ChangeResult{ID: order.ID, Revision: order.Revision}
	w.saveState()
	w.log.Info("change in place ordered", "token", w.token, "revision", order.Revision)
	maps.DeleteFunc(w.held, func(key holdKey, _ *hold) bool { return key.op == step.EnsureImage || key.op == step.ResizeContainer })
	for c := range w.all() {
		ctr := w.container(c.Name)
		ctr.endPull()
		ctr.image = false
		if ctr.isOutdated(c) || ctr.isUnfit(w.token, c) { // what comes may be the repair
			ctr.due, ctr.Streak = w.c.Now(), 0
		}
	}
}

// inChange: the containers are to be what the order says that was taken.
func inChange(w *subject) bool {
	if w.life == nil || w.state.Change.Refused != "" {
		return false
	}
	order := w.life.Member.Change
	return order != nil && order.ID == w.state.Change.ID
}

// isOutdated: the container that is here has another image than the life's template wants.
func (c *container) isOutdated(want *spec.Container) bool {
	return c.status.Image != "" && registry.FullName(c.status.Image) != registry.FullName(want.Image)
}

// isUnfit: the container that is here may use something else than the life's template wants.
func (c *container) isUnfit(life spec.Token, want *spec.Container) bool {
	s := &c.status
	return s.Token == life && (s.Resources == nil || *s.Resources != files.Resources(want))
}

// seeChange says what is to change of a container; c describes it, which is known while there is a change. Init containers run once, as
// they were.
func seeChange(w *observer, out *step.Container, c *spec.Container, ctr *container) {
	out.Changing = ctr.Changing
	if !inChange(w.subject) || out.Role == spec.RoleInit {
		return
	}
	out.Outdated, out.Unfit = ctr.isOutdated(c), ctr.isUnfit(w.token, c)
	out.Leads = w.claim().Leads && hasStepDown(w.life)
}

func hasStepDown(life *records.Life) bool {
	for c := range life.Template.Spec.All() {
		if c.StepDown != nil {
			return true
		}
	}
	return false
}

// endContainer asks a container to end that is to begin again. One that an agent before this one asked for a change in place has the
// rest of its grace, and what returned of its hooks counts.
func (w *actor) endContainer(ctx context.Context, c *spec.Container, ctr *container) error {
	grace := w.graceOf(c, ctr)
	switch {
	case ctr.EndBy != 0:
		grace = max(0, ctr.EndBy-w.c.Clock())
	case ctr.unhealthy:
		w.beginEnd(ctr)
	default:
		w.beginEnd(ctr)
		ctr.endHook() // that came after its start
		ctr.EndBy, ctr.Changing, ctr.Ready = max(1, w.c.Clock()+grace), true, false
		w.saveState()
		w.keepState() // first: an end that nobody knows the reason of is a crash
		w.log.Info("container asked to end for a change in place", "token", w.token, "container", c.Name)
	}
	ctr.deadline = w.c.Now().Add(grace)
	if ctr.Hooks.Signalled || w.hooks(c, ctr).PreStop != step.HookNone {
		return nil // its hook comes first
	}
	err := ignoreGone(w.c.Runtime.Signal(ctx, runtime.ContainerID{ID: w.id, Name: c.Name}, w.stopSignal(c.Name, ctr), false))
	switch {
	case ctr.EndBy == 0:
	case err == nil:
		ctr.Hooks.Signalled = true
		w.saveState()
	default:
		ctr.deadline = time.Time{} // it is asked again
	}
	return err
}

// followChange takes in that a container runs: what follows its end for a change, unless it has not ended yet.
func followChange(w *observer, ctr *container, st runtime.Status) {
	if ctr.Changing && (ctr.EndBy == 0 || st.Attempt > ctr.Attempt) {
		ctr.EndBy, ctr.Changing = 0, false
		w.saveState()
	}
}

// endedForChange takes in that a container has ended for a change in place: that is no crash, and nothing waits.
func endedForChange(w *observer, ctr *container, st runtime.Status) {
	ctr.forgetRun()
	ctr.Attempt, ctr.Changes = st.Attempt+1, ctr.Changes+1
	ctr.Exit, ctr.Cause, ctr.Message, ctr.Streak = nil, "", "", 0
	ctr.since, ctr.wait, ctr.due = time.Time{}, 0, w.c.Now()
	w.saveState()
	w.log.Info("container ended for a change in place", "token", w.token, "container", st.ID.Name)
}

// resize has a container use what the life's template says, while it runs.
func (w *actor) resize(ctx context.Context, c *spec.Container) error {
	err := w.c.Runtime.Resize(ctx, runtime.ContainerID{ID: w.id, Name: c.Name}, files.Resources(c))
	w.dirty = true
	if errors.Is(err, runtime.ErrRefused) {
		refuseChange(w, c.Name, err.Error())
		return nil
	}
	return ignoreGone(err)
}

// refusalBytes bounds what is reported of a refusal.
const refusalBytes = 500

// refuseChange notes that the change cannot be done in this life. What was changed stays.
func refuseChange(w *actor, container, why string) {
	if len(why) > refusalBytes {
		why = strings.ToValidUTF8(why[:refusalBytes], "")
	}
	w.state.Change.Refused = w.inContainer(container, why)
	w.saveState()
	w.log.Warn("change in place refused", "token", w.token, "reason", w.state.Change.Refused)
}

// updateChange notes that all containers run, or ran, as the order says.
func (w *reporter) updateChange() {
	if w.state.Change.Done || !inChange(w.subject) {
		return
	}
	for c, role := range w.all() {
		ctr := w.container(c.Name)
		ran := ctr.seen == step.Running || ctr.seen == step.Exited && !ctr.broken || ctr.seen == step.Lost && !ctr.diedDuringStart
		if role != spec.RoleInit && (!ran || ctr.EndBy != 0 || ctr.status.Token != w.token || ctr.isOutdated(c) || ctr.isUnfit(w.token, c)) {
			return
		}
	}
	w.state.Change.Done = true
	w.saveState()
	w.log.Info("change in place done", "token", w.token, "revision", w.state.Change.Revision)
}

// imageOf is the image of a container that is here, else that of the template.
func (c *container) imageOf(want *spec.Container) string {
	if c.isOutdated(want) {
		return c.status.Image
	}
	return want.Image
}
