package place

import (
	"fmt"

	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// affinity is where the members run that matter to a new life.
type affinity struct {
	near       []topologyCount // required: those that all of these terms name
	first      bool            // of near: there is none anywhere, and the new life is one itself
	apart      []topologyCount // required
	avoided    []topologyCount // whose anti-affinity names the new life
	preferred  []topologyCount // with their weights; against: negative; also of those who run
	hardSpread []spreadCount   // DoNotSchedule
}

// topologyCount counts members by place: the value of a label of nodes.
type topologyCount struct {
	key    string
	weight int64
	in     map[string]int
	who    map[string]spec.Identity // one of them at each place, in a count of those who run
}

// at is the count of the node's place; a node without the label is in none.
func (c *topologyCount) at(n *proof.Node) (count int, placed bool) {
	value, placed := n.Labels[c.key]
	if !placed {
		return 0, false
	}
	return c.in[value], true
}

// add counts one member on a node, and reports whether the node is in a place.
func (c *topologyCount) add(n *proof.Node) bool {
	value, placed := n.Labels[c.key]
	if placed {
		c.in[value]++
	}
	return placed
}

// term is a term of the new life: resolved with its labels.
type term struct {
	spec.MemberTerm
	own spec.Namespace
	all bool // it asks for labels that Kubernetes gives each member
}

func (s *search) termsOf(list []spec.MemberTerm) []term {
	out := make([]term, len(list))
	for i := range list {
		out[i].MemberTerm, out[i].own = list[i].For(s.labels()), s.ID.Namespace
		out[i].all = out[i].LabelSelector.OfMember()
	}
	return out
}

// names reports whether the term names a resident.
func (t *term) names(r *proof.Resident) bool {
	return t.Names(t.own, r.ID.Namespace, labelsOf(r, t.all))
}

// labelsOf are the resident's labels, with all those that Kubernetes gives it only where they matter.
func labelsOf(r *proof.Resident, all bool) map[string]string {
	if all {
		return spec.MemberLabels(r.ID, r.Revision, r.Labels)
	}
	return r.Labels
}

// labels are all of the new life's.
func (s *search) labels() map[string]string {
	if s.allLabels == nil {
		s.allLabels = spec.MemberLabels(s.ID, s.Revision, s.Labels)
	}
	return s.allLabels
}

// countAffinity counts those that the template's terms name, and those whose terms name the new life.
func (s *search) countAffinity() (a affinity) {
	if f := s.Template.Affinity; f != nil {
		if f.PodAffinity != nil {
			a.near, a.first = s.countNear(s.termsOf(f.PodAffinity.Required))
			a.preferred = s.countPreferred(f.PodAffinity.Preferred, 1)
		}
		if f.PodAntiAffinity != nil {
			for _, t := range s.termsOf(f.PodAntiAffinity.Required) {
				a.apart = append(a.apart, s.countTerm(&t, 0))
			}
			a.preferred = append(a.preferred, s.countPreferred(f.PodAntiAffinity.Preferred, -1)...)
		}
	}
	a.hardSpread = s.countSpread(spec.DoNotSchedule)
	avoided, drawn := s.countOthers()
	a.avoided, a.preferred = avoided, append(a.preferred, drawn...)
	return a
}

// countNear counts, for each required term, those that all of them name: one member must serve all terms.
func (s *search) countNear(terms []term) (near []topologyCount, first bool) {
	if len(terms) == 0 {
		return nil, false
	}
	for i := range terms {
		near = append(near, topologyCount{key: terms[i].TopologyKey, in: map[string]int{}})
	}
	anywhere := false
	s.residents(func(n *proof.Node, r *proof.Resident) {
		for i := range terms {
			if !terms[i].names(r) {
				return
			}
		}
		for i := range near {
			anywhere = near[i].add(n) || anywhere
		}
	})
	first = !anywhere
	for i := range terms {
		first = first && terms[i].Names(s.ID.Namespace, s.ID.Namespace, s.labels())
	}
	return near, first
}

// countPreferred counts for preferred terms; sign is -1 when they speak against a place.
func (s *search) countPreferred(list []spec.PreferredMember, sign int64) (out []topologyCount) {
	for i := range list {
		t := s.termsOf([]spec.MemberTerm{list[i].Term})
		out = append(out, s.countTerm(&t[0], sign*int64(list[i].Weight)))
	}
	return out
}

func (s *search) countTerm(t *term, weight int64) topologyCount {
	c := topologyCount{key: t.TopologyKey, weight: weight, in: map[string]int{}}
	s.residents(func(n *proof.Node, r *proof.Resident) {
		if t.names(r) {
			c.add(n)
		}
	})
	return c
}

// residents calls f for every life but the asker's own.
func (s *search) residents(f func(*proof.Node, *proof.Resident)) {
	if !s.known && len(s.begun) == 0 {
		return
	}
	for i := range s.nodes {
		s.residentsOf(&s.nodes[i], func(r *proof.Resident) { f(&s.nodes[i], r) })
	}
}

// residentsOf calls f for those of one node.
func (s *search) residentsOf(n *proof.Node, f func(*proof.Resident)) {
	for _, list := range [][]proof.Resident{n.Residents, s.begun[n.Node.Name]} {
		for i := range list {
			if list[i].ID != s.ID {
				f(&list[i])
			}
		}
	}
}

// affinityForbids says why those who run at a node keep this life from it.
func (s *search) affinityForbids(n *proof.Node) string {
	for i := range s.near {
		if _, placed := s.near[i].at(n); !placed {
			return fmt.Sprintf("has no label %s, which the affinity needs", s.near[i].key)
		}
	}
	for i := range s.near {
		if count, _ := s.near[i].at(n); count == 0 && !s.first { // the first of those that want each other begins anywhere
			return fmt.Sprintf("has none of the members near it (by %s) that the affinity requires", s.near[i].key)
		}
	}
	for i := range s.apart {
		if count, _ := s.apart[i].at(n); count > 0 {
			return fmt.Sprintf("has a member near it (by %s) that the anti-affinity forbids", s.apart[i].key)
		}
	}
	for i := range s.avoided {
		if count, _ := s.avoided[i].at(n); count > 0 {
			return fmt.Sprintf("has a member near it (by %s) whose anti-affinity forbids this one, such as %s", s.avoided[i].key, s.avoided[i].who[n.Labels[s.avoided[i].key]])
		}
	}
	for i := range s.hardSpread {
		if words := s.hardSpread[i].forbids(n); words != "" {
			return words
		}
	}
	return ""
}
