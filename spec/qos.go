package spec

import "github.com/stead-project/stead/spec/scalar"

// QOSClass is Kubernetes' class of a member, by what its containers request and are limited to.
type QOSClass string

// The classes.
const (
	QOSGuaranteed QOSClass = "Guaranteed" // each container is limited in CPU and memory, and requests as much
	qosBurstable  QOSClass = "Burstable"
	QOSBestEffort QOSClass = "BestEffort" // no container requests or is limited in either
)

// QOS is the class of a template's members, as Kubernetes' GetPodQOS has it.
func (s *MemberSpec) QOS() QOSClass {
	guaranteed, any := true, false
	for c := range s.All() {
		for _, name := range []string{"cpu", "memory"} {
			request, limit := c.Resources.Request(name), c.Resources.Limits[name]
			any = any || request.Milli > 0 || limit.Milli > 0
			guaranteed = guaranteed && limit.Milli > 0 && request == limit
		}
	}
	switch {
	case !any:
		return QOSBestEffort
	case guaranteed:
		return QOSGuaranteed
	}
	return qosBurstable
}

// Request is what is requested of a resource: its limit, if only that is given.
func (r *ResourceRequirements) Request(name string) scalar.Quantity {
	if q, given := r.Requests[name]; given {
		return q
	}
	return r.Limits[name]
}
