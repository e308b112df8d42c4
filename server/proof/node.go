// Package proof judges lives by what nodes said and by how long they have said nothing: is
// this life over, is it ready, what does a node's silence prove, is a volume out of its
// place. Everybody who acts on such an answer asks here. Pure: no clock, no I/O; silence is
// measured by the leader and handed in (Node.Gone).
package proof

import (
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Node is one host as the leader knows it.
type Node struct {
	Node *records.Node
	// Labels are all of its labels (records.Node.AllLabels).
	Labels map[string]string
	Facts  *records.NodeFacts // nil: never connected, or Unread
	// Unread: its facts are stored and cannot be read. It may run lives that nobody knows, of
	// any identity.
	Unread bool
	// Session is the live session; nil: silent. A member of a node without a
	// session is not ready (SAFETY S15).
	Session *records.Session
	// Gone is how long this leader has seen the node without a session, on its own
	// monotonic clock; a new leader starts again.
	Gone time.Duration
	// Fencing is what came of it when this server tried to have the node fenced, as long as
	// it was not: a sentence without its subject that does not change with time.
	Fencing string
	// Fenced: a person says that it is off, and it has not been heard of since.
	Fenced bool
	// Lives counts the lives on it, of all sets, also those that are over and not
	// replaced; CPUMillis, MemoryBytes and HugePages are what they ask for.
	Lives                  int
	Moves                  int // in which it has a part, in either role
	CPUMillis, MemoryBytes int64
	HugePages              scalar.HugePages
	// Residents are these lives, in the order of their identities; given only where it matters to the set
	// which they are.
	Residents []Resident
}

// Connected reports whether the machine that the record names has a session.
func (n *Node) Connected() bool { return n.Session != nil && n.Session.UID == n.Node.UID }

// Resident is a life on a node, of any set.
type Resident struct {
	ID     spec.Identity
	Labels map[string]string // of its set's members; spec.MemberLabels has the others
	// Revision is the one that it runs.
	Revision spec.RevisionHash
	// Stopping: it is to end, or has ended.
	Stopping bool
	// Affinity is what it runs with, if that has terms about members, with its labels in place of their
	// keys (spec.MemberSpec.AffinityOf). Lives of a revision share it, mostly.
	Affinity *spec.Affinity
	// Ports are those of the host that lead to it.
	Ports []spec.HostPort
}

// Running is r as it runs m.
func (r Resident) Running(m *spec.MemberSpec) Resident {
	r.Affinity, r.Ports = m.AffinityOf(r.ID, r.Revision, r.Labels), m.HostPorts()
	return r
}

// FindNode finds the node of a name; nil: it is not known. The nodes are in the order of names.
func FindNode(nodes []Node, name spec.NodeName) *Node {
	i, ok := slices.BinarySearchFunc(nodes, name, func(n Node, name spec.NodeName) int {
		return strings.Compare(string(n.Node.Name), string(name))
	})
	if !ok {
		return nil
	}
	return &nodes[i]
}

// MostHeard reports whether not more than half of the known nodes are silent: if more are,
// it is more likely us than them, and nobody is fenced.
func MostHeard(nodes []Node) bool {
	known, silent := countSilent(nodes)
	return 2*silent <= known
}

// countSilent counts the nodes that ever said what they are, and of them those without a
// session.
func countSilent(nodes []Node) (known, silent int) {
	for i := range nodes {
		if n := &nodes[i]; n.Facts != nil {
			known++
			if n.Session == nil {
				silent++
			}
		}
	}
	return known, silent
}

// FirstEpoch is the epoch of a store that was never restored.
const FirstEpoch = 1

// MissingNodes are the nodes that have to say, after a restore, what they run, and have not
// (SAFETY S8): those that the count names, and any other that the store knows. Excused ones
// are left out. It is empty once the count is done, and in a store that was never restored.
// A machine is known by its uid: it may come back under another name.
func MissingNodes(epoch int64, count *records.Count, nodes []Node) (missing []records.CountNode) {
	var list []records.CountNode
	switch {
	case count != nil && count.Epoch == epoch && count.Done:
		return nil
	case count != nil && count.Epoch == epoch:
		list = count.Nodes
	case epoch <= FirstEpoch:
		return nil
	}
	heard, listed := map[spec.UID]bool{}, map[spec.UID]bool{}
	for i := range nodes {
		if n := &nodes[i]; n.Facts != nil && n.Facts.Epoch >= epoch {
			heard[n.Node.UID] = true
		}
	}
	for _, c := range list {
		listed[c.UID] = true
		if c.Off == "" && !heard[c.UID] {
			missing = append(missing, c)
		}
	}
	for i := range nodes {
		if n := nodes[i].Node; !listed[n.UID] && !heard[n.UID] {
			missing = append(missing, records.CountNode{Name: n.Name, UID: n.UID, From: records.FromStore})
		}
	}
	slices.SortStableFunc(missing, func(a, b records.CountNode) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return missing
}
