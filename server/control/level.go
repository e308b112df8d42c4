package control

import (
	"slices"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// oldAgents refuses a template with a field that agents would pass over without a word. Those of the
// nodes where the set has members or volumes must know it, for the update would end a member there that
// could not start again; of a set that has none it is enough that one does. was is the set before; nil:
// it is new. A template that asked for as much before is left alone, so that a set can be changed
// whatever became of the nodes.
func oldAgents(was *records.Set, ahead plan.World) []manifest.Problem {
	level, field := ahead.Set.Spec.Needs()
	if was != nil {
		if before, _ := was.Spec.Needs(); before >= level {
			return nil
		}
	}
	bound := homes(ahead.Slots)
	var old, young []spec.NodeName
	for _, n := range ahead.Nodes {
		switch name := n.Node.Name; {
		case n.Facts == nil || len(bound) > 0 && !slices.Contains(bound, name):
		case n.Facts.Carries(level):
			young = append(young, name)
		default:
			old = append(old, name)
		}
	}
	if len(old) == 0 || len(bound) == 0 && len(young) > 0 {
		return nil
	}
	return tooOld(field, "an agent that is too old for it", old)
}

// agentsWithoutHooks refuses hooks of a set that the agents of nodes with members of it would not run. One that had as
// many before is left alone.
func agentsWithoutHooks(was *records.Set, ahead plan.World) []manifest.Problem {
	field := ""
	switch now := &ahead.Set.Spec; {
	case now.Decommission != nil && was.Spec.Decommission == nil:
		field = "spec.decommission"
	case now.Forget != nil && was.Spec.Forget == nil:
		field = "spec.forget"
	case now.Jobs != nil && was.Spec.Jobs == nil:
		field = "spec.jobs"
	}
	var old []spec.NodeName
	bound := homes(ahead.Slots)
	for _, n := range ahead.Nodes {
		if n.Facts != nil && !(n.Facts.Hooks && (n.Facts.Jobs || field != "spec.jobs")) && slices.Contains(bound, n.Node.Name) {
			old = append(old, n.Node.Name)
		}
	}
	if field == "" || len(old) == 0 {
		return nil
	}
	return tooOld(field, "an agent that is too old to run it", old)
}

// tooOld is the refusal of a field because of what runs on some nodes.
func tooOld(path, what string, on []spec.NodeName) []manifest.Problem {
	return []manifest.Problem{{
		Path: path,
		What: what + " runs on " + place.Names(on[:min(len(on), place.MostNamed)]),
		Fix:  "upgrade stead on the hosts, and apply it again",
	}}
}

// homes are the nodes where members are, or volumes of theirs that are on no other node.
func homes(slots []plan.Slot) (out []spec.NodeName) {
	for i := range slots {
		if m := slots[i].Member; m != nil {
			out = append(out, m.Node)
		}
		for _, v := range slots[i].Volumes {
			if v.Node != "" && !v.Shared {
				out = append(out, v.Node)
			}
		}
	}
	return out
}
