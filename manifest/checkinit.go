package manifest

import (
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// initContainer checks what is special about one of initContainers: Kubernetes' rules.
func (c containerChecks) initContainer(at string, x *spec.Container) {
	if p := x.RestartPolicy; p != nil && *p != spec.RestartAlways {
		c.fail(at+".restartPolicy", scalar.Quote(*p)+" is not possible for an init container",
			"write Always, which makes a sidecar of it, or remove it: it is run again until it exits with 0")
		return
	}
	if x.Role() == spec.RoleSidecar {
		return
	}
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"lifecycle", x.Lifecycle != nil},
		{"stepDown", x.StepDown != nil},
		{"leaderProbe", x.LeaderProbe != nil},
		{"readinessProbe", x.ReadinessProbe != nil},
		{"livenessProbe", x.LivenessProbe != nil},
		{"startupProbe", x.StartupProbe != nil},
	} {
		if part.given {
			c.fail(at+"."+part.name, "an init container has none: what counts is that it exits with 0",
				"remove it, or write restartPolicy: Always if the container is to run beside the others")
		}
	}
}

// notInit checks one of containers for what only init containers have.
func (c containerChecks) notInit(at string, x *spec.Container) {
	if x.RestartPolicy != nil {
		c.fail(at+".restartPolicy", "only an init container has one",
			"remove it: a container that ends is always started again")
	}
}
