package place

import (
	"fmt"

	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// affinity is where the members run that matter to a new life.
type affinity struct {
	near, apart []topologyCount // required
	avoided     []topologyCount // whose anti-affinity names the new life
	preferred   []topologyCount // with their weights; against: negative
	hardSpread  []topologyCount // DoNotSchedule
	softSpread  []topologyCount // ScheduleAnyway
}

// topologyCount counts members by place: the value of a label of nodes.
type topologyCount struct {
	key    string
	weight int64
	bound  int  // of a spread
	self   bool // the new life is one of those counted
	in     map[string]int
	total  int
	least  int    // of a spread: in the place that has the fewest, of those the life may use
	who    string // one of them, in a count of those who avoid
}

// at is the count of the node's place; a node without the label is in none.
func (c *topologyCount) at(n *proof.Node) (count int, placed bool) {
	value, placed := n.Labels[c.key]
	if !placed {
		return 0, false
	}
	return c.in[value], true
}

// skew is how many more there would be than in the place that has the fewest.
func (c *topologyCount) skew(n *proof.Node) int {
	count, _ := c.at(n)
	if c.self {
		count++
	}
	return count - c.least
}

// countAffinity counts those that the template's terms name, and those that name the new life.
func (s *search) countAffinity() (a affinity) {
	own := s.ID.Namespace
	if f := s.Template.Affinity; f != nil {
		var against []topologyCount
		a.near, a.preferred = s.countTerms(f.PodAffinity, 1)
		a.apart, against = s.countTerms(f.PodAntiAffinity, -1)
		a.preferred = append(a.preferred, against...)
	}
	for i := range s.Template.TopologySpreadConstraints {
		t := &s.Template.TopologySpreadConstraints[i]
		c := topologyCount{key: t.TopologyKey, self: t.LabelSelector.Matches(s.Labels), bound: int(t.MaxSkew)}
		s.count(&c, func(r *proof.Resident) bool { return r.ID.Namespace == own && t.LabelSelector.Matches(r.Labels) })
		c.least = s.fewest(&c)
		if t.WhenUnsatisfiable == spec.ScheduleAnyway {
			a.softSpread = append(a.softSpread, c)
		} else {
			a.hardSpread = append(a.hardSpread, c)
		}
	}
	a.avoided = s.avoided()
	return a
}

// countTerms counts for the terms of an affinity; sign is -1 when they speak against a place.
func (s *search) countTerms(f *spec.MemberAffinity, sign int64) (required, preferred []topologyCount) {
	if f == nil {
		return nil, nil
	}
	for i := range f.Required {
		required = append(required, s.countTerm(&f.Required[i], 0))
	}
	for i := range f.Preferred {
		preferred = append(preferred, s.countTerm(&f.Preferred[i].Term, sign*int64(f.Preferred[i].Weight)))
	}
	return required, preferred
}

func (s *search) countTerm(t *spec.MemberTerm, weight int64) topologyCount {
	own := s.ID.Namespace
	c := topologyCount{key: t.TopologyKey, weight: weight, self: t.Names(own, own, s.Labels)}
	s.count(&c, func(r *proof.Resident) bool { return t.Names(own, r.ID.Namespace, r.Labels) })
	return c
}

// count counts the residents that match, by the value of the label.
func (s *search) count(c *topologyCount, match func(*proof.Resident) bool) {
	c.in = map[string]int{}
	s.residents(func(n *proof.Node, r *proof.Resident) {
		value, placed := n.Labels[c.key]
		if placed && match(r) {
			c.in[value]++
			c.total++
		}
	})
}

// residents calls f for every life but the asker's own.
func (s *search) residents(f func(*proof.Node, *proof.Resident)) {
	for i := range s.nodes {
		n := &s.nodes[i]
		for _, list := range [][]proof.Resident{n.Residents, s.begun[n.Node.Name]} {
			for j := range list {
				if list[j].ID != s.ID {
					f(n, &list[j])
				}
			}
		}
	}
}

// fewest is the count of the place that has the fewest, of those whose nodes' labels
// suit the life.
func (s *search) fewest(c *topologyCount) int {
	least, any := 0, false
	for i := range s.nodes {
		n := &s.nodes[i]
		count, placed := c.at(n)
		if placed && s.mislabelled(n) == "" && (!any || count < least) {
			least, any = count, true
		}
	}
	return least
}

// avoided are the places of those whose required anti-affinity names the new life.
func (s *search) avoided() (list []topologyCount) {
	places := map[string]int{} // of list, by key
	s.residents(func(n *proof.Node, r *proof.Resident) {
		for i := range r.Avoids {
			t := &r.Avoids[i]
			value, placed := n.Labels[t.TopologyKey]
			if !placed || !t.Names(r.ID.Namespace, s.ID.Namespace, s.Labels) {
				continue
			}
			at, known := places[t.TopologyKey]
			if !known {
				at = len(list)
				places[t.TopologyKey] = at
				list = append(list, topologyCount{key: t.TopologyKey, in: map[string]int{}, who: r.ID.String()})
			}
			list[at].in[value]++
			list[at].who = min(list[at].who, r.ID.String())
		}
	})
	return list
}

// affinityForbids says why those who run at a node keep this life from it.
func (a *affinity) affinityForbids(n *proof.Node) string {
	for i := range a.near {
		c := &a.near[i]
		count, placed := c.at(n)
		switch {
		case !placed:
			return fmt.Sprintf("has no label %s, which the affinity needs", c.key)
		case count == 0 && !(c.total == 0 && c.self): // the first of those that want each other begins anywhere
			return fmt.Sprintf("has none of the members near it (by %s) that the affinity requires", c.key)
		}
	}
	for i := range a.apart {
		if count, _ := a.apart[i].at(n); count > 0 {
			return fmt.Sprintf("has a member near it (by %s) that the anti-affinity forbids", a.apart[i].key)
		}
	}
	for i := range a.avoided {
		if count, _ := a.avoided[i].at(n); count > 0 {
			return fmt.Sprintf("has a member near it (by %s) whose anti-affinity forbids this one, such as %s", a.avoided[i].key, a.avoided[i].who)
		}
	}
	for i := range a.hardSpread {
		c := &a.hardSpread[i]
		if _, placed := c.at(n); !placed {
			return fmt.Sprintf("has no label %s, over which the members are spread", c.key)
		}
		if skew := c.skew(n); skew > c.bound {
			return fmt.Sprintf("would have %d more members (by %s) than the place with the fewest; maxSkew is %d", skew, c.key, c.bound)
		}
	}
	return ""
}

// preference is what those who run at a node speak for it.
func (a *affinity) preference(n *proof.Node) (pull int64) {
	for i := range a.preferred {
		if count, _ := a.preferred[i].at(n); count > 0 {
			pull += a.preferred[i].weight
		}
	}
	return pull
}

// softSkew is how far the node is over what ScheduleAnyway would bound.
func (a *affinity) softSkew(n *proof.Node) (skew int64) {
	for i := range a.softSpread {
		skew += int64(max(a.softSpread[i].skew(n)-a.softSpread[i].bound, 0))
	}
	return skew
}
