package sim

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// ask has the host ask for a set by name, as its DNS does.
func (n *node) ask() bool {
	if n.agent == nil || n.stopped {
		return false
	}
	ref := n.w.refs[n.w.r.IntN(len(n.w.refs))]
	n.agent.interests.Asked(ref)
	n.w.note("%s asks for %s", n.name, ref)
	return true
}

// missed says what a node does not know of sets; "": nothing.
func (w *Cluster) missed() string {
	for _, ref := range w.refs {
		for _, n := range w.nodes {
			if why := n.misses(ref); why != "" {
				return why
			}
		}
	}
	return ""
}

// misses says what the node does not know of a set, or in the wrong form: in full it has those with a
// member there and those that it asks for; "": nothing.
func (n *node) misses(ref spec.SetRef) string {
	v := n.w.view()
	if n.removed || n.agent == nil || n.session() == nil {
		return ""
	}
	var got records.Snapshot
	all := n.agent.snapshots.All()
	at := slices.IndexFunc(all, func(s records.Snapshot) bool { return s.Ref == ref })
	if at >= 0 {
		got = all[at]
	}
	if has, is := at >= 0, v.Set(ref) != nil; has != is {
		return fmt.Sprintf("%s knows of %s: %t, and it exists: %t", n.name, ref, has, is)
	} else if !has {
		return ""
	}
	here, asked := v.On(n.name).HasMemberOf(ref), n.agent.interests.Has(ref)
	if (here || asked) == got.Brief {
		return fmt.Sprintf("%s has %s in brief: %t", n.name, ref, got.Brief)
	}
	switch {
	case got.Brief:
		n.w.count("set known in brief")
	case !here:
		n.w.count("set known because it is asked for")
	}
	for _, p := range got.Peers {
		m := v.Member(spec.Identity{Namespace: ref.Namespace, Set: ref.Name, Ordinal: p.Ordinal})
		if m != nil && (m.Address != p.Address || m.Node != p.Node) {
			return fmt.Sprintf("%s has %s at %s on %s, and it is at %s on %s", n.name, p.Name, p.Address, p.Node, m.Address, m.Node)
		}
	}
	return ""
}
