package plan

import "github.com/stead-project/stead/spec"

// FenceNeeded names the silent nodes with a life of the set that nothing but a fence ends,
// and that would begin elsewhere then: the set has nodeLoss Replace, time alone proves
// nothing about the life, and no volume of it is bound to the node. In the order of ordinals,
// each once. It does not ask how long a node has been silent, nor how many are.
func FenceNeeded(w World) (nodes []spec.NodeName) {
	if w.Set == nil || len(w.Broken) > 0 {
		return nil
	}
	if reason, _ := halted(&w); reason != "" {
		return nil
	}
	s := newStep(w)
	seen := map[spec.NodeName]bool{}
	for i := range s.members {
		if t := &s.members[i]; s.needsFence(t) && !seen[t.member.Node] {
			seen[t.member.Node] = true
			nodes = append(nodes, t.member.Node)
		}
	}
	return nodes
}

// needsFence: only a fence ends the life, and something is gained by it.
func (r rollout) needsFence(t *memberState) bool {
	if t.member == nil || t.Over || r.bound() == 0 || r.world.Set.Orphaned || t.Silence.Left > 0 {
		return false
	}
	n := r.node(t.member.Node)
	if n == nil || n.Session != nil || n.Node.UID != t.member.NodeUID {
		return false
	}
	for _, v := range t.volumes {
		if v.Node == t.member.Node && !v.Shared {
			return false
		}
	}
	return true
}
