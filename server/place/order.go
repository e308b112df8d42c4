package place

import (
	"cmp"
	"slices"

	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// order has candidates by what decides between them where nothing is preferred, the best first. So each of many lives
// that begin in one step costs the nodes that cannot take it and come before the one that does, and not all of them.
type order struct {
	asked int // how often it would have been of use; see firstInOrder
	list  []ranked
	taint bool // one of the nodes has a taint: points may decide
}

// ranked is a node with what its ranks are made of.
type ranked struct {
	*proof.Node
	beside, lives int64 // the members of the set there, and the lives of all sets
	at            int   // of the candidates
}

func (a ranked) compare(b ranked) int {
	return cmp.Or(cmp.Compare(a.beside, b.beside), cmp.Compare(a.lives, b.lives), cmp.Compare(a.at, b.at))
}

// orderFrom is how many lives of a template are placed by a look at all candidates before these are put in order: for
// few that would cost more.
const orderFrom = 2

// firstInOrder is what best makes of those candidates that can take the life, found in their order; false: it is not to be
// found so, or there is none.
func (s *search) firstInOrder() (*proof.Node, bool) {
	o := orderOf(s)
	if o == nil || o.taint || s.mayPrefer() {
		return nil, false
	}
	var found *proof.Node
	for i := range o.list {
		if n := o.list[i].Node; n.Node.Name != s.Before && s.passes(n, false) {
			found = n
			break
		}
	}
	if before := named(s.candidates(), s.Before); before != nil && s.passes(before, false) {
		if found == nil || s.score(before).less(s.score(found)) {
			found = before
		}
	}
	return found, found != nil
}

// stays is the node of the life before, if it can take the life and none can be better: no other member of the set is there, and
// nothing that is preferred speaks for another. So most lives of an update cost no look at the other nodes; nil: a look is needed.
func stays(s *search) *proof.Node {
	if s.Before == "" || s.mayPrefer() {
		return nil
	}
	n := proof.FindNode(s.nodes, s.Before)
	if n == nil || s.membersBeside(n) > 0 || s.taintsAgainst(n) > 0 || !s.passes(n, true) || !s.passes(n, false) {
		return nil
	}
	return n
}

// orderOf is the order of the candidates of the life; nil: not yet.
func orderOf(s *search) *order {
	key := fixedFor{s.Template, s.Guarded}
	o := s.orders[key]
	if o == nil {
		o = &order{}
		if s.orders == nil {
			s.orders = map[fixedFor]*order{}
		}
		s.orders[key] = o
	}
	o.asked++
	if o.asked <= orderFrom {
		return nil
	}
	if o.list == nil {
		for i, n := range s.candidates() {
			name := n.Node.Name
			o.list = append(o.list, ranked{n, int64(s.members[name] + s.folded[name]), s.livesThere(n), i})
			o.taint = o.taint || len(n.Node.Taints) > 0
		}
		slices.SortFunc(o.list, ranked.compare)
	}
	return o
}

// named is the node of a name among candidates; nil: it is none of them.
func named(list []*proof.Node, name spec.NodeName) *proof.Node {
	if at, is := slices.BinarySearchFunc(list, name, func(n *proof.Node, name spec.NodeName) int { return cmp.Compare(n.Node.Name, name) }); is {
		return list[at]
	}
	return nil
}

// take moves a node behind those that are better now that a life begins on it.
func (o *order) take(node spec.NodeName) {
	i := slices.IndexFunc(o.list, func(r ranked) bool { return r.Node.Node.Name == node })
	if i < 0 {
		return
	}
	moved := o.list[i]
	moved.beside++
	moved.lives++
	behind := o.list[i+1:]
	n, _ := slices.BinarySearchFunc(behind, moved, ranked.compare)
	copy(o.list[i:], behind[:n])
	o.list[i+n] = moved
}
