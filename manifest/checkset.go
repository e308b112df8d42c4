package manifest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/changes"
	"github.com/stead-project/stead/spec/scalar"
)

// maxSetName: "<set>-<hash>" is the value of a label, at most 63 characters; then
// a member's name, with the longest ordinal, is not longer than a DNS label either.
const maxSetName = 63 - 1 - spec.HashLength

// maxSeconds bounds times that are counted in seconds: 68 years.
const maxSeconds = math.MaxInt32

// The least and the most that a guarded life's bound may be: nodes are pinged every few
// seconds; a year.
const (
	minBound = 10 * time.Second
	maxBound = 365 * 24 * time.Hour
)

// The least and the most seconds for which members may be busy: nodes count in minutes, for a day.
const (
	minBusy = 60
	maxBusy = 24 * 60 * 60
)

// maxTrash bounds the trash period: ten years.
const maxTrash = 10 * 365 * 24 * time.Hour

// setChecks checks a StatefulSet, except for its template.
type setChecks struct{ *checks }

func (c setChecks) statefulSet(s *spec.StatefulSet) {
	name := s.Metadata.Name
	c.label("metadata.name", name)
	if n := len(name); n > maxSetName && scalar.ValidLabel(name) {
		c.fail("metadata.name", fmt.Sprintf("the name has %d characters", n),
			fmt.Sprintf("the maximum is %d, because <name>-<revision> is a label", maxSetName))
	}
	c.metadata("metadata", &s.Metadata)
	c.setSpec(&s.Spec, name)
	c.hostname(s)
}

// hostname checks that the whole name of the highest ordinal fits, where it is to be the hostname.
func (c setChecks) hostname(s *spec.StatefulSet) {
	if c.domain == "" || !isTrue(s.Spec.Template.Spec.SetHostnameAsFQDN) {
		return
	}
	replicas := 1
	if s.Spec.Replicas != nil {
		replicas = max(int(*s.Spec.Replicas), 1)
	}
	last := spec.Identity{Namespace: s.Metadata.Namespace, Set: spec.SetName(s.Metadata.Name), Ordinal: s.Spec.Ordinals.Range(replicas).End - 1}
	if name := records.MemberFQDN(last, s.Spec.ServiceName, c.domain); len(name) > records.MaxHostname {
		c.fail("spec.template.spec.setHostnameAsFQDN", fmt.Sprintf("%s has %d characters, the maximum of a hostname is %d", scalar.Quote(name), len(name), records.MaxHostname),
			"shorten the name of the set, its serviceName or its namespace, or remove it")
	}
}

func (c setChecks) setSpec(s *spec.SetSpec, name string) {
	replicas := int64(0)
	if s.Replicas != nil {
		replicas = int64(*s.Replicas)
		c.between("spec.replicas", replicas, 0, spec.MaxReplicas)
	}
	if s.Ordinals != nil {
		c.between("spec.ordinals.start", int64(s.Ordinals.Start), 0, math.MaxInt32)
	}
	if !s.Ordinals.Range(int(replicas)).Fits() {
		c.fail("spec.replicas", "the highest ordinal is out of range", fmt.Sprintf("the maximum is %d", math.MaxInt32))
	}
	if s.ServiceName != name { // else the name has this problem already
		c.label("spec.serviceName", s.ServiceName)
	}
	c.choice("spec.podManagementPolicy", string(s.PodManagementPolicy), []string{string(spec.OrderedReady), string(spec.Parallel)})
	c.updateStrategy("spec.updateStrategy", &s.UpdateStrategy)
	c.between("spec.revisionHistoryLimit", int64(*s.RevisionHistoryLimit), 0, math.MaxInt32)
	c.between("spec.minReadySeconds", int64(s.MinReadySeconds), 0, maxSeconds)
	if d := s.ProgressDeadlineSeconds; d != nil {
		c.between("spec.progressDeadlineSeconds", int64(*d), int64(s.MinReadySeconds)+1, maxSeconds)
	}
	c.retention("spec.persistentVolumeClaimRetentionPolicy.whenScaled", s.Retention.WhenScaled)
	c.retention("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", s.Retention.WhenDeleted)
	c.nodeLoss("spec.nodeLoss", s.NodeLoss)
	c.disruption("spec.disruption", s.Disruption)
	if b := s.Busy; b != nil && b.MaxSeconds != nil {
		c.between("spec.busy.maxSeconds", int64(*b.MaxSeconds), minBusy, maxBusy)
	}
	claims := c.claims(s.VolumeClaimTemplates)
	c.template(&s.Template, claims)
	c.memberHooks(s)
	c.differences(s)
	c.ownSelector(s)
}

func (c setChecks) updateStrategy(path string, u *spec.UpdateStrategy) {
	c.choice(path+".type", u.Type, []string{spec.RollingUpdateStrategy, spec.OnDeleteStrategy, spec.RecreateStrategy})
	if u.ReplaceBroken != "" {
		c.choice(path+".replaceBroken", u.ReplaceBroken, []string{spec.ReplaceBrokenAlways, spec.ReplaceBrokenNever})
	}
	if u.Metadata != "" {
		c.choice(path+".metadata", u.Metadata, []string{spec.MetadataRestart, spec.MetadataLive})
	}
	c.inPlace(path+".inPlace", u)
	r := u.RollingUpdate
	if r == nil {
		return
	}
	path += ".rollingUpdate"
	if u.Type != spec.RollingUpdateStrategy {
		c.fail(path, "has no effect with type "+u.Type, "remove it")
		return
	}
	c.between(path+".partition", int64(*r.Partition), 0, math.MaxInt32)
	if r.OnFailure != "" {
		c.choice(path+".onFailure", r.OnFailure, []string{spec.OnFailureHalt, spec.OnFailureRollback})
	}
	if r.Order != "" {
		c.choice(path+".order", r.Order, []string{spec.OrderOrdinal, spec.OrderLeaderLast})
	}
	most := int64(math.MaxInt32)
	if r.MaxUnavailable.Percent {
		most = 100
	}
	c.between(path+".maxUnavailable", int64(r.MaxUnavailable.Number), 1, most)
}

// inPlace checks what updates may change without new lives.
func (c setChecks) inPlace(path string, u *spec.UpdateStrategy) {
	if len(u.InPlace) > 0 && u.Type != spec.RollingUpdateStrategy {
		c.fail(path, "has no effect with type "+u.Type, "remove it, or write type: "+spec.RollingUpdateStrategy)
		return
	}
	seen := map[string]bool{}
	for i, kind := range u.InPlace {
		c.choice(index(path, i), string(kind), []string{string(changes.Resources), string(changes.Image)})
		c.once(index(path, i), string(kind), seen)
	}
}

func (c setChecks) nodeLoss(path string, l *spec.NodeLoss) {
	if l == nil {
		return
	}
	c.choice(path+".policy", l.Policy, []string{spec.NodeLossHold, spec.NodeLossReplace})
	switch after := l.After; {
	case after == nil:
	case l.Policy == spec.NodeLossHold:
		c.fail(path+".after", "has no effect with policy "+l.Policy, "remove it, or write policy: "+spec.NodeLossReplace)
	case after.Duration < minBound || after.Duration > maxBound:
		c.fail(path+".after", after.String()+" is out of range", "write "+scalar.Duration{Duration: minBound}.String()+" to "+scalar.Duration{Duration: maxBound}.String())
	}
}

// disruption has exactly one of its two fields.
func (c *checks) disruption(path string, d *spec.Disruption) {
	if d == nil {
		return
	}
	if (d.MinAvailable == nil) == (d.MaxUnavailable == nil) {
		c.fail(path, "needs one of minAvailable and maxUnavailable", "")
		return
	}
	for name, v := range map[string]*scalar.IntOrPercent{"minAvailable": d.MinAvailable, "maxUnavailable": d.MaxUnavailable} {
		most := int64(math.MaxInt32)
		if v != nil && v.Percent {
			most = 100
		}
		if v != nil {
			c.between(path+"."+name, int64(v.Number), 0, most)
		}
	}
}

func (c setChecks) retention(path string, r spec.Retention) {
	c.choice(path, string(r), []string{string(spec.Retain), string(spec.Delete)})
}

// ownSelector must be present and well formed, and match the labels of the template.
func (c setChecks) ownSelector(s *spec.SetSpec) {
	const path = "spec.selector"
	if s.Selector == nil || len(s.Selector.MatchLabels)+len(s.Selector.MatchExpressions) == 0 {
		c.fail(path, "is missing", "write matchLabels with labels of the template")
		return
	}
	c.selector(path, s.Selector)
	if s.Selector.Matches(s.Template.Metadata.Labels) {
		return
	}
	fix := "make both agree"
	for _, key := range sortedKeys(s.Selector.MatchLabels) {
		if want := s.Selector.MatchLabels[key]; s.Template.Metadata.Labels[key] != want {
			fix = fmt.Sprintf("write %s: %s into spec.template.metadata.labels", showKey(key), showKey(want))
			break
		}
	}
	c.fail(path, "does not match the labels of the template", fix)
}

// claims checks the volumeClaimTemplates and returns their names.
func (c setChecks) claims(claims []spec.ClaimTemplate) map[string]bool {
	seen := map[string]bool{}
	for i := range claims {
		path := index("spec.volumeClaimTemplates", i)
		t := &claims[i]
		c.label(path+".metadata.name", t.Metadata.Name)
		c.once(path+".metadata.name", t.Metadata.Name, seen)
		c.metadata(path+".metadata", &t.Metadata)
		c.choice(path+".apiVersion", t.APIVersion, []string{"v1"})
		c.choice(path+".kind", t.Kind, []string{"PersistentVolumeClaim"})
		c.accessModes(path+".spec.accessModes", t.Spec.AccessModes)
		for j, mode := range t.Spec.AccessModes {
			if mode == spec.ReadWriteMany {
				c.warn(index(path+".spec.accessModes", j), noEffect, "a member's volume is mounted by no other; write a PersistentVolumeClaim for one that many share")
			}
		}
		c.claim(path+".spec", &t.Spec)
		if after := t.Trash(); after < 0 || after > maxTrash {
			c.fail(path+".reclaim.after", scalar.Duration{Duration: after}.String()+" is out of range", "write 0s to "+scalar.Duration{Duration: maxTrash}.String())
		}
	}
	return seen
}

// claimObject checks a PersistentVolumeClaim.
func (c setChecks) claimObject(s *spec.PersistentVolumeClaim) {
	c.subdomain("metadata.name", s.Metadata.Name)
	c.metadata("metadata", &s.Metadata)
	c.accessModes("spec.accessModes", s.Spec.AccessModes)
	c.claim("spec", &s.Spec)
}

func (c setChecks) accessModes(path string, modes []string) {
	if len(modes) == 0 {
		c.fail(path, "is missing", "write "+spec.ReadWriteOnce)
	}
	for i, mode := range modes {
		switch mode {
		case spec.ReadWriteOnce, spec.ReadWriteOncePod, spec.ReadWriteMany:
		case "ReadOnlyMany":
			c.fail(index(path, i), scalar.Quote(mode)+" is not supported: a volume is made empty, and somebody must write to it",
				"write "+spec.ReadWriteMany+" with a class that nodes share, or "+spec.ReadWriteOnce+", and readOnly: true at the volumes of members that only read")
		default:
			c.fail(index(path, i), scalar.Quote(mode)+" is unknown", "write "+spec.ReadWriteOnce+", "+spec.ReadWriteOncePod+" or "+spec.ReadWriteMany)
		}
	}
	if len(modes) > 1 && slices.Contains(modes, spec.ReadWriteOncePod) { // as in Kubernetes
		c.fail(path, spec.ReadWriteOncePod+" cannot be beside another mode", "write one of them")
	}
}

// claim checks all of it but the access modes.
func (c setChecks) claim(path string, s *spec.ClaimSpec) {
	c.choice(path+".volumeMode", s.VolumeMode, []string{"Filesystem"}, "Block")
	c.valid(path+".storageClassName", s.Class(), scalar.ValidSubdomain, "storage class name", "write "+spec.LocalClass+", or omit it")
	requests := path + ".resources.requests"
	storage, given := s.Resources.Requests["storage"]
	if given {
		c.size(requests+"[storage]", storage, 1)
	} else {
		c.fail(requests, "storage is missing", "write storage: 1Gi")
	}
	for _, name := range sortedKeys(s.Resources.Requests) {
		if name != "storage" {
			c.fail(requests+"["+showKey(name)+"]", scalar.Quote(name)+" is not a resource of a claim", "write storage")
		}
	}
}

// names lists the known names, for a message.
func names(known map[string]bool) string {
	if len(known) == 0 {
		return "there is none"
	}
	return "there are " + strings.Join(sortedKeys(known), ", ")
}
