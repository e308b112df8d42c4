package cache

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// nodeRecords is all that is known of one node.
type nodeRecords struct {
	node    entry[records.Node]
	labels  map[string]string // of node, with those that every node has; never changed
	facts   entry[records.NodeFacts]
	session entry[records.Session]
	// noSession is a revision that grows with every end of a session, and when its absence was
	// last learned.
	noSession store.Rev
	fence     entry[records.Fence]
	members   map[spec.Identity]bool
	sets      map[spec.SetRef]bool // with a member in members
	// cpuMillis, memoryBytes and hugePages are what the members ask for.
	cpuMillis, memoryBytes int64
	hugePages              scalar.HugePages

	volumes map[string]*records.Volume       // that it is to give up, by key
	reports map[string]*records.VolumeReport // by key
	moves   map[spec.Identity]*moves.Move    // in which it has a part
}

func (s *state) applyNode(kind string, name spec.NodeName, ev store.Event, ch *Changes) (err error) {
	ch.Nodes[name] = true
	ch.on(name).Self = true
	s.movedNodes[name] = true
	n := s.node(name)
	switch kind {
	case store.KindNode:
		n.node, err = decode(s, ev, func(r *records.Node) string { return store.NodeKey(r.Name) })
		n.labels = nil
		if n.node.record != nil {
			n.labels = n.node.record.AllLabels()
		}
	case store.KindSession:
		n.session, err = decode(s, ev, func(r *records.Session) string { return store.SessionKey(r.Node) })
		if ev.Delete {
			n.noSession, s.lastSessionEnd = ev.Mod, ev.Mod
		}
	case store.KindFence:
		n.fence, err = decode(s, ev, func(r *records.Fence) string { return store.FenceKey(r.Node) })
	case store.KindFacts:
		old := n.facts.record
		n.facts, err = decode(s, ev, func(r *records.NodeFacts) string { return store.FactsKey(r.Name) })
		s.moveUnknown(name, old, n.facts.record, ch)
	}
	touchMoves(s, name, ch)
	s.dropIdleNode(name)
	return err
}

// node is the state of a node, made when there is none.
func (s *state) node(name spec.NodeName) *nodeRecords {
	n := s.nodes[name]
	if n == nil {
		n = &nodeRecords{
			noSession: max(s.rev, s.lastSessionEnd), members: map[spec.Identity]bool{}, sets: map[spec.SetRef]bool{},
			volumes: map[string]*records.Volume{}, reports: map[string]*records.VolumeReport{},
			moves: map[spec.Identity]*moves.Move{},
		}
		s.nodes[name] = n
	}
	return n
}

// dropIdleNode forgets a node of which nothing is stored.
func (s *state) dropIdleNode(name spec.NodeName) {
	n := s.nodes[name]
	if n != nil && n.node.mod == 0 && n.facts.mod == 0 && n.session.mod == 0 && n.fence.mod == 0 && len(n.members)+len(n.volumes)+len(n.reports)+len(n.moves) == 0 {
		delete(s.nodes, name)
	}
}

// NoSessionSince reports whether node has no session key, not even an unreadable one, and since when
// this cache has seen that: as long as since is the same there was none in between.
func (v View) NoSessionSince(node spec.NodeName) (since store.Rev, absent bool) {
	n := v.nodes[node]
	if n == nil {
		return v.rev, true
	}
	return n.noSession, n.session.mod == 0
}

// Session is the session of a node, of whichever machine.
func (v View) Session(node spec.NodeName) *records.Session {
	if n := v.nodes[node]; n != nil {
		return n.session.record
	}
	return nil
}

// MembersOn lists the identities whose life is on node, sorted.
func (v View) MembersOn(node spec.NodeName) []spec.Identity {
	n := v.nodes[node]
	if n == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(n.members), spec.Identity.Compare)
}

// Nodes lists the nodes that have a record, by name. A session or facts of
// another uid than the record's are not the node's (SAFETY S9).
func (v View) Nodes() []plan.Node { return v.nodeList }

// HasHost reports whether a node says that an address is its host's.
func HasHost(v View, a netip.Addr) bool { return v.hosts[a] > 0 }

// listNodes makes the list that Nodes hands out of the one before, and counts the addresses of its hosts.
// A list is never changed afterwards.
func (s *state) listNodes() []plan.Node {
	list := slices.Clone(s.nodeList)
	for name := range s.movedNodes {
		at, there := slices.BinarySearchFunc(list, name, func(n plan.Node, name spec.NodeName) int {
			return strings.Compare(string(n.Node.Name), string(name))
		})
		if there {
			s.countHost(&list[at], -1)
		}
		n := s.nodes[name]
		switch is := n != nil && n.node.record != nil; {
		case is && there:
			list[at] = n.planned()
		case is:
			list = slices.Insert(list, at, n.planned())
		case there:
			list = slices.Delete(list, at, at+1)
			continue
		default:
			continue
		}
		s.countHost(&list[at], 1)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

func (s *state) countHost(n *plan.Node, by int) {
	if a := n.Facts.Address(); a.IsValid() {
		s.hosts[a] += by
		if s.hosts[a] == 0 {
			delete(s.hosts, a)
		}
	}
}

// planned is the node as the planner sees it.
func (n *nodeRecords) planned() plan.Node {
	p := plan.Node{
		Node: n.node.record, Labels: n.labels,
		Lives: len(n.members), Moves: len(n.moves), CPUMillis: n.cpuMillis, MemoryBytes: n.memoryBytes, HugePages: n.hugePages,
	}
	if f := n.facts.record; f != nil && f.UID == p.Node.UID {
		p.Facts = f
	}
	p.Unread = n.facts.mod != 0 && n.facts.record == nil
	if e := n.session.record; e != nil && e.UID == p.Node.UID {
		p.Session = e
	}
	if f := n.fence.record; f != nil && f.UID == p.Node.UID {
		p.Fenced = true
	}
	return p
}
