package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// mapClasses gives claims the storage class that the server's --map-class says, and
// tells of each. Records hold the class as the nodes call it.
func mapClasses(o *manifest.Objects, classes map[string]string) (warnings []string) {
	renamed := func(s *spec.ClaimSpec, of string) {
		was := s.Class()
		if is, mapped := classes[was]; mapped {
			s.StorageClassName = &is
			warnings = append(warnings, fmt.Sprintf("%s: storage class %s is %s here (--map-class)", of, was, is))
		}
	}
	for i := range o.Sets {
		m := &o.Sets[i]
		for j := range m.Spec.VolumeClaimTemplates {
			c := &m.Spec.VolumeClaimTemplates[j]
			renamed(&c.Spec, fmt.Sprintf("set %s/%s: claim %s", m.Metadata.Namespace, m.Metadata.Name, c.Metadata.Name))
		}
	}
	for i := range o.Claims {
		c := &o.Claims[i]
		renamed(&c.Spec, fmt.Sprintf("claim %s/%s", c.Metadata.Namespace, c.Metadata.Name))
	}
	return warnings
}

// claimedClass is a storage class that an object asks for, and the path of that.
type claimedClass struct{ path, class string }

// templateClasses are those of a set.
func templateClasses(set *records.Set) (out []claimedClass) {
	for i := range set.Spec.VolumeClaimTemplates {
		out = append(out, claimedClass{
			fmt.Sprintf("spec.volumeClaimTemplates[%d].spec.storageClassName", i), set.Spec.VolumeClaimTemplates[i].Spec.Class(),
		})
	}
	return out
}

// unknownClasses tells which storage classes of a new object, named in words, no node has. Before any
// node has connected nobody knows: then it warns of those that a node must be given.
func unknownClasses(object string, classes []claimedClass, nodes []plan.Node) (problems []manifest.Problem, warnings []string) {
	var facts []*records.NodeFacts
	for _, n := range nodes {
		if n.Facts != nil {
			facts = append(facts, n.Facts)
		}
	}
	for _, c := range classes {
		switch {
		case c.class == spec.LocalClass:
		case len(facts) == 0:
			warnings = append(warnings, fmt.Sprintf("%s: no node has joined yet that could have the storage class %s; members wait until one declares it with --storage-class, "+
				"or --map-class on the server names one of the nodes'", object, c.class))
		case !slices.ContainsFunc(facts, func(f *records.NodeFacts) bool { return f.HasClass(c.class) }):
			problems = append(problems, manifest.Problem{
				Path: c.path,
				What: fmt.Sprintf("no node has a storage class %q", c.class),
				Fix: "write one of " + records.KnownClasses(facts) + ", leave it out, declare it with --storage-class on a node," +
					" or map it with --map-class on the server",
			})
		}
	}
	return problems, slices.Compact(warnings)
}

// unshared tells that no node shares the storage class of a new claim that lives of several nodes are to have at
// once. Before any node has connected nobody knows: then it warns.
func unshared(now *records.ClaimRecord, nodes []plan.Node) (problems []manifest.Problem, warning string) {
	if !now.Spec.OnManyNodes() {
		return nil, ""
	}
	class, known := now.Spec.Class(), false
	var shared []string
	for _, n := range nodes {
		if n.Facts != nil {
			known = true
			shared = append(shared, n.Facts.SharedClasses...)
		}
	}
	switch {
	case slices.Contains(shared, class):
		return nil, ""
	case !known:
		return nil, fmt.Sprintf("claim %s/%s: no node has joined yet that could share the storage class %s; members wait until one does, with --shared-class", now.Namespace, now.Name, class)
	}
	fix := "declare it with --storage-class and --shared-class on the nodes that share it"
	slices.Sort(shared)
	if len(shared) > 0 {
		fix = "write a class that nodes share (" + strings.Join(slices.Compact(shared), ", ") + "), or " + fix
	}
	return []manifest.Problem{{
		Path: "spec.accessModes", What: fmt.Sprintf("%s needs a storage class that nodes share, and no node shares %s", spec.ReadWriteMany, class),
		Fix: fix + "; or write " + spec.ReadWriteOnce + ", with which all members that mount it run on one node",
	}}, ""
}
