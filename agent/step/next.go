package step

import (
	"slices"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Next returns the one operation that is to be done now.
func Next(w Wanted, s Seen) Op {
	switch s.Standing {
	case Spent:
		if !s.Empty && !s.Told { // SAFETY S13: whatever it is, it is seen to be gone first
			return waitOp(causes.ProcessLeft, "processes of the member are left here, although it has no life here; its end is reported when they are gone")
		}
		return tell(s)
	case Closed:
		if op, left := clear(s); left && !s.Told {
			return op
		}
		return tell(s)
	}
	if s.Standing == Open && s.Expired {
		return s.hold(Op{Kind: Expire}) // whatever is ordered
	}
	switch w.Order {
	case OrderStop:
		return end(s)
	case OrderRun:
		if s.Standing == Fresh {
			return begin(w, s)
		}
		return run(s)
	}
	return Op{Kind: Nothing}
}

// tell reports the end of the token once each time it is asked for. What is kept of its
// life goes first, which may fail.
func tell(s Seen) Op {
	if s.Told {
		return Op{Kind: Nothing}
	}
	return s.hold(Op{Kind: ReportOver})
}

// begin opens the token, after everything of an earlier life is gone. A life that
// was assigned for another boot, or before a restore, is refused for good.
func begin(w Wanted, s Seen) Op {
	if w.OtherBoot || w.Restored {
		return s.hold(Op{Kind: Refuse})
	}
	if op, left := clear(s); left {
		return op
	}
	if s.Unconfirmed {
		return waitOp(causes.Unconfirmed, "the member is guarded (nodeLoss: Replace), and no server has confirmed this node within its bound; it starts when one does")
	}
	if op, stop := s.unwatched(); stop {
		return op
	}
	return s.hold(Op{Kind: OpenToken})
}

// run brings the containers up and keeps them up: the first that something can be
// done for. What waits is reported only when nothing can be done.
func run(s Seen) Op {
	if op, stop := s.blind(); stop {
		return op
	}
	wait := Op{Kind: Nothing}
	for _, c := range s.Containers {
		switch op := s.hold(nextFor(s, c)); {
		case op.Kind != Wait && op.Kind != Nothing:
			return op
		case wait.Kind == Nothing:
			wait = op
		}
		if op, stop := s.initializing(c); stop {
			if wait.Kind == Nothing {
				wait = op
			}
			break
		}
	}
	if op, ok := surroundings(s); ok && s.anyRunning() {
		if op := s.hold(op); op.Kind != Wait || wait.Kind == Nothing {
			return op
		}
	}
	if op, ok := s.ordered(); ok && (op.Kind != Wait || wait.Kind == Nothing) {
		return op
	}
	return wait
}

// nextFor is what one container needs, or Nothing.
func nextFor(s Seen, c Container) Op {
	if c.Role == spec.RoleInit && c.Passed {
		return passed(s, c)
	}
	switch c.State {
	case Running:
		return watch(s, c)
	case Created:
		if c.Outdated || c.Unfit {
			return Op{Kind: RemoveContainer, Container: c.Name}
		}
	case Exited, Lost:
		return again(s, c)
	case Absent:
		if s.Missing != "" {
			return waitOp(causes.ConfigMissing, s.Missing)
		}
		if op, ok := c.pull(); ok {
			return op
		}
	}
	if op, ok := preparations(s); ok {
		return op
	}
	if !s.anyRunning() && !s.Empty && !s.loaded() {
		return waitOp(causes.ProcessLeft, "processes of this member are still there although no container runs")
	}
	if op, stop := s.unwatched(); stop {
		return op
	}
	if op, wait := s.postStarting(); wait {
		return op
	}
	if c.State == Absent {
		return Op{Kind: CreateContainer, Container: c.Name}
	}
	return Op{Kind: StartContainer, Container: c.Name}
}

// preparations are what is there before a container is created.
func preparations(s Seen) (Op, bool) {
	if !s.Volumes {
		return Op{Kind: EnsureVolumes}, true
	}
	return surroundings(s)
}

// surroundings are the sandbox, the network and the files: also repaired and
// renewed while containers run.
func surroundings(s Seen) (Op, bool) {
	switch {
	case !s.Sandbox:
		return Op{Kind: EnsureSandbox}, true
	case !s.Network:
		return Op{Kind: AttachNetwork}, true
	case !s.Files:
		return Op{Kind: WriteFiles}, true
	}
	return Op{}, false
}

// watch ends a container that its probes, its postStart hook or a change in place gave up, so that it starts again.
func watch(s Seen, c Container) Op {
	switch {
	case c.Ending:
	case c.Unhealthy, c.Changing:
		return Op{Kind: EndContainer, Container: c.Name}
	case c.Hooks.PostStart == HookDue:
		return Op{Kind: RunPostStart, Container: c.Name}
	default:
		return s.change(c)
	}
	if op, ok := c.preStop(); ok {
		return op
	}
	if c.Overdue {
		return Op{Kind: KillContainer, Container: c.Name}
	}
	if c.Cause == causes.FailedPostStartHook {
		return waitOp(c.Cause, c.Message)
	}
	if c.Changing {
		return waitOp(causes.NotReady, "container "+c.Name+": "+changing)
	}
	return waitOp(causes.Unhealthy, c.Message)
}

// again clears away a container that ended, so that it can be created again: after
// its back-off, and when the host itself shows that it has no process left. What
// an end that was seen left behind is killed, and so is what a start that a crash broke
// off left; where the runtime merely lost sight of a container that ran, its processes
// are left alone (SAFETY S13).
func again(s Seen, c Container) Op {
	if c.Left {
		return Op{Kind: KillLeft, Container: c.Name} // at once, as where they have no pid namespace in common
	}
	if !s.anyRunning() && !s.Empty {
		if !s.anyLost() {
			return Op{Kind: KillAll}
		}
		return waitOp(causes.ProcessLeft, "the runtime lost track of a container whose processes still run; restart the member to replace them")
	}
	if !c.Due {
		return waitOp(c.Cause, c.Message)
	}
	return Op{Kind: RemoveContainer, Container: c.Name}
}

// end ends a life by order: stepDown, hooks, signal, grace, kill, clear, close. It never turns back.
func end(s Seen) Op {
	if op, stop := s.blind(); stop {
		return op
	}
	if s.anyRunning() && !s.Empty {
		if !s.Signalled {
			if op, first := s.stepsDown(); first {
				return op
			}
			return s.hold(Op{Kind: SignalStop})
		}
		if op, ok := s.preStops(); ok {
			return op
		}
		if name, found := s.sidecarToStop(); found {
			return s.hold(Op{Kind: SignalSidecar, Container: name})
		}
		if !s.GraceOver || s.sidecarHasTime() {
			return waitOp(causes.Grace, "asked to stop")
		}
	}
	if op, left := clear(s); left {
		return op
	}
	return s.hold(Op{Kind: CloseToken})
}

// clear removes, without grace, all that is left of any life of the identity, in
// the order in which a life needs it; false when the host shows nothing any more.
func clear(s Seen) (Op, bool) {
	if op, stop := s.blind(); stop {
		return op, true
	}
	switch {
	case !s.Empty:
		return s.hold(Op{Kind: KillAll}), true
	case !s.Removed:
		return s.hold(Op{Kind: RemoveContainers}), true
	case !s.Detached:
		return s.hold(Op{Kind: Detach}), true
	case !s.Unmounted:
		return s.hold(Op{Kind: RemoveScratch}), true
	case !s.Unpinned:
		return s.hold(Op{Kind: RemoveSandbox}), true
	}
	return Op{}, false
}

// blind reports that nothing can be done safely now.
func (s Seen) blind() (Op, bool) {
	if s.Strange != "" {
		return waitOp(causes.Stray, s.Strange), true
	}
	if s.Unknown {
		return waitOp(causes.RuntimeUnavailable, "containerd does not answer; running members are not affected"), true
	}
	return Op{}, false
}

// unwatched reports that nothing of the life may begin yet.
func (s Seen) unwatched() (Op, bool) {
	if s.Unwatched {
		return waitOp(causes.Unwatched, "the member is guarded (nodeLoss: Replace), and this node's watchdog does not guard it yet; nothing of it is started before"), true
	}
	return Op{}, false
}

// hold turns an operation whose back-off is not over into a Wait.
func (s Seen) hold(op Op) Op {
	for _, h := range s.Held {
		if h.Op == op.Kind && h.Container == op.Container {
			return waitOp(h.Cause, h.Message)
		}
	}
	return op
}

func (s Seen) anyRunning() bool { return s.any(Running) }

// anyLost: one that ran was lost, and may run on.
func (s Seen) anyLost() bool {
	return slices.ContainsFunc(s.Containers, func(c Container) bool { return c.State == Lost && !c.Unborn })
}

// loaded reports that processes may be there because a container waits for its
// start, which a crash broke off; what is lost may have some, too.
func (s Seen) loaded() bool {
	return !s.any(Lost) && slices.ContainsFunc(s.Containers, func(c Container) bool { return c.State == Created && c.Loaded })
}

func (s Seen) any(state State) bool {
	return slices.ContainsFunc(s.Containers, func(c Container) bool { return c.State == state })
}

func waitOp(cause causes.Cause, message string) Op {
	return Op{Kind: Wait, Cause: cause, Message: message}
}
