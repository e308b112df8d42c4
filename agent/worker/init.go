package worker

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/spec"
)

// all are the descriptions of the life's containers in the order in which they start; none while it
// is not known. Each turn goes through them some ten times: it returns the same function always, so that
// the compiler can inline it, and nothing is allocated.
func (w *subject) all() iter.Seq2[*spec.Container, spec.ContainerRole] { return w.described().All() }

func (w *subject) described() *spec.MemberSpec {
	if w.life == nil {
		return &spec.MemberSpec{}
	}
	return &w.life.Template.Spec
}

// template is the description of a container of the life; nil: not known.
func (w *subject) template(name string) *spec.Container {
	for c := range w.all() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// role is that of a container of the life; of one that is not known RoleMain.
func (w *subject) role(name string) spec.ContainerRole {
	for c, role := range w.all() {
		if c.Name == name {
			return role
		}
	}
	return spec.RoleMain
}

// pass notes that an init container ended with 0, or that a sidecar has started: what comes
// after it may begin, for as long as the life lasts. The container's end is seen in the
// runtime until that is kept (performOn), so that no crash of the agent runs it again.
func (w *subject) pass(ctr *container) {
	if ctr.Passed {
		return
	}
	ctr.Passed = true
	w.saveState()
}

// takeCompleted takes in that an init container ended with 0; false: it did not.
func (w *observer) takeCompleted(ctr *container, st runtime.Status) bool {
	if st.State != runtime.Exited || st.Exit.Unknown || st.Exit.Code != 0 || w.role(st.ID.Name) != spec.RoleInit {
		return false
	}
	if !ctr.Passed {
		w.log.Info("init container completed", "token", w.token, "container", st.ID.Name)
	}
	w.pass(ctr)
	ctr.Attempt, ctr.Exit, ctr.Cause, ctr.Message = st.Attempt, new(int), "", ""
	ctr.Streak, ctr.due, ctr.wait = 0, time.Time{}, 0
	return true
}

// takePassed takes from what is here that what comes before it has passed, also if what was
// kept of that is lost: nothing begins before.
func (w *observer) takePassed() {
	if w.life == nil || len(w.life.Template.Spec.InitContainers) == 0 {
		return
	}
	var order []*container
	var roles []spec.ContainerRole
	for c, role := range w.all() {
		order, roles = append(order, w.container(c.Name)), append(roles, role)
	}
	later := false
	for i, ctr := range slices.Backward(order) {
		if later && roles[i] != spec.RoleMain {
			w.pass(ctr)
		}
		later = later || ctr.isHere() && ctr.status.Token == w.token
	}
}

// isHere: there is such a container on this node.
func (c *container) isHere() bool { return c.seen != step.Absent && c.seen != "" }

// isDone: an init container has passed and is removed: nothing is to be seen of it any more.
func (w *subject) isDone(name string) bool {
	ctr := w.container(name)
	return ctr.Passed && ctr.seen == step.Absent && w.role(name) == spec.RoleInit
}

// inContainer names the container that a message is about.
func (w *subject) inContainer(name, message string) string {
	return inContainer(name, w.role(name), message)
}

func inContainer(name string, role spec.ContainerRole, message string) string {
	if message == "" {
		return ""
	}
	return title(name, role) + ": " + message
}

// title is a container as messages name it.
func title(name string, role spec.ContainerRole) string {
	switch role {
	case spec.RoleInit:
		return "init container " + name
	case spec.RoleSidecar:
		return "sidecar " + name
	}
	return "container " + name
}

// signalSidecar asks a sidecar of a life that is being stopped to end. It has at least leastGrace, also
// when the grace is over before its turn comes; the containers have no part in that time.
func (w *actor) signalSidecar(ctx context.Context, id runtime.ContainerID, ctr *container) error {
	if !w.c.Now().Before(w.stopAt) {
		for _, name := range slices.Sorted(maps.Keys(w.containers)) {
			if w.containers[name].seen != step.Running || w.role(name) == spec.RoleSidecar {
				continue
			}
			if err := ignoreGone(w.c.Runtime.Signal(ctx, runtime.ContainerID{ID: w.id, Name: name}, sigkill, true)); err != nil {
				return err
			}
		}
	}
	if err := ignoreGone(w.c.Runtime.Signal(ctx, id, w.stopSignal(id.Name, ctr), false)); err != nil {
		return err
	}
	if w.hooks(w.template(id.Name), ctr).PreStop != step.HookNone {
		w.preStopOver(ctr)
	}
	ctr.Asked, ctr.deadline = true, w.c.Now().Add(leastGrace)
	if w.stopAt.After(ctr.deadline) {
		ctr.deadline = w.stopAt
	}
	w.saveState()
	w.keepState()
	w.dirty = true
	return nil
}

// resumeStop gives sidecars that the agent before this one asked to end their least time.
func (w *observer) resumeStop() {
	for name := range w.state.Containers { // none was looked at yet
		if ctr := w.container(name); ctr.Asked && ctr.deadline.IsZero() {
			ctr.deadline = w.c.Now().Add(leastGrace)
		}
	}
}
