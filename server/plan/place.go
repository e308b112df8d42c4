package plan

import (
	"fmt"
	"strings"

	"github.com/stead-project/stead/spec"
)

// place chooses the node of a new life: the one that holds its volumes; else, of
// those that can take it, the one with the fewest members of the set, by name.
func (s *step) place(t *seat) (n *Node, reason, text string) {
	home, reason, text := s.home(t)
	if reason != "" {
		return nil, reason, text
	}
	var whys []string
	classless := false
	for i := range s.w.Nodes {
		c := &s.w.Nodes[i]
		if home != "" && c.Node.Name != home {
			continue
		}
		why, word := s.whyNot(c)
		classless = classless || why == BlockedNoClass
		switch {
		case why != "" && home != "":
			return nil, why, fmt.Sprintf("its volumes are on node %s, which %s", home, word)
		case why != "":
			whys = append(whys, fmt.Sprintf("node %s %s", c.Node.Name, word))
		case n == nil || s.spread[c.Node.Name] < s.spread[n.Node.Name]:
			n = c
		}
	}
	switch {
	case n != nil:
		return n, "", ""
	case home != "":
		return nil, BlockedNoNode, fmt.Sprintf("its volumes are on node %s, which is not known", home)
	case len(whys) == 0:
		return nil, BlockedNoNode, "no node has joined yet"
	case classless:
		return nil, BlockedNoClass, fmt.Sprintf("no node can take it: %s; known storage classes are %s",
			strings.Join(whys, "; "), spec.KnownClasses(s.facts()))
	}
	return nil, BlockedNoNode, "no node can take it: " + strings.Join(whys, "; ")
}

// home is the node to which the volumes bind the member; "": none does.
func (s *step) home(t *seat) (home spec.NodeName, reason, text string) {
	for i := range s.w.Set.Spec.VolumeClaimTemplates {
		v := t.volumes[spec.ClaimName(s.w.Set.Spec.VolumeClaimTemplates[i].Metadata.Name)]
		switch {
		case v == nil || v.Node == "":
		case home != "" && v.Node != home:
			return "", BlockedVolume, fmt.Sprintf("its volumes are on two nodes, %s and %s", home, v.Node)
		default:
			home = v.Node
		}
	}
	return home, "", ""
}

// whyNot says why a node cannot take a new life, as a reason and in words; "": it can.
func (s *step) whyNot(n *Node) (reason, words string) {
	switch {
	case n.Session == nil || n.Session.UID != n.Node.UID:
		return BlockedNodeSilent, "is silent"
	case n.Node.Cordon:
		return BlockedCordoned, "is cordoned"
	}
	for i := range s.w.Set.Spec.VolumeClaimTemplates {
		if class := s.w.Set.Spec.VolumeClaimTemplates[i].Spec.Class(); !n.Facts.HasClass(class) {
			return BlockedNoClass, "has no storage class " + class
		}
	}
	return "", ""
}

// facts is what the nodes say of themselves.
func (s *step) facts() []*spec.NodeFacts {
	out := make([]*spec.NodeFacts, 0, len(s.w.Nodes))
	for i := range s.w.Nodes {
		out = append(out, s.w.Nodes[i].Facts)
	}
	return out
}
