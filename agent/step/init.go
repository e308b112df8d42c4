package step

import (
	"slices"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// initializing reports that nothing after c may begin yet, and why: c is one of
// initContainers and has not passed. As in Kubernetes this holds until it has passed once in
// the life: a sidecar that is started again later holds up nothing.
func (s Seen) initializing(c Container) (Op, bool) {
	switch {
	case c.Role == spec.RoleMain || c.Passed:
		return Op{}, false
	case c.Role == spec.RoleInit:
		return waitOp(causes.Initializing, "init container "+c.Name+" is running; what comes after it waits until it has ended"), true
	case c.Message != "":
		return waitOp(causes.Initializing, c.Message), true
	}
	return waitOp(causes.Initializing, "sidecar "+c.Name+" is running; what comes after it waits for its startup probe"), true
}

// passed is what an init container needs that ended with 0: it is never run again in its
// life. What is kept of it in the runtime is removed, with what it left behind, before
// anything after it begins.
func passed(s Seen, c Container) Op {
	switch c.State {
	case Absent, Running:
		return Op{Kind: Nothing}
	}
	c.Due = true
	return again(s, c)
}

// sidecarToStop is the next sidecar that is to be sent the stop signal: they end in the reverse of
// their order, each when nothing after it and none of the containers runs any more, or, when the
// grace is over, all that are left at once. The preStop hook of one has its time before.
func (s Seen) sidecarToStop() (name string, found bool) {
	for _, c := range slices.Backward(s.Containers) {
		switch {
		case c.State != Running:
		case c.Role == spec.RoleSidecar && !c.Asked:
			return c.Name, c.Hooks.PreStop == HookNone || c.Hooks.PreStop == HookOver
		case !s.GraceOver:
			return "", false
		}
	}
	return "", false
}

// sidecarHasTime: a sidecar was sent the stop signal so late that it has not had its least time,
// as Kubernetes gives it beyond the grace.
func (s Seen) sidecarHasTime() bool {
	return slices.ContainsFunc(s.Containers, func(c Container) bool { return c.State == Running && c.Asked && !c.Overdue })
}
