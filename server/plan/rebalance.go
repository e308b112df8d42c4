package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// Rebalancing are moves after which the members of sets are spread as if they were placed now: on no node that can take one
// of them there are two fewer than on another.
type Rebalancing struct {
	// Moves are in the order in which they are to be asked for.
	Moves []SpreadMove
	// Stays are members that would be better elsewhere, and cannot be moved.
	Stays []Stay
	// Halted is why nothing is decided for any set; "": it is.
	Halted string
}

// SpreadMove is the move of a member to a node that placement prefers. SizeBytes is what its local volumes may hold.
type SpreadMove struct {
	ID        spec.Identity
	From      spec.NodeName
	To        moves.MoveEnd
	SizeBytes int64
	Why       string
}

// Stay is a member that stays on its node; Why is a sentence without its subject.
type Stay struct {
	ID   spec.Identity
	Node spec.NodeName
	Why  string
}

// Rebalance chooses moves for those of worlds, all of one view, whose sets are chosen; most bounds their number, 0 does not.
// The others count with their moves that are under way or asked for, whose members are taken to be on their targets. It is
// deterministic, and asked again after its moves it finds nothing to do.
func Rebalance(worlds []World, chosen func(spec.SetRef) bool, most int) (out Rebalancing) {
	b := balancer{most: most, out: &out}
	for i := range worlds {
		_, out.Halted = halted(&worlds[i])
		if out.Halted != "" {
			return out
		}
		b.arrive(&worlds[i])
	}
	for i := range worlds {
		if w := worlds[i]; w.Set != nil && chosen(w.Set.Ref) {
			b.set(w)
		}
	}
	return out
}

// balancer is a run of Rebalance.
type balancer struct {
	most  int
	out   *Rebalancing
	comes []comer
}

// comer is a life that is to come to a node. What it takes of the node where it is it has until it has moved.
type comer struct {
	life Resident
	runs *spec.MemberSpec
	to   spec.NodeName
}

// movesTo is the node to which a move that is under way, or asked for, brings a member; "": none does.
func movesTo(slot *Slot) spec.NodeName {
	q, m := slot.MoveAsked, slot.Move
	switch {
	case m != nil && (m.Phase == moves.MoveAborting || m.Phase == moves.MoveBack || q != nil && q.Verb == moves.MoveAbort && q.Move == m.Move):
		return m.From.Node
	case m != nil:
		return m.To.Node
	case q != nil && q.Verb == moves.MoveBegin:
		return q.To.Node
	}
	return ""
}

// arrive notes the members of a set that move already.
func (b *balancer) arrive(w *World) {
	if w.Set == nil {
		return
	}
	var s mover
	for i := range w.Slots {
		slot := &w.Slots[i]
		to := movesTo(slot)
		if to == "" || slot.Member == nil || slot.Member.Node == to {
			continue
		}
		if s.draft == nil {
			s = newStep(*w).mover()
		}
		b.comes = append(b.comes, s.comer(s.memberOf(slot.ID.Ordinal), to))
	}
}

func (s mover) comer(t *memberState, to spec.NodeName) comer {
	r := s.request(t)
	return comer{Resident{ID: t.ID, Labels: r.Labels, Revision: r.Revision}.Running(r.Template), r.Template, to}
}

// with are nodes with all that is to come to them.
func (b *balancer) with(nodes []Node) []Node {
	nodes = slices.Clone(nodes)
	for _, c := range b.comes {
		n := proof.FindNode(nodes, c.to)
		if n == nil {
			continue
		}
		cpu, memory := c.runs.Requests()
		n.Lives, n.CPUMillis, n.MemoryBytes = n.Lives+1, n.CPUMillis+cpu, n.MemoryBytes+memory
		n.HugePages = n.HugePages.Plus(c.runs.HugePages(), 1)
		if n.Residents != nil {
			n.Residents = append(slices.Clone(n.Residents), c.life)
		}
	}
	return nodes
}

// set chooses moves of one set, one after the other.
func (b *balancer) set(w World) {
	if w.Set.Orphaned || w.Set.Deleting {
		return
	}
	facts := w.Nodes
	s := newStep(w).mover()
	at := map[spec.Identity]spec.NodeName{} // where each member is in the end
	moved := map[spec.Identity]bool{}
	for _, t := range s.inside {
		at[t.ID] = t.home()
		if to := movesTo(&t.Slot); to != "" {
			at[t.ID], moved[t.ID] = to, true
		}
	}
	stays := map[spec.Identity]bool{}
	for b.most == 0 || len(b.out.Moves) < b.most {
		w.Nodes = s.receivers(b.with(facts))
		search := spreadSearch{mover: newStep(w).mover(), at: at, moved: moved, stays: stays}
		found := search.next()
		b.out.Stays = append(b.out.Stays, search.staying...)
		if found == nil {
			return
		}
		b.out.Moves = append(b.out.Moves, *found)
		b.comes = append(b.comes, s.comer(s.memberOf(found.ID.Ordinal), found.To.Node))
		at[found.ID], moved[found.ID] = found.To.Node, true
	}
}

// home is the node where a member is, or where its volumes keep it; "": none.
func (m *memberFacts) home() spec.NodeName {
	if m.Member != nil {
		return m.Member.Node
	}
	for _, v := range m.localVolumes() {
		return v.Node
	}
	return ""
}

// receivers are nodes of which those are cordoned that no member of the set can be moved to.
func (s mover) receivers(nodes []Node) []Node {
	for i := range nodes {
		n := &nodes[i]
		if s.lacksMoves(n.Node.Name) != "" {
			closed := *n.Node
			closed.Cordon = true
			n.Node = &closed
		}
	}
	return nodes
}

// spreadSearch looks for the next move of one set.
type spreadSearch struct {
	mover
	at      map[spec.Identity]spec.NodeName
	moved   map[spec.Identity]bool // they are not moved again
	stays   map[spec.Identity]bool // that is said already
	staying []Stay
	count   map[spec.NodeName]int
}

// next is the move that is most needed: from the node with the most members, of the highest that can be moved; nil: there is none.
func (s *spreadSearch) next() *SpreadMove {
	s.count = map[spec.NodeName]int{}
	for _, node := range s.at {
		s.count[node]++
	}
	delete(s.count, "")
	s.placer = place.New(s.world.Nodes, nil, maps.Clone(s.count))
	from := slices.SortedFunc(maps.Keys(s.count), func(a, b spec.NodeName) int {
		return cmp.Or(cmp.Compare(s.count[b], s.count[a]), cmp.Compare(a, b))
	})
	for _, node := range from {
		for _, t := range slices.Backward(s.inside) {
			if s.at[t.ID] != node || s.moved[t.ID] {
				continue
			}
			n, no := s.placer.Choose(s.moveTo(t))
			if no != nil || n.Node.Name == node {
				continue
			}
			why := s.better(t, node, n)
			if why == "" {
				continue
			}
			if fixed := s.fixed(t, node); fixed != "" {
				if !s.stays[t.ID] {
					s.stays[t.ID] = true
					s.staying = append(s.staying, Stay{t.ID, node, fixed})
				}
				continue
			}
			out := &SpreadMove{ID: t.ID, From: node, To: moves.MoveEnd{Node: n.Node.Name, UID: n.Node.UID}, Why: why}
			for _, v := range t.localVolumes() {
				out.SizeBytes += v.SizeBytes
			}
			return out
		}
	}
	return nil
}

// better says why the set is spread better with a member on another node; "": it is not. Neither over nodes nor over any place
// of a topologySpreadConstraint it may become worse.
func (s *spreadSearch) better(t *memberState, from spec.NodeName, to *Node) (why string) {
	source := s.node(from)
	if source == nil {
		return ""
	}
	worse := false
	judge := func(here, there string, have, has int) {
		worse = worse || have <= has
		if have-has >= 2 && why == "" {
			why = fmt.Sprintf("%s has %d members of the set, %s has %d", here, have, there, has)
		}
	}
	judge("node "+string(from), "node "+string(to.Node.Name), s.count[from], s.count[to.Node.Name])
	for _, c := range s.runs(s.due(t), t.ID.Ordinal).TopologySpreadConstraints {
		a, placed := source.Labels[c.TopologyKey]
		b, other := to.Labels[c.TopologyKey]
		if placed && other && a != b {
			judge(c.TopologyKey+" "+a, c.TopologyKey+" "+b, s.inPlace(c.TopologyKey, a), s.inPlace(c.TopologyKey, b))
		}
	}
	if worse {
		return ""
	}
	return why
}

// inPlace counts the members at a place.
func (s *spreadSearch) inPlace(key, value string) (count int) {
	for name, members := range s.count {
		if n := s.node(name); n != nil && n.Labels[key] == value {
			count += members
		}
	}
	return count
}

// fixed says why a member cannot be moved from its node; "": it can.
func (s *spreadSearch) fixed(t *memberState, from spec.NodeName) string {
	if _, why := s.movable(t); why != "" {
		return why
	}
	if why := s.lacksMoves(from); why != "" {
		return why
	}
	for _, v := range s.runs(s.due(t), t.ID.Ordinal).Volumes {
		if v.HostPath != nil {
			return fmt.Sprintf("it mounts %s of its host, which does not go with it", v.HostPath.Path)
		}
	}
	return ""
}
