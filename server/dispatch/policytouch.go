package dispatch

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
)

// concerns reports whether what a policy is for the sets that it selects may name a set that was made, changed
// or removed.
func concerns(r *records.NetworkPolicyRecord, set *records.Set) bool {
	c := policyResolver{ns: r.Namespace}
	names := func(peers []netpol.PolicyPeer, byName bool) bool {
		return slices.ContainsFunc(peers, func(p netpol.PolicyPeer) bool {
			if p.IPBlock != nil || isEverybody(&p) && !byName || !c.inNamespace(&p, set.Ref.Namespace) {
				return false
			}
			if p.PodSelector == nil {
				return true
			}
			common, _ := netpol.SplitOwn(p.PodSelector)
			return common.Matches(set.Spec.Template.Metadata.Labels)
		})
	}
	for i := range r.Spec.Ingress {
		if names(r.Spec.Ingress[i].From, false) {
			return true
		}
	}
	for i := range r.Spec.Egress {
		rule := &r.Spec.Egress[i]
		byName := slices.ContainsFunc(rule.Ports, func(p netpol.PolicyPort) bool { return p.Port != nil && p.Port.Name != "" })
		if byName && len(rule.To) == 0 || names(rule.To, byName) {
			return true
		}
	}
	return false
}

// sameFace reports whether policies see no difference between two records of a set; nil: there is none.
func sameFace(a, b *records.Set) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	s, t := &a.Spec.Template, &b.Spec.Template
	return maps.Equal(s.Metadata.Labels, t.Metadata.Labels) && slices.EqualFunc(facePorts(s), facePorts(t), func(x, y spec.ContainerPort) bool { return x == y })
}

// facePorts are the ports that have names.
func facePorts(t *spec.Template) (out []spec.ContainerPort) {
	for c := range t.Spec.Lasting() {
		for _, p := range c.Ports {
			if p.Name != "" {
				out = append(out, p)
			}
		}
	}
	return out
}

// touchPolicies touches the sets of which policies may be others: of namespaces where a policy changed, and
// where one names a set that is another now.
func (p *snapshotPublisher) touchPolicies(s *sight, changed map[spec.Namespace]bool, sets map[spec.SetRef]bool, at func(spec.SetRef) *touch) {
	var turned []*records.Set // as they were, and as they are
	for ref := range sets {
		var was *records.Set
		if published := p.sets[ref]; published != nil {
			was = published.set
		}
		if now := s.Set(ref); !sameFace(was, now) {
			turned = append(turned, was, now)
		}
	}
	turned = slices.DeleteFunc(turned, func(set *records.Set) bool { return set == nil })
	if len(changed)+len(turned) == 0 {
		return
	}
	for _, ns := range cache.PolicyNamespaces(s.View) {
		for _, r := range cache.NetworkPolicies(s.View, ns) {
			if changed[ns] || !slices.ContainsFunc(turned, func(set *records.Set) bool { return concerns(r, set) }) {
				continue
			}
			for _, set := range s.allSets()[ns] {
				if r.Selects(set) {
					at(set.Ref).policies = true
				}
			}
		}
	}
	for ns := range changed {
		for _, set := range s.allSets()[ns] {
			at(set.Ref).policies = true
		}
	}
}

// allSets are the sets of each namespace, by name.
func (s *sight) allSets() map[spec.Namespace][]*records.Set {
	if s.sets == nil {
		s.sets = map[spec.Namespace][]*records.Set{}
		for _, ref := range s.Sets() {
			s.sets[ref.Namespace] = append(s.sets[ref.Namespace], s.Set(ref))
		}
	}
	return s.sets
}

// policies are those of a set's members.
func (s *sight) policies(set *records.Set) []records.SetPolicy {
	of := cache.NetworkPolicies(s.View, set.Ref.Namespace)
	if len(of) == 0 {
		return nil
	}
	return policiesOf(set, of, s.allSets())
}
