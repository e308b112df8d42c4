package place

import (
	"iter"
	"slices"

	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// otherTerms are the terms about members of residents that share them, and where these are: Kubernetes lets the terms of
// those who run speak of those who come, too.
type otherTerms struct {
	affinity *spec.Affinity
	own      spec.Namespace
	at       map[string]map[string]*residentsAt // by topology key, and the nodes' value of it
}

// residentsAt are residents at one place.
type residentsAt struct {
	count int
	who   [2]spec.Identity // the first of them
}

// otherLife is where a life of the placer's own set is counted.
type otherLife struct {
	terms *otherTerms
	node  *proof.Node
}

// gather counts all residents with terms about members, once; set is the placer's own.
func (p *Placer) gather(set spec.SetRef) {
	if p.gathered {
		return
	}
	p.gathered = true
	for i := range p.nodes {
		n := &p.nodes[i]
		for _, list := range [][]proof.Resident{n.Residents, p.begun[n.Node.Name]} {
			for j := range list {
				p.count(set, n, &list[j])
			}
		}
	}
}

// count adds a resident of a node, if it has terms about members.
func (p *Placer) count(set spec.SetRef, n *proof.Node, r *proof.Resident) {
	if r.Affinity == nil {
		return
	}
	if p.byAffinity == nil {
		p.byAffinity, p.ownLives = map[*spec.Affinity]*otherTerms{}, map[spec.Identity]otherLife{}
	}
	o := p.byAffinity[r.Affinity]
	if o == nil {
		o = &otherTerms{affinity: r.Affinity, own: r.ID.Namespace, at: map[string]map[string]*residentsAt{}}
		for t := range o.all() {
			if o.at[t.TopologyKey] == nil {
				o.at[t.TopologyKey] = map[string]*residentsAt{}
			}
		}
		p.byAffinity[r.Affinity] = o
		p.others = append(p.others, o)
	}
	for key, places := range o.at {
		value, placed := n.Labels[key]
		if !placed {
			continue
		}
		at := places[value]
		if at == nil {
			at = &residentsAt{}
			places[value] = at
		}
		if at.count < len(at.who) {
			at.who[at.count] = r.ID
		}
		at.count++
	}
	if r.ID.Ref() == set {
		p.ownLives[r.ID] = otherLife{o, n}
	}
}

// all are the terms, each with what it weighs for a member that it names; 0: it forbids its place.
func (o *otherTerms) all() iter.Seq2[*spec.MemberTerm, int] {
	return func(yield func(*spec.MemberTerm, int) bool) {
		near, apart := o.affinity.PodAffinity, o.affinity.PodAntiAffinity
		if near != nil {
			for i := range near.Required {
				if !yield(&near.Required[i], requiredWeight) {
					return
				}
			}
			for i := range near.Preferred {
				if !yield(&near.Preferred[i].Term, int(near.Preferred[i].Weight)) {
					return
				}
			}
		}
		if apart != nil {
			for i := range apart.Required {
				if !yield(&apart.Required[i], 0) {
					return
				}
			}
			for i := range apart.Preferred {
				if !yield(&apart.Preferred[i].Term, -int(apart.Preferred[i].Weight)) {
					return
				}
			}
		}
	}
}

// requiredWeight is what a required term of affinity of one who runs weighs for those that it names: Kubernetes'
// hardPodAffinityWeight.
const requiredWeight = 1

// countOthers counts, by place, those whose required anti-affinity names the new life, and what all other terms of those
// who run weigh for it.
func (s *search) countOthers() (avoided, drawn []topologyCount) {
	s.gather(s.ID.Ref())
	for _, o := range s.others {
		for t, weight := range o.all() {
			switch {
			case !t.Names(o.own, s.ID.Namespace, s.labels()):
			case weight == 0:
				countOf(&avoided, t.TopologyKey).addOthers(o, 1, s.ID, s.ownLives[s.ID])
			default:
				countOf(&drawn, t.TopologyKey).addOthers(o, weight, s.ID, s.ownLives[s.ID])
			}
		}
	}
	return avoided, drawn
}

// addOthers adds what the residents of o weigh at each place, all but the asker's own life before.
func (c *topologyCount) addOthers(o *otherTerms, weight int, asker spec.Identity, before otherLife) {
	own, counted := "", false
	if before.terms == o {
		own, counted = before.node.Labels[c.key]
	}
	for value, at := range o.at[c.key] {
		count := at.count - one(counted && value == own)
		if count == 0 {
			continue
		}
		c.in[value] += weight * count
		if _, named := c.who[value]; !named {
			c.who[value] = at.other(asker)
		}
	}
}

// other is one of them that is not id.
func (at *residentsAt) other(id spec.Identity) spec.Identity {
	if at.who[0] == id {
		return at.who[1]
	}
	return at.who[0]
}

// countOf is the count of list by a key; it is added if there is none.
func countOf(list *[]topologyCount, key string) *topologyCount {
	at := slices.IndexFunc(*list, func(c topologyCount) bool { return c.key == key })
	if at < 0 {
		at = len(*list)
		*list = append(*list, topologyCount{key: key, weight: 1, in: map[string]int{}, who: map[string]spec.Identity{}})
	}
	return &(*list)[at]
}
