package plants

import (
	"slices"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/spec"
)

// partPlants are about what members are made of: init containers, sidecars and hooks (SEMANTICS).
var partPlants = []Plant{
	{Name: "starts-before-init-containers", Judges: "startup", Look: eachContainer(func(_ step.Wanted, _ *step.Seen, c *step.Container) { c.Passed = true })},
	{Name: "sees-no-failed-init-container", Judges: "startup", SeesNoFailure: true, Often: parts},
	{Name: "initializes-again", Judges: "startup", Look: eachContainer(func(_ step.Wanted, s *step.Seen, c *step.Container) {
		last := s.Containers[len(s.Containers)-1]
		c.Passed = c.Passed && !(c.Role == spec.RoleInit && last.State == step.Exited)
	}), Often: parts},
	{Name: "stops-sidecars-first", Judges: "stop", Look: eachContainer(func(w step.Wanted, s *step.Seen, c *step.Container) {
		runs := func(c step.Container) bool { return c.Role == spec.RoleSidecar && c.State == step.Running }
		if w.Order == step.OrderStop && s.Signalled && c.Role == spec.RoleMain && slices.ContainsFunc(s.Containers, runs) {
			c.State = step.Exited
		}
	}), Often: parts},
	{Name: "kills-within-the-grace", Judges: "stop", Look: func(_ step.Wanted, s *step.Seen) { s.GraceOver = true }, Often: parts},
	{Name: "kills-sidecars-at-once", Judges: "stop", Look: eachContainer(func(_ step.Wanted, _ *step.Seen, c *step.Container) { c.Overdue = true }), Often: parts},
	{Name: "waits-for-no-hook", Judges: "hooks", Look: eachContainer(func(_ step.Wanted, _ *step.Seen, c *step.Container) {
		if c.Hooks.PreStop != step.HookNone {
			c.Hooks.PreStop = step.HookOver
		}
	}), Often: parts},
	{Name: "hooks-return-at-once", Judges: "hooks", HooksReturnAtOnce: true, Often: parts},
	{Name: "forgets-its-hooks", Judges: "hooks", Keep: func(s *worker.State) {
		for name, c := range s.Containers {
			c.Hooks = worker.HooksDone{}
			s.Containers[name] = c
		}
	}, Often: parts},
}

var parts = []string{"parts", "crash-agent", "user", "sick"}

// eachContainer changes what a worker saw of each container.
func eachContainer(change func(step.Wanted, *step.Seen, *step.Container)) func(step.Wanted, *step.Seen) {
	return func(w step.Wanted, s *step.Seen) {
		for i := range s.Containers {
			change(w, s, &s.Containers[i])
		}
	}
}
