package place

import (
	"math"
	"slices"

	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// most are the points that Kubernetes' scheduler gives a node for one thing.
const most = 100

// The weights of its plugins TaintToleration, NodeAffinity, InterPodAffinity and PodTopologySpread.
const (
	taintWeight        = 3
	nodeAffinityWeight = 2
	affinityWeight     = 2
	spreadWeight       = 2
)

// points rates the nodes that can take the life by what is preferred, as Kubernetes' scheduler does: for
// each thing 0 to most, by how it compares with the others, times its weight. More is better. nil: nothing is
// preferred.
func (s *search) points(fit []*proof.Node) []int64 {
	if len(fit) < 2 || !s.prefers(fit) {
		return nil
	}
	sum := make([]int64, len(fit))
	rate := func(weight int64, figure func(*proof.Node) int64, scale func(figure, least, largest int64) int64) {
		figures := make([]int64, len(fit))
		least, largest := int64(math.MaxInt64), int64(math.MinInt64)
		for i, n := range fit {
			figures[i] = figure(n)
			least, largest = min(least, figures[i]), max(largest, figures[i])
		}
		for i := range fit {
			if least != largest {
				sum[i] += weight * scale(figures[i], least, largest)
			}
		}
	}
	rate(taintWeight, s.taintsAgainst, func(n, _, largest int64) int64 { return most - most*n/largest })
	if f := s.Template.Affinity; f != nil && f.NodeAffinity != nil && len(f.NodeAffinity.Preferred) > 0 {
		rate(nodeAffinityWeight, s.labelsFor, func(n, _, largest int64) int64 { return most * n / largest })
	}
	if len(s.preferred) > 0 {
		rate(affinityWeight, s.membersFor, func(n, least, largest int64) int64 { return most * (n - least) / (largest - least) })
	}
	for i, p := range s.spreadPoints(fit) {
		sum[i] += spreadWeight * p
	}
	return sum
}

// prefers reports whether anything is preferred among these nodes.
func (s *search) prefers(fit []*proof.Node) bool {
	return s.mayPrefer() || slices.ContainsFunc(fit, func(n *proof.Node) bool { return len(n.Node.Taints) > 0 })
}

// mayPrefer reports whether the template prefers anything.
func (s *search) mayPrefer() bool {
	soft := func(t spec.Spread) bool { return t.Unsatisfiable() == spec.ScheduleAnyway }
	return len(s.preferred) > 0 || s.Template.Affinity != nil && s.Template.Affinity.NodeAffinity != nil ||
		slices.ContainsFunc(s.Template.TopologySpreadConstraints, soft)
}

// taintsAgainst counts the taints of a node that ask members to stay away and are not tolerated.
func (s *search) taintsAgainst(n *proof.Node) (against int64) {
	for _, taint := range n.Node.Taints {
		if taint.Effect == spec.PreferNoSchedule && !spec.Tolerates(s.Template.Tolerations, taint) {
			against++
		}
	}
	return against
}

// labelsFor is the weight of what the node affinity prefers and the node has.
func (s *search) labelsFor(n *proof.Node) (weight int64) {
	for _, p := range s.Template.Affinity.NodeAffinity.Preferred {
		if p.Preference.Matches(n.Labels) {
			weight += int64(p.Weight)
		}
	}
	return weight
}

// membersFor is the weight of those who run at the node: of each term as often as it names one.
func (s *search) membersFor(n *proof.Node) (weight int64) {
	for i := range s.preferred {
		count, _ := s.preferred[i].at(n)
		weight += s.preferred[i].weight * int64(count)
	}
	return weight
}

// spreadPoints are those for the constraints with ScheduleAnyway; nil: there are none. A constraint
// weighs more the more places there are among fit. A node without one of the labels gets none.
func (s *search) spreadPoints(fit []*proof.Node) []int64 {
	soft := s.countSpread(spec.ScheduleAnyway)
	if len(soft) == 0 {
		return nil
	}
	places := make([]map[string]bool, len(soft))
	for i := range soft {
		places[i] = map[string]bool{}
		for _, n := range fit {
			if inAllPlaces(soft, n) {
				places[i][n.Labels[soft[i].key]] = true
			}
		}
	}
	out := make([]int64, len(fit))
	least, largest := int64(math.MaxInt64), int64(0)
	for at, n := range fit {
		out[at] = -1
		if !inAllPlaces(soft, n) {
			continue
		}
		var figure float64
		for i := range soft {
			count, _ := soft[i].at(n)
			figure += float64(count)*math.Log(float64(len(places[i])+2)) + float64(soft[i].MaxSkew-1)
		}
		out[at] = int64(math.Round(figure))
		least, largest = min(least, out[at]), max(largest, out[at])
	}
	for at, figure := range out {
		switch {
		case figure < 0:
			out[at] = 0
		case largest == 0:
			out[at] = most
		default:
			out[at] = most * (largest + least - figure) / largest
		}
	}
	return out
}
