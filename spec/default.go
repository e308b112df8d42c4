package spec

import (
	"strings"

	"github.com/stead-project/stead/spec/scalar"
)

// Default fills what a set's spec leaves out, as SEMANTICS K2 with the corrections
// of Part 1: the rollingUpdate block is always there for its type. Replicas stays
// nil when absent, because that keeps the present number, and ServiceName stays
// empty, because its default is the set's name (manifest.Parse fills it). Default of a
// filled spec changes nothing.
func Default(s *SetSpec) {
	d := defaulter{}
	set(d, &s.PodManagementPolicy, OrderedReady)
	set(d, &s.UpdateStrategy.Type, RollingUpdateStrategy)
	if s.UpdateStrategy.Type == RollingUpdateStrategy {
		if s.UpdateStrategy.RollingUpdate == nil {
			s.UpdateStrategy.RollingUpdate = &RollingUpdate{}
		}
		setPointer(d, &s.UpdateStrategy.RollingUpdate.Partition, 0)
		setPointer(d, &s.UpdateStrategy.RollingUpdate.MaxUnavailable, scalar.IntOrPercent{Number: 1})
	}
	setPointer(d, &s.RevisionHistoryLimit, 10)
	if s.Retention == nil {
		s.Retention = &RetentionPolicy{}
	}
	set(d, &s.Retention.WhenScaled, Retain)
	set(d, &s.Retention.WhenDeleted, Retain)
	if s.NodeLoss != nil {
		set(d, &s.NodeLoss.Policy, NodeLossHold)
		if s.NodeLoss.Policy == NodeLossReplace {
			setPointer(d, &s.NodeLoss.After, scalar.Duration{Duration: defaultBound})
		}
	}
	d.memberHooks(s)
	for i := range s.VolumeClaimTemplates {
		c := &s.VolumeClaimTemplates[i]
		set(d, &c.APIVersion, "v1")
		set(d, &c.Kind, "PersistentVolumeClaim")
		set(d, &c.Spec.VolumeMode, "Filesystem")
	}
	d.template(&s.Template)
	d.members(s.Members)
}

// DefaultService fills what a service's spec leaves out, and clears what says the default of a
// field that earlier versions did not keep: what they stored stays equal to its manifest.
func DefaultService(s *ServiceSpec) {
	d := defaulter{}
	set(d, &s.Type, "ClusterIP")
	set(defaulter{clear: true}, &s.SessionAffinity, "None")
	set(defaulter{clear: true}, &s.InternalTrafficPolicy, "Cluster")
	set(defaulter{clear: true}, &s.ExternalTrafficPolicy, "Cluster")
	setPointer(defaulter{clear: true}, &s.AllocateLoadBalancerNodePorts, true)
	for i := range s.Ports {
		set(d, &s.Ports[i].Protocol, "TCP")
	}
}

// ShowDefaults fills what DefaultService clears, for a user to see.
func ShowDefaults(s *ServiceSpec) {
	d := defaulter{}
	set(d, &s.SessionAffinity, "None")
	set(d, &s.InternalTrafficPolicy, "Cluster")
	if s.IsReachedOutside() {
		set(d, &s.ExternalTrafficPolicy, "Cluster")
	}
	if s.Type == "LoadBalancer" {
		setPointer(d, &s.AllocateLoadBalancerNodePorts, true)
	}
}

// defaulter holds the defaults of a template in one place for both directions:
// to fill absent fields, and, with clear, to remove fields that say what their
// absence says.
type defaulter struct{ clear bool }

// set fills or clears a field whose zero value means "absent".
func set[T comparable](d defaulter, field *T, value T) {
	var absent T
	switch {
	case d.clear && *field == value:
		*field = absent
	case !d.clear && *field == absent:
		*field = value
	}
}

// setPointer fills or clears a field whose nil means "absent".
func setPointer[T comparable](d defaulter, field **T, value T) {
	switch {
	case d.clear && *field != nil && **field == value:
		*field = nil
	case !d.clear && *field == nil:
		*field = &value
	}
}

func (d defaulter) template(t *Template) {
	s := &t.Spec
	if d.clear {
		s.EnableServiceLinks = nil // it came late: charts that say it restart nobody
		setPointer(d, &s.SetHostnameAsFQDN, false)
		setPointer(d, &s.ShareProcessNamespace, false)
	}
	set(d, &s.RestartPolicy, "Always")
	setPointer(d, &s.TerminationGracePeriodSeconds, 30)
	if d.clear {
		clearProfiles(s)
	}
	set(d, &s.DNSPolicy, DNSClusterFirst)
	for c := range s.All() {
		d.container(c)
	}
	for i := range s.Volumes {
		if !d.clear && s.Volumes[i].sourceless() {
			s.Volumes[i].EmptyDir = &EmptyDir{}
		}
		d.volume(&s.Volumes[i])
	}
	for f := range s.FileFacts() {
		d.fieldRefs(f.FieldRef, f.ResourceFieldRef)
	}
	for i := range s.Tolerations {
		set(d, &s.Tolerations[i].Operator, Equal)
	}
	for i := range s.TopologySpreadConstraints {
		t := &s.TopologySpreadConstraints[i]
		set(d, &t.WhenUnsatisfiable, DoNotSchedule)
		if d.clear { // they came late
			setPointer(d, &t.MinDomains, 1)
			set(d, &t.NodeAffinityPolicy, policyHonor)
			set(d, &t.NodeTaintsPolicy, policyIgnore)
		}
	}
	if d.clear {
		clearAffinity(&s.Affinity)
		t.Metadata.Name, t.Metadata.Namespace = "", "" // change nothing in a template
		clearContext(&s.SecurityContext)
		if s.DNSConfig != nil && saysNothing(*s.DNSConfig) {
			s.DNSConfig = nil
		}
	}
}

func (d defaulter) container(c *Container) {
	set(d, &c.ImagePullPolicy, defaultPull(c.Image))
	for i := range c.Ports {
		set(d, &c.Ports[i].Protocol, "TCP")
	}
	d.env(c.Env)
	for _, p := range []*Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
		if p != nil {
			d.probe(p)
		}
	}
	if p := c.LeaderProbe; p != nil {
		set(d, &p.PeriodSeconds, 2)
		set(d, &p.FailureThreshold, 1)
		d.probe(p)
	}
	d.lifecycle(&c.Lifecycle)
	if c.StepDown != nil {
		d.httpGet(c.StepDown.HTTPGet)
	}
	d.requests(&c.Resources)
	if d.clear && c.SecurityContext != nil {
		setPointer(d, &c.SecurityContext.ReadOnlyRootFilesystem, false)
		setPointer(d, &c.SecurityContext.AllowPrivilegeEscalation, true)
		setPointer(d, &c.SecurityContext.Privileged, false)
		if s := c.SecurityContext.Capabilities; s != nil && len(s.Add)+len(s.Drop) == 0 {
			c.SecurityContext.Capabilities = nil
		}
		if saysNothing(*c.SecurityContext) {
			c.SecurityContext = nil
		}
	}
}

func (d defaulter) env(env []EnvVar) {
	for i := range env {
		if from := env[i].ValueFrom; from != nil {
			d.fieldRefs(from.FieldRef, from.ResourceFieldRef)
		}
	}
}

func (d defaulter) volume(v *VolumeMedia) {
	if v.ConfigMap != nil {
		setPointer(d, &v.ConfigMap.DefaultMode, 0o644)
	}
	if v.Secret != nil {
		setPointer(d, &v.Secret.DefaultMode, 0o644)
	}
	if v.DownwardAPI != nil {
		setPointer(d, &v.DownwardAPI.DefaultMode, 0o644)
	}
	if v.Projected != nil {
		setPointer(d, &v.Projected.DefaultMode, 0o644)
	}
	if d.clear && v.HostPath != nil {
		setPointer(d, &v.HostPath.Type, "")
	}
}

// fieldRefs may be nil.
func (d defaulter) fieldRefs(field *FieldRef, resource *ResourceFieldRef) {
	if field != nil {
		set(d, &field.APIVersion, "v1")
	}
	if resource != nil {
		set(d, &resource.Divisor, scalar.Quantity{Milli: 1000})
	}
}

func (d defaulter) probe(p *Probe) {
	set(d, &p.PeriodSeconds, 10)
	set(d, &p.TimeoutSeconds, 1)
	set(d, &p.SuccessThreshold, 1)
	set(d, &p.FailureThreshold, 3)
	d.httpGet(p.HTTPGet)
}

// sourceless: a volume that has only a name is an emptyDir, as in Kubernetes.
func (v VolumeMedia) sourceless() bool {
	v.Name = ""
	return saysNothing(v)
}

// requests default to the limits.
func (d defaulter) requests(r *ResourceRequirements) {
	for name, limit := range r.Limits {
		request, given := r.Requests[name]
		switch {
		case d.clear && given && request == limit:
			delete(r.Requests, name)
		case !d.clear && !given:
			if r.Requests == nil {
				r.Requests = map[string]scalar.Quantity{}
			}
			r.Requests[name] = limit
		}
	}
}

// clearProfiles removes the profiles of containers that say what the member's say, and then those
// of the member that say the default.
func clearProfiles(s *MemberSpec) {
	for c := range s.All() {
		if x := c.SecurityContext; x != nil {
			var none *SecurityContext
			seccomp, appArmor := x.Confinement(s.SecurityContext)
			seccomps, appArmors := none.Confinement(s.SecurityContext)
			clearSame(&x.SeccompProfile, seccomp, seccomps)
			clearSame(&x.AppArmorProfile, appArmor, appArmors)
		}
	}
	if m := s.SecurityContext; m != nil {
		var none *SecurityContext
		seccomp, appArmor := none.Confinement(m)
		seccomps, appArmors := none.Confinement(nil)
		clearSame(&m.SeccompProfile, seccomp, seccomps)
		clearSame(&m.AppArmorProfile, appArmor, appArmors)
	}
}

// clearSame removes a profile p whose effect now is that of its absence.
func clearSame(p **Profile, now, absent Profile) {
	if Same(now, absent) {
		*p = nil
	}
}

// clearContext removes a security context that says nothing.
func clearContext(c **MemberSecurityContext) {
	if *c == nil {
		return
	}
	setPointer(defaulter{clear: true}, &(*c).RunAsNonRoot, false)
	setPointer(defaulter{clear: true}, &(*c).FSGroupChangePolicy, groupAlways)
	setPointer(defaulter{clear: true}, &(*c).SupplementalGroupsPolicy, GroupsMerge)
	if saysNothing(**c) {
		*c = nil
	}
}

// clearAffinity removes what says nothing.
func clearAffinity(a **Affinity) {
	if *a == nil {
		return
	}
	if n := (*a).NodeAffinity; n != nil && n.Required == nil && len(n.Preferred) == 0 {
		(*a).NodeAffinity = nil
	}
	for _, m := range []**MemberAffinity{&(*a).PodAffinity, &(*a).PodAntiAffinity} {
		if *m != nil && len((*m).Required)+len((*m).Preferred) == 0 {
			*m = nil
		}
	}
	if saysNothing(**a) {
		*a = nil
	}
}

// defaultPull is Always for the tag latest or no tag at all, else IfNotPresent.
func defaultPull(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	name, _, digest := strings.Cut(name, "@")
	_, tag, tagged := strings.Cut(name, ":")
	if tagged && tag == "latest" || !tagged && !digest {
		return PullAlways
	}
	return PullIfNotPresent
}
