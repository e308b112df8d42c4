package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
)

// ask is what a new life wants of its node.
type ask struct {
	id          spec.Identity
	template    *spec.MemberSpec
	cpuMillis   int64
	memoryBytes int64
	ports       []spec.HostPort
	company     company
}

// room is what lives take of a node.
type room struct {
	lives                  int
	cpuMillis, memoryBytes int64
}

func (s *step) ask(t *seat) *ask {
	a := &ask{id: t.id, template: s.runs(s.due(t))}
	a.cpuMillis, a.memoryBytes = a.template.Requests()
	a.ports = a.template.HostPorts()
	a.company = s.company(a)
	return a
}

// runs is what members of a revision run; nothing of one that is not known.
func (s *step) runs(h spec.RevisionHash) *spec.MemberSpec {
	if t := s.template(h); t != nil {
		return &t.Spec
	}
	return &spec.MemberSpec{}
}

// took notes a life that was begun in this very step.
func (s *step) took(t *seat, node spec.NodeName) {
	template := s.runs(t.member.Revision)
	cpu, memory := template.Requests()
	r := s.begun[node]
	s.begun[node] = room{r.lives + 1, r.cpuMillis + cpu, r.memoryBytes + memory}
	if template.Constrained() {
		s.guests[node] = append(s.guests[node], Resident{ID: t.id, Labels: s.labels(), Avoids: template.Avoids(), Ports: template.HostPorts()})
	}
}

// labels are those of the set's members: they hold from the set's own spec.
func (s *step) labels() map[string]string { return s.w.Set.Spec.Template.Metadata.Labels }

// mislabelled says which labels of the node are not those that this life must have.
func (a *ask) mislabelled(n *Node) string {
	for _, key := range slices.Sorted(maps.Keys(a.template.NodeSelector)) {
		if want := a.template.NodeSelector[key]; n.Labels[key] != want {
			return fmt.Sprintf("has no label %s=%s", key, want)
		}
	}
	if f := a.template.Affinity; f != nil && f.NodeAffinity != nil && f.NodeAffinity.Required != nil && !f.NodeAffinity.Required.Matches(n.Labels) {
		return "has not the labels that the node affinity requires"
	}
	return ""
}

// refused says why the node itself is not for this life.
func (a *ask) refused(n *Node) string {
	if words := a.mislabelled(n); words != "" {
		return words
	}
	for _, taint := range n.Node.Taints {
		if taint.Effect == spec.NoSchedule && !spec.Tolerates(a.template.Tolerations, taint) {
			return "has the taint " + taint.String() + ", which is not tolerated"
		}
	}
	return ""
}

// lacks says of what the node has too little left for this life. What its life before
// took there is kept for it: that record stands until the new life takes its place. A
// node that does not say how much it has takes all.
func (s *step) lacks(n *Node, a *ask) string {
	if n.Facts == nil {
		return ""
	}
	used := s.begun[n.Node.Name]
	used.cpuMillis += n.CPUMillis
	used.memoryBytes += n.MemoryBytes
	if t := s.seatOf(a.id.Ordinal); t.member != nil && t.member.Node == n.Node.Name {
		cpu, memory := s.runs(t.member.Revision).Requests()
		if a.cpuMillis <= cpu && a.memoryBytes <= memory {
			return "" // also where the node has promised too much
		}
		used.cpuMillis, used.memoryBytes = used.cpuMillis-cpu, used.memoryBytes-memory
	}
	var lacking []string
	if left := n.Facts.CPUMillis - used.cpuMillis; n.Facts.CPUMillis > 0 && a.cpuMillis > max(left, 0) {
		lacking = append(lacking, fmt.Sprintf("%s of %s cpu left, %s asked for",
			cpuText(left), cpuText(n.Facts.CPUMillis), cpuText(a.cpuMillis)))
	}
	if left := n.Facts.MemoryBytes - used.memoryBytes; n.Facts.MemoryBytes > 0 && a.memoryBytes > max(left, 0) {
		lacking = append(lacking, fmt.Sprintf("%s of %s memory left, %s asked for",
			bytesText(left), bytesText(n.Facts.MemoryBytes), bytesText(a.memoryBytes)))
	}
	if len(lacking) == 0 {
		return ""
	}
	return "has " + strings.Join(lacking, ", and ")
}

// portTaken says which host port of this life is another's at the node: until nothing is
// left of who has it.
func (s *step) portTaken(n *Node, a *ask) string {
	for _, list := range [][]Resident{n.Residents, s.guests[n.Node.Name]} {
		for i := range list {
			for _, theirs := range list[i].Ports {
				if list[i].ID != a.id && slices.ContainsFunc(a.ports, theirs.Meets) {
					return fmt.Sprintf("has its host port %s taken by %s", theirs, list[i].ID)
				}
			}
		}
	}
	return ""
}

func cpuText(millis int64) string { return spec.Quantity{Milli: max(millis, 0)}.String() }

// bytesText is a size in MiB: requests are written so.
func bytesText(n int64) string { return fmt.Sprintf("%dMi", max(n, 0)>>20) }

// dislike counts what is preferred elsewhere, less what is preferred here.
func (a *ask) dislike(n *Node) (against int64) {
	if f := a.template.Affinity; f != nil && f.NodeAffinity != nil {
		for _, p := range f.NodeAffinity.Preferred {
			if p.Preference.Matches(n.Labels) {
				against -= int64(p.Weight)
			}
		}
	}
	for _, taint := range n.Node.Taints {
		if taint.Effect == spec.PreferNoSchedule && !spec.Tolerates(a.template.Tolerations, taint) {
			against += maxWeight
		}
	}
	return against
}

// maxWeight is the most that one preference weighs.
const maxWeight = 100
