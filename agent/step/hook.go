package step

import (
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Hooks is how far the lifecycle hooks of a container that runs are.
type Hooks struct {
	// PostStart is HookNone when there is none, or it has returned: never HookOver.
	PostStart HookState
	// PreStop is HookNone when there is none, or the container was asked to end after it.
	PreStop HookState
	// StepDown is HookNone when the member does not lead, is not to stop for what others stay for, or has stepped down:
	// never HookOver.
	StepDown HookState
}

// HookState is how far one hook is.
type HookState string

// The states of a hook.
const (
	HookNone    HookState = ""
	HookDue     HookState = "Due"     // to be begun when its time comes; also one that an earlier agent began and did not see return
	HookRunning HookState = "Running" // it has not returned
	HookOver    HookState = "Over"    // it has returned, or its time is over
)

// stepsDown is the next operation for a member that leads and is to stop: all that there is to run first has returned, or taken
// its time, before anything else of the stop begins. false: nothing is left of it.
func (s Seen) stepsDown() (Op, bool) {
	wait := false
	for _, c := range s.Containers {
		switch {
		case c.State != Running:
		case c.Hooks.StepDown == HookDue:
			if op := s.hold(Op{Kind: RunStepDown, Container: c.Name}); op.Kind != Wait {
				return op, true
			}
		case c.Hooks.StepDown == HookRunning:
			wait = true
		}
	}
	return waitOp(causes.Grace, "it steps down"), wait
}

// preStop is the next operation of the preStop hook of a container that is to end: its hook
// first, then the signal. false: it waits, or was asked to end.
func (c *Container) preStop() (Op, bool) {
	switch {
	case c.State != Running:
		return Op{}, false // it has ended already: nothing is run
	case c.Hooks.PreStop == HookDue:
		return Op{Kind: RunPreStop, Container: c.Name}, true
	case c.Hooks.PreStop == HookOver:
		return Op{Kind: SignalContainer, Container: c.Name}, true
	}
	return Op{}, false
}

// preStops is that of all containers, but for what waits for its back-off. The hooks of sidecars run
// at the same time, as in Kubernetes; the signal after them comes in their turn (sidecarToStop).
func (s Seen) preStops() (Op, bool) {
	for i := range s.Containers {
		c := &s.Containers[i]
		if op, ok := c.preStop(); ok && (op.Kind == RunPreStop || c.Role != spec.RoleSidecar) {
			if due := s.hold(op); due.Kind != Wait {
				return due, true
			}
		}
	}
	return Op{}, false
}

// postStarting reports whether the postStart hook of a container has not returned: no other one
// starts before, as in Kubernetes.
func (s Seen) postStarting() (Op, bool) {
	for _, c := range s.Containers {
		if c.State == Running && c.Hooks.PostStart != HookNone {
			return waitOp(causes.NotReady, "container "+c.Name+": its postStart hook has not returned; the next container starts when it has"), true
		}
	}
	return Op{}, false
}
