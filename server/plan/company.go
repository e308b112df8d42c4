package plan

import (
	"fmt"

	"github.com/stead-project/stead/spec"
)

// company is where the members run that matter to a new life.
type company struct {
	near, apart []census // required
	avoided     []census // whose anti-affinity names the new life
	liked       []census // preferred, with their weights; against: negative
	even        []census // spread that must be
	fair        []census // spread that should be
}

// census counts members by place: the value of a label of nodes.
type census struct {
	key    string
	weight int64
	bound  int  // of a spread
	self   bool // the new life is one of those counted
	in     map[string]int
	total  int
	least  int    // of a spread: in the place that has the fewest, of those the life may use
	who    string // one of them, in a census of those who avoid
}

// at is the count of the node's place; a node without the label is in none.
func (c *census) at(n *Node) (count int, placed bool) {
	value, placed := n.Labels[c.key]
	if !placed {
		return 0, false
	}
	return c.in[value], true
}

// company counts what the template's terms name, and who names the new life.
func (s *step) company(a *ask) (c company) {
	own, labels := a.id.Namespace, s.labels()
	term := func(t *spec.MemberTerm, weight int64) census {
		return s.census(a, t.TopologyKey, weight, t.Names(own, own, labels), func(r *Resident) bool { return t.Names(own, r.ID.Namespace, r.Labels) })
	}
	if f := a.template.Affinity; f != nil {
		if near := f.PodAffinity; near != nil {
			for i := range near.Required {
				c.near = append(c.near, term(&near.Required[i], 0))
			}
			for i := range near.Preferred {
				c.liked = append(c.liked, term(&near.Preferred[i].Term, int64(near.Preferred[i].Weight)))
			}
		}
		if apart := f.PodAntiAffinity; apart != nil {
			for i := range apart.Required {
				c.apart = append(c.apart, term(&apart.Required[i], 0))
			}
			for i := range apart.Preferred {
				c.liked = append(c.liked, term(&apart.Preferred[i].Term, -int64(apart.Preferred[i].Weight)))
			}
		}
	}
	for i := range a.template.TopologySpreadConstraints {
		t := &a.template.TopologySpreadConstraints[i]
		x := s.census(a, t.TopologyKey, 0, t.LabelSelector.Matches(labels), func(r *Resident) bool {
			return r.ID.Namespace == own && t.LabelSelector.Matches(r.Labels)
		})
		x.bound, x.least = int(t.MaxSkew), s.fewest(a, &x)
		if t.WhenUnsatisfiable == spec.ScheduleAnyway {
			c.fair = append(c.fair, x)
		} else {
			c.even = append(c.even, x)
		}
	}
	c.avoided = s.avoided(a)
	return c
}

// census counts the residents that names holds for, by the value of the label key.
func (s *step) census(a *ask, key string, weight int64, self bool, names func(*Resident) bool) census {
	c := census{key: key, weight: weight, self: self, in: map[string]int{}}
	s.residents(a, func(n *Node, r *Resident) {
		value, placed := n.Labels[key]
		if placed && names(r) {
			c.in[value]++
			c.total++
		}
	})
	return c
}

// residents calls f for every life but the asker's own.
func (s *step) residents(a *ask, f func(*Node, *Resident)) {
	for i := range s.w.Nodes {
		n := &s.w.Nodes[i]
		for _, list := range [][]Resident{n.Residents, s.guests[n.Node.Name]} {
			for j := range list {
				if list[j].ID != a.id {
					f(n, &list[j])
				}
			}
		}
	}
}

// fewest is the count of the place that has the fewest, of those whose nodes' labels
// suit the life.
func (s *step) fewest(a *ask, c *census) int {
	least, any := 0, false
	for i := range s.w.Nodes {
		n := &s.w.Nodes[i]
		count, placed := c.at(n)
		if placed && a.mislabelled(n) == "" && (!any || count < least) {
			least, any = count, true
		}
	}
	return least
}

// avoided are the places of those whose required anti-affinity names the new life.
func (s *step) avoided(a *ask) (list []census) {
	places := map[string]int{} // of list, by key
	s.residents(a, func(n *Node, r *Resident) {
		for i := range r.Avoids {
			t := &r.Avoids[i]
			value, placed := n.Labels[t.TopologyKey]
			if !placed || !t.Names(r.ID.Namespace, a.id.Namespace, s.labels()) {
				continue
			}
			at, known := places[t.TopologyKey]
			if !known {
				at = len(list)
				places[t.TopologyKey] = at
				list = append(list, census{key: t.TopologyKey, in: map[string]int{}, who: r.ID.String()})
			}
			list[at].in[value]++
			list[at].who = min(list[at].who, r.ID.String())
		}
	})
	return list
}

// refused says why the company at a node is not for this life.
func (c *company) refused(n *Node) string {
	for i := range c.near {
		x := &c.near[i]
		count, placed := x.at(n)
		switch {
		case !placed:
			return fmt.Sprintf("has no label %s, which the affinity needs", x.key)
		case count == 0 && !(x.total == 0 && x.self): // the first of those that want each other begins anywhere
			return fmt.Sprintf("has none of the members near it (by %s) that the affinity requires", x.key)
		}
	}
	for i := range c.apart {
		if count, _ := c.apart[i].at(n); count > 0 {
			return fmt.Sprintf("has a member near it (by %s) that the anti-affinity forbids", c.apart[i].key)
		}
	}
	for i := range c.avoided {
		if count, _ := c.avoided[i].at(n); count > 0 {
			return fmt.Sprintf("has a member near it (by %s) whose anti-affinity forbids this one, such as %s", c.avoided[i].key, c.avoided[i].who)
		}
	}
	for i := range c.even {
		x := &c.even[i]
		if _, placed := x.at(n); !placed {
			return fmt.Sprintf("has no label %s, over which the members are spread", x.key)
		}
		if skew := x.skew(n); skew > x.bound {
			return fmt.Sprintf("would have %d members more (by %s) than where there are the fewest, and maxSkew is %d", skew, x.key, x.bound)
		}
	}
	return ""
}

// skew is how many more there would be than in the place that has the fewest.
func (c *census) skew(n *Node) int {
	count, _ := c.at(n)
	if c.self {
		count++
	}
	return count - c.least
}

// pull is what the company at a node speaks for it, and how far it is over the spread
// that should be.
func (c *company) pull(n *Node) (pull int64, skew int) {
	for i := range c.liked {
		if count, _ := c.liked[i].at(n); count > 0 {
			pull += c.liked[i].weight
		}
	}
	for i := range c.fair {
		skew += max(c.fair[i].skew(n)-c.fair[i].bound, 0)
	}
	return pull, skew
}
