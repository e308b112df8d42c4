package manifest

import (
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// dropWithoutEffect removes from a checked set what a warning said has no effect, so that
// no revision differs by it.
func dropWithoutEffect(s *spec.SetSpec) {
	m := &s.Template.Spec
	m.Volumes = slices.DeleteFunc(m.Volumes, func(v spec.VolumeMedia) bool { return shadowed(s, &v) })
	if readsDisk(m) {
		return
	}
	for c := range m.All() {
		r := &c.Resources
		for _, of := range []map[string]scalar.Quantity{r.Limits, r.Requests} {
			maps.DeleteFunc(of, func(name string, _ scalar.Quantity) bool { return name == ephemeralStorage })
		}
	}
}

// lastApplied is kubectl's annotation with a copy of the manifest; a Secret's has the values in clear.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// dropLastApplied removes it from an object, which get shows to more people than may read a Secret.
func (c *checks) dropLastApplied(m *spec.ObjectMeta) {
	if _, given := m.Annotations[lastApplied]; given {
		delete(m.Annotations, lastApplied)
		c.warn("metadata.annotations["+lastApplied+"]", noEffect, "it is kubectl's own, and is not kept")
	}
}

// dropUnusedOfService removes from a checked service what a warning said has no effect, and earlier versions
// did not keep: what they stored stays equal to its manifest. What its annotation says it says as a field.
func dropUnusedOfService(m *spec.Service, balanced bool) {
	s := &m.Spec
	if len(s.LoadBalancerSourceRanges) == 0 {
		s.LoadBalancerSourceRanges = annotatedRanges(m)
	}
	if !balanced || s.Type != "LoadBalancer" {
		s.LoadBalancerIP, s.LoadBalancerSourceRanges = "", nil
	}
	if s.IsAlias() || s.Headless() {
		s.ExternalIPs = nil
	}
	if !s.IsReachedOutside() {
		s.ExternalTrafficPolicy = ""
	}
	if !s.AnswersHealth() {
		s.HealthCheckNodePort = 0
	}
	if !s.IsAlias() {
		s.ExternalName = ""
	}
}

// readsDisk reports whether a member reads the ephemeral storage of a container, which then stays
// in the template.
func readsDisk(m *spec.MemberSpec) bool {
	disk := func(r *spec.ResourceFieldRef) bool {
		return r != nil && strings.HasSuffix(r.Resource, "."+ephemeralStorage)
	}
	for f := range m.FileFacts() {
		if disk(f.ResourceFieldRef) {
			return true
		}
	}
	for c := range m.All() {
		if slices.ContainsFunc(c.Env, func(e spec.EnvVar) bool { return e.ValueFrom != nil && disk(e.ValueFrom.ResourceFieldRef) }) {
			return true
		}
	}
	return false
}

// shadowed reports whether a claim of s takes the place of the volume v.
func shadowed(s *spec.SetSpec, v *spec.VolumeMedia) bool {
	return v.Name != "" && s.Claim(spec.ClaimName(v.Name)) != nil
}

// forgetShadowed removes the decoder's refusals below volumes whose place a claim takes.
func (d *decoder) forgetShadowed(s *spec.SetSpec) {
	for i := range s.Template.Spec.Volumes {
		if !shadowed(s, &s.Template.Spec.Volumes[i]) {
			continue
		}
		below := index("spec.template.spec.volumes", i) + "."
		d.problems = slices.DeleteFunc(d.problems, func(p Problem) bool {
			path, own := strings.CutPrefix(p.Path, d.at.base+below)
			if own && p.What == notYet {
				delete(d.bad, below+path)
			}
			return own && p.What == notYet
		})
	}
}

// forgetSubdomain removes the warning about a subdomain that is what the members have anyway.
func (d *decoder) forgetSubdomain(root *yaml.Node, service string) {
	const path = "spec.template.spec.subdomain"
	at := root
	for name := range strings.SplitSeq(path, ".") {
		if at == nil {
			return
		}
		at = child(deref(at), name)
	}
	if scalarText(at) == service {
		d.warnings = slices.DeleteFunc(d.warnings, func(p Problem) bool { return p.Path == d.at.base+path })
	}
}
