package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
	"github.com/stead-project/stead/spec/quota"
	"github.com/stead-project/stead/spec/scalar"
)

// OfSet is the manifest of a stored set: Parse of it gives the same spec. It
// is apps/v1, or stead/v1 when it has a field that Kubernetes does not have; then
// the annotation that may have brought the field is left out. It shares s's maps and
// slices: for showing, not for changing.
func OfSet(s *records.Set) spec.StatefulSet {
	m := spec.StatefulSet{APIVersion: "apps/v1", Kind: "StatefulSet", Spec: s.Spec, Metadata: spec.ObjectMeta{
		Name: string(s.Ref.Name), Namespace: s.Ref.Namespace, Labels: s.Labels, Annotations: s.Annotations}}
	_, annotated := m.Metadata.Annotations[SteadAnnotation]
	if annotated || m.Spec.SteadOnly() {
		m.APIVersion = "stead/v1"
		m.Metadata.Annotations = maps.Clone(m.Metadata.Annotations)
		delete(m.Metadata.Annotations, SteadAnnotation)
	}
	return m
}

// OfService is the manifest of a stored service, with the address that it was given. It shares r's
// maps and slices.
func OfService(r *records.ServiceRecord) spec.Service {
	s := spec.Service{APIVersion: "v1", Kind: "Service", Metadata: r.Manifest(), Spec: r.Spec}
	if r.Address.IsValid() {
		s.Spec.ClusterIP = r.Address.String()
	}
	spec.ShowDefaults(&s.Spec)
	return s
}

// OfEndpoints is the manifest of stored Endpoints. It shares r's slices.
func OfEndpoints(r *records.EndpointsRecord) records.Endpoints {
	return records.Endpoints{APIVersion: "v1", Kind: "Endpoints", Metadata: r.Manifest(), Subsets: r.Subsets}
}

// OfSlice is the manifest of a stored EndpointSlice. It shares r's slices.
func OfSlice(r *records.SliceRecord) records.EndpointSlice {
	return records.EndpointSlice{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Metadata: r.Manifest(),
		AddressType: r.AddressType, Endpoints: r.Endpoints, Ports: r.Ports}
}

// OfConfigMap is the manifest of stored files: what is text stands in data,
// the rest in binaryData. It shares r's bytes.
func OfConfigMap(r *records.ConfigRecord) spec.ConfigMap {
	m := spec.ConfigMap{APIVersion: "v1", Kind: "ConfigMap", Metadata: r.Manifest(), Immutable: r.Immutable}
	for name, content := range r.Files {
		if utf8.Valid(content) && !strings.ContainsRune(string(content), 0) {
			if m.Data == nil {
				m.Data = map[string]string{}
			}
			m.Data[name] = string(content)
			continue
		}
		if m.BinaryData == nil {
			m.BinaryData = map[string]scalar.Bytes{}
		}
		m.BinaryData[name] = content
	}
	return m
}

// OfBudget is the manifest of a stored budget. It shares r's maps and slices.
func OfBudget(r *records.BudgetRecord) spec.PodDisruptionBudget {
	return spec.PodDisruptionBudget{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Metadata: r.Manifest(), Spec: r.Spec}
}

// OfQuota is the manifest of a stored quota. It shares r's maps.
func OfQuota(r *records.QuotaRecord) quota.ResourceQuota {
	return quota.ResourceQuota{APIVersion: "v1", Kind: "ResourceQuota", Metadata: r.Manifest(), Spec: r.Spec}
}

// OfNetworkPolicy is the manifest of a stored policy. It shares r's maps and slices.
func OfNetworkPolicy(r *records.NetworkPolicyRecord) netpol.NetworkPolicy {
	return netpol.NetworkPolicy{APIVersion: networkPolicies, Kind: "NetworkPolicy", Metadata: r.Manifest(), Spec: r.Spec}
}

// OfClaim is the manifest of a stored claim. It shares r's maps and slices.
func OfClaim(r *records.ClaimRecord) spec.PersistentVolumeClaim {
	return spec.PersistentVolumeClaim{APIVersion: "v1", Kind: "PersistentVolumeClaim", Metadata: r.Manifest(), Spec: r.Spec}
}

// ValidateClaimUpdate returns the changes from old to next that a claim does not allow.
// Problems have no position: see Objects.Locate.
func ValidateClaimUpdate(old, next *spec.ClaimSpec) []Problem {
	var p problemList
	p.claimSpec("spec", old, next)
	a, b := spec.Clone(*old), spec.Clone(*next)
	for _, s := range []*spec.ClaimSpec{&a, &b} {
		s.Resources.Requests, s.StorageClassName = nil, nil
	}
	if !spec.Same(a, b) {
		p.add("spec.accessModes", "must not change", "delete the claim, which gives its volume up, and apply it again")
	}
	return p.list
}

// SeenSet is the set, and its generation, that a manifest was made from, as 'get' shows
// them in metadata. A zero field: the manifest does not say.
type SeenSet struct {
	UID        spec.UID
	Generation int64
}

// Seen returns what the manifest of the set ref was made from.
func (o *Objects) Seen(ref spec.SetRef) SeenSet { return o.seen[ref] }

// seenSet reads what a manifest of a set was made from, and removes the warnings that
// these fields have no effect.
func (d *decoder) seenSet(root *yaml.Node) (seen SeenSet) {
	meta := child(root, "metadata")
	generation, err := strconv.ParseInt(scalarText(child(meta, "generation")), 10, 64)
	uid := scalarText(child(meta, "uid"))
	if err != nil || uid == "" {
		return SeenSet{UID: spec.UID(uid)}
	}
	d.warnings = slices.DeleteFunc(d.warnings, func(p Problem) bool {
		return p.Path == d.at.base+"metadata.generation" || p.Path == d.at.base+"metadata.uid"
	})
	return SeenSet{spec.UID(uid), generation}
}

// ValidateUpdate returns the changes from old to next that a running set does not allow.
// Both have their defaults. The caller removes an allowed rename of the service first.
// Problems have no position: see Objects.Locate.
func ValidateUpdate(old, next *spec.SetSpec) []Problem {
	var p problemList
	if !spec.Same(old.Selector, next.Selector) {
		p.add("spec.selector", "must not change", "delete the set and create it again; its volumes are kept")
	}
	p.serviceName(old, next)
	p.claims(old.VolumeClaimTemplates, next.VolumeClaimTemplates)
	return p.list
}

// ValidateAdoption is ValidateUpdate for an orphaned set. More fields may change; the caller
// checks that they fit the members and volumes that exist.
func ValidateAdoption(old, next *spec.SetSpec) []Problem {
	var p problemList
	p.serviceName(old, next)
	return p.list
}

func (p *problemList) serviceName(old, next *spec.SetSpec) {
	if old.ServiceName != next.ServiceName {
		p.add("spec.serviceName", fmt.Sprintf("must not change from %s to %s", scalar.Quote(old.ServiceName), scalar.Quote(next.ServiceName)),
			"members are reached under this name; use --rename-service to change it: all members restart, and both names resolve until they have")
	}
}

// claims compares by name, whatever the order.
func (p *problemList) claims(old, next []spec.ClaimTemplate) {
	const path = "spec.volumeClaimTemplates"
	before := map[string]*spec.ClaimTemplate{}
	for i := range old {
		before[old[i].Metadata.Name] = &old[i]
	}
	for i := range next {
		name := next[i].Metadata.Name
		was, known := before[name]
		if !known {
			continue // members get it with their next life
		}
		delete(before, name)
		p.claim(index(path, i), was, &next[i])
	}
	for _, name := range sortedKeys(before) {
		p.add(path, "the claim "+scalar.Quote(name)+" must not be removed", "its volumes are kept for it")
	}
}

// claimSpec compares what a claim at path asks for.
func (p *problemList) claimSpec(path string, old, next *spec.ClaimSpec) {
	if next.SizeBytes() < old.SizeBytes() {
		p.add(path+".resources.requests[storage]", "a volume cannot shrink", "write at least the old size")
	}
	if was, is := old.Class(), next.Class(); was != is {
		p.add(path+".storageClassName", fmt.Sprintf("must not change from %s to %s", scalar.Quote(was), scalar.Quote(is)), "a volume does not move to another class")
	}
}

func (p *problemList) claim(path string, old, next *spec.ClaimTemplate) {
	p.claimSpec(path+".spec", &old.Spec, &next.Spec)
	a, b := spec.Clone(*old), spec.Clone(*next)
	for _, t := range []*spec.ClaimTemplate{&a, &b} {
		t.Spec.Resources.Requests, t.Spec.StorageClassName, t.Reclaim = nil, nil, nil
	}
	if !spec.Same(a, b) {
		p.add(path, "must not change", "")
	}
}
