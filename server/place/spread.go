package place

import (
	"fmt"
	"math"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// The taints that a node has in Kubernetes while it takes no new members, or is not reachable. Here
// they are no records; they count where nodeTaintsPolicy is Honor.
var (
	cordonTaint = spec.Taint{Key: "node.kubernetes.io/unschedulable", Effect: spec.NoSchedule}
	silentTaint = spec.Taint{Key: "node.kubernetes.io/unreachable", Effect: spec.NoSchedule}
)

// spreadCount counts the members of a topologySpreadConstraint by place, as Kubernetes does: on nodes that
// have the labels of all constraints of its kind, and that its policies include.
type spreadCount struct {
	topologyCount
	*spec.Spread
	selector *spec.LabelSelector // with the labels of matchLabelKeys
	self     int                 // 1: the new life is one of those counted
	least    int                 // in the place that has the fewest; 0 with fewer places than minDomains
	few      bool                // there are fewer
}

// countSpread counts for the constraints that do what when they cannot be kept.
func (s *search) countSpread(what string) (out []spreadCount) {
	for i := range s.Template.TopologySpreadConstraints {
		if t := &s.Template.TopologySpreadConstraints[i]; t.Unsatisfiable() == what {
			out = append(out, spreadCount{Spread: t, topologyCount: topologyCount{key: t.TopologyKey, in: map[string]int{}}})
		}
	}
	for i := range out {
		c := &out[i]
		c.selector = c.SelectorFor(s.labels())
		c.self = one(c.selector.Matches(s.labels()))
		for j := range s.nodes {
			if n := &s.nodes[j]; inAllPlaces(out, n) && s.includes(c.Spread, n) {
				c.in[n.Labels[c.key]] += s.countOn(n, c.selector)
			}
		}
		c.least = math.MaxInt
		for _, count := range c.in {
			c.least = min(c.least, count)
		}
		c.few = len(c.in) < c.Domains()
		if c.few {
			c.least = 0
		}
	}
	return out
}

// inAllPlaces reports whether the node has the labels of all of list.
func inAllPlaces(list []spreadCount, n *proof.Node) bool {
	return !slices.ContainsFunc(list, func(c spreadCount) bool {
		_, placed := n.Labels[c.key]
		return !placed
	})
}

// includes reports whether the members of a node count for t: Kubernetes' node inclusion policies.
func (s *search) includes(t *spec.Spread, n *proof.Node) bool {
	if t.HonorsAffinity() && s.mislabelled(n) != "" {
		return false
	}
	if !t.HonorsTaints() {
		return true
	}
	intolerable := func(taint spec.Taint) bool {
		return taint.Effect != spec.PreferNoSchedule && !spec.Tolerates(s.Template.Tolerations, taint)
	}
	if n.Facts != nil && slices.ContainsFunc(n.Facts.Conditions, func(c records.NodeCondition) bool { return c.Class == "" && intolerable(c.Taint()) }) {
		return false
	}
	return !slices.ContainsFunc(n.Node.Taints, intolerable) &&
		(s.closed(n) == "" || !intolerable(cordonTaint)) && (s.connected(n) || !intolerable(silentTaint))
}

// countOn counts the members of the life's namespace on a node that the selector matches and that are
// not about to stop. As in Kubernetes an empty selector counts nobody.
func (s *search) countOn(n *proof.Node, selector *spec.LabelSelector) (count int) {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return 0
	}
	all := selector.OfMember()
	s.residentsOf(n, func(r *proof.Resident) {
		count += one(!r.Stopping && r.ID.Namespace == s.ID.Namespace && selector.Matches(labelsOf(r, all)))
	})
	return count
}

// forbids says why the life would make the skew too large on a node; "": it would not.
func (c *spreadCount) forbids(n *proof.Node) string {
	count, placed := c.at(n)
	if !placed {
		return fmt.Sprintf("has no label %s, over which the members are spread", c.key)
	}
	skew := count + c.self - c.least
	switch {
	case skew <= int(c.MaxSkew):
		return ""
	case c.few:
		return fmt.Sprintf("would have %d members (by %s); maxSkew is %d, and there are %d of the %d places that minDomains asks for",
			skew, c.key, c.MaxSkew, len(c.in), c.Domains())
	}
	return fmt.Sprintf("would have %d more members (by %s) than the place with the fewest; maxSkew is %d", skew, c.key, c.MaxSkew)
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
