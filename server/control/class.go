package control

import (
	"fmt"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// mapClasses gives claims the storage class that the server's --map-class says, and
// tells of each. Records hold the class as the nodes call it.
func mapClasses(sets []spec.StatefulSet, classes map[string]string) (warnings []string) {
	for i := range sets {
		m := &sets[i]
		for j := range m.Spec.VolumeClaimTemplates {
			c := &m.Spec.VolumeClaimTemplates[j]
			was := c.Spec.Class()
			is, mapped := classes[was]
			if !mapped {
				continue
			}
			c.Spec.StorageClassName = &is
			warnings = append(warnings, fmt.Sprintf("set %s/%s: claim %s: storage class %s is %s here (--map-class)",
				m.Metadata.Namespace, m.Metadata.Name, c.Metadata.Name, was, is))
		}
	}
	return warnings
}

// unknownClasses tells which storage classes of a new set no node has. Before any
// node has connected nobody knows; the planner tells then what it waits for.
func unknownClasses(set *records.Set, nodes []plan.Node) []manifest.Problem {
	var facts []*records.NodeFacts
	for _, n := range nodes {
		if n.Facts != nil {
			facts = append(facts, n.Facts)
		}
	}
	if len(facts) == 0 {
		return nil
	}
	var out []manifest.Problem
	for i := range set.Spec.VolumeClaimTemplates {
		class, found := set.Spec.VolumeClaimTemplates[i].Spec.Class(), false
		for _, f := range facts {
			found = found || f.HasClass(class)
		}
		if !found {
			out = append(out, manifest.Problem{
				Path: fmt.Sprintf("spec.volumeClaimTemplates[%d].spec.storageClassName", i),
				What: fmt.Sprintf("no node has a storage class %q", class),
				Fix: "write one of " + records.KnownClasses(facts) + ", leave it out, declare it with --storage-class on a node," +
					" or map it with --map-class on the server",
			})
		}
	}
	return out
}
