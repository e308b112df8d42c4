package spec

import "iter"

// ContainerRole is the part that a container has in the start of its member.
type ContainerRole string

// The roles.
const (
	RoleMain    ContainerRole = ""        // one of containers: it runs for the whole life, and starts when all of initContainers have passed
	RoleInit    ContainerRole = "Init"    // one of initContainers: it must exit with 0 before the next one starts
	RoleSidecar ContainerRole = "Sidecar" // one of initContainers with restartPolicy Always: it runs beside the containers
)

// RestartAlways makes a sidecar of an init container.
const RestartAlways = "Always"

// Role of c, which is one of initContainers.
func (c *Container) Role() ContainerRole {
	if c.RestartPolicy != nil && *c.RestartPolicy == RestartAlways {
		return RoleSidecar
	}
	return RoleInit
}

// All are the init containers and then the containers, in the order in which they start.
func (s *MemberSpec) All() iter.Seq2[*Container, ContainerRole] {
	return func(yield func(*Container, ContainerRole) bool) {
		for i := range s.InitContainers {
			if c := &s.InitContainers[i]; !yield(c, c.Role()) {
				return
			}
		}
		for i := range s.Containers {
			if !yield(&s.Containers[i], RoleMain) {
				return
			}
		}
	}
}

// Lasting are those that run for the whole life: sidecars and containers.
func (s *MemberSpec) Lasting() iter.Seq[*Container] {
	return func(yield func(*Container) bool) {
		for c, role := range s.All() {
			if role != RoleInit && !yield(c) {
				return
			}
		}
	}
}

// MemoryLimit is what the limits of the containers' memory come to, in bytes, counted as Requests
// are; one without a limit counts for nothing. 0: none has one.
func (s *MemberSpec) MemoryLimit() int64 {
	return s.requested(func(r ResourceRequirements) int64 { q := r.Limits["memory"]; return q.Value() })
}

// Requests are what the members ask for, in millicores and bytes: the most that is needed at
// any moment of a start. That is the sum of containers and sidecars, or what an init
// container and the sidecars before it need, if that is more.
func (s *MemberSpec) Requests() (cpuMillis, memoryBytes int64) {
	return s.requested(func(r ResourceRequirements) int64 { return r.Requests["cpu"].Milli }),
		s.requested(func(r ResourceRequirements) int64 { q := r.Requests["memory"]; return q.Value() })
}

func (s *MemberSpec) requested(of func(ResourceRequirements) int64) int64 {
	var lasting, most int64
	for c, role := range s.All() {
		switch n := of(c.Resources); role {
		case RoleInit:
			most = max(most, lasting+n)
		default:
			lasting += n
		}
	}
	return max(most, lasting)
}
