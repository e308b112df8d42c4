package dispatch

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

// ofItsOwn reports whether no set can tell of a service what nodes must know: it selects no members.
func ofItsOwn(s *records.ServiceRecord) bool { return s.Spec.IsAlias() }

// serviceSnapshot is a service of its own as nodes shall see it; of one that there is not, or that sets tell
// of, that it is Gone.
func serviceSnapshot(seq spec.Sequence, ref spec.SetRef, s *records.ServiceRecord) records.Snapshot {
	p := records.Snapshot{Sequence: seq, Ref: ref}
	if s == nil || !ofItsOwn(s) {
		p.Gone = true
		return p
	}
	p.Names = []records.DNSName{{Name: s.Name, ExternalName: s.Spec.ExternalName}}
	return p
}

// touchServices has at look at the services of their own that may have changed, also those that are gone.
func (p *snapshotPublisher) touchServices(v cache.View, ch cache.Changes, at func(spec.SetRef) *touch) {
	if !ch.All && len(ch.Services) == 0 {
		return
	}
	for s := range cache.AllServices(v) {
		if (ch.All || ch.Services[s.Namespace]) && ofItsOwn(s) {
			at(spec.ServiceRef(s.Namespace, s.Name)).all = true
		}
	}
	for ref := range p.sets {
		if _, is := ref.ServiceName(); is && (ch.All || ch.Services[ref.Namespace]) {
			at(ref).all = true
		}
	}
}
