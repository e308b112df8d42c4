package manifest

import (
	"fmt"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

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

func (p *problemList) claim(path string, old, next *spec.ClaimTemplate) {
	size, class := path+".spec.resources.requests[storage]", path+".spec.storageClassName"
	if next.Spec.SizeBytes() < old.Spec.SizeBytes() {
		p.add(size, "a volume cannot shrink", "write at least the old size")
	}
	if was, is := old.Spec.Class(), next.Spec.Class(); was != is {
		p.add(class, fmt.Sprintf("must not change from %s to %s", scalar.Quote(was), scalar.Quote(is)), "a volume does not move to another class")
	}
	a, b := spec.Clone(*old), spec.Clone(*next)
	for _, t := range []*spec.ClaimTemplate{&a, &b} {
		t.Spec.Resources.Requests, t.Spec.StorageClassName, t.Reclaim = nil, nil, nil
	}
	if !spec.Same(a, b) {
		p.add(path, "must not change", "")
	}
}
