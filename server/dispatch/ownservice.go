package dispatch

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

// ofItsOwn reports whether no set can tell of a service what nodes must know: it selects no members.
func ofItsOwn(s *records.ServiceRecord) bool { return len(s.Spec.Selected()) == 0 }

// serviceSnapshot is a service of its own as nodes shall see it; of one that there is not, or that sets tell
// of, that it is Gone.
func serviceSnapshot(seq spec.Sequence, ref spec.SetRef, s *records.ServiceRecord, endpoints []records.Endpoint) records.Snapshot {
	p := records.Snapshot{Sequence: seq, Ref: ref}
	switch {
	case s == nil || !ofItsOwn(s):
		p.Gone = true
	case s.Spec.IsAlias():
		p.Names = []records.DNSName{{Name: s.Name, ExternalName: s.Spec.ExternalName}}
	default:
		n := records.DNSName{Name: s.Name}
		if s.Address.IsValid() {
			n = nameOf(s, nil, false)
		}
		n.PublishNotReady, n.Endpoints = false, endpoints
		p.Names = []records.DNSName{n}
	}
	return p
}

// serviceEndpoints are those of a service that selects no members: of its Endpoints and of its EndpointSlices, each
// once. Those that end are among them while the service has an address and no other, as kube-proxy has it.
func serviceEndpoints(v cache.View, s *records.ServiceRecord) (out []records.Endpoint) {
	if s == nil || s.Spec.IsAlias() || !ofItsOwn(s) {
		return nil
	}
	if r := cache.FindEndpoints(v, s.Namespace, s.Name); r != nil {
		out = r.Ready()
	}
	var ending []records.Endpoint
	for _, r := range cache.SlicesOf(v, s.Namespace, s.Name) {
		ready, last := r.Ready()
		out, ending = append(out, ready...), append(ending, last...)
	}
	if len(out) == 0 && s.Address.IsValid() {
		out = ending
	}
	seen := map[records.Endpoint]bool{}
	return slices.DeleteFunc(out, func(e records.Endpoint) bool {
		was := seen[e]
		seen[e] = true
		return was
	})
}

// EndpointsOf are all endpoints of a service, as every node derives them from what it is sent, by its ports.
func EndpointsOf(v cache.View, s *records.ServiceRecord, domain string) (out []records.Endpoint) {
	if ofItsOwn(s) {
		return serviceEndpoints(v, s)
	}
	seen := newSight(v, domain)
	for _, ref := range v.Sets() {
		if selects, _ := s.Selects(v.Set(ref)); !selects {
			continue
		}
		snap := seen.build(ref)
		for i := range snap.Names {
			if n := &snap.Names[i]; n.Name == s.Name {
				for j := range n.Ports {
					out = append(out, snap.EndpointsOf(n, &n.Ports[j])...)
				}
			}
		}
	}
	return out
}

// touchServices has at look at the services of their own that may have changed, also those that are gone.
func (p *snapshotPublisher) touchServices(v cache.View, ch cache.Changes, at func(spec.SetRef) *touch) {
	if !ch.All && len(ch.Services) == 0 {
		return
	}
	for s := range cache.AllServices(v) {
		if (ch.All || ch.Services[s.Namespace]) && ofItsOwn(s) {
			at(s.Namespace.ServiceRef(s.Name)).all = true
		}
	}
	for ref := range p.sets {
		if _, is := ref.ServiceName(); is && (ch.All || ch.Services[ref.Namespace]) {
			at(ref).all = true
		}
	}
}
