package records

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/spec"
)

// Link is one link of a store's chain. The leader adds one after the store has changed,
// at most every few seconds, and never changes one that was added: two stores with
// different links of one number are not the same store, whatever their revisions say
// (SAFETY S8).
type Link struct {
	Number int64  `json:"number"` // grows by one with each link; 0: none
	Nonce  string `json:"nonce"`  // random
}

// Chain is the value of the store's key "continuity": its newest links, oldest first.
type Chain struct {
	Links []Link `json:"links"`
}

// Newest is the last link; zero: the chain is empty.
func (c Chain) Newest() Link {
	if len(c.Links) == 0 {
		return Link{}
	}
	return c.Links[len(c.Links)-1]
}

// Known is what a server or a node has heard of the store so far: the highest of
// everything, from any message. It is kept on the disk of who heard it (SAFETY S8).
type Known struct {
	Cluster string        `json:"cluster,omitempty"` // Stead's cluster id
	Origin  string        `json:"origin,omitempty"`  // the store's own cluster id; a memory store has one, too
	Term    uint64        `json:"term,omitempty"`    // the store's raft term
	At      spec.Sequence `json:"at"`
	Link    Link          `json:"link,omitzero"`
	// Nodes are all nodes that a server has heard of and that were not removed. A node's
	// own memory has none.
	Nodes map[spec.NodeName]spec.UID `json:"nodes,omitempty"`
}

// Gap says why a store that is at now, with chain, is not the continuation of what k
// remembers; empty: it is. Another epoch that is higher is a restore that was declared,
// and no gap. A k that remembers nothing finds none.
func (k Known) Gap(now Known, chain Chain) string {
	switch {
	case k.At.Epoch == 0 || now.At.Epoch > k.At.Epoch:
		return ""
	case k.Cluster != "" && now.Cluster != k.Cluster:
		return fmt.Sprintf("it is of cluster %s, not of cluster %s", now.Cluster, k.Cluster)
	case now.At.Epoch < k.At.Epoch:
		return fmt.Sprintf("it is at epoch %d, and epoch %d is known", now.At.Epoch, k.At.Epoch)
	case k.Origin != "" && now.Origin != "" && now.Origin != k.Origin:
		return fmt.Sprintf("etcd names itself %s, and was %s", now.Origin, k.Origin)
	case now.At.Rev < k.At.Rev:
		return fmt.Sprintf("it is at revision %d, and revision %d is known", now.At.Rev, k.At.Rev)
	case now.Term < k.Term:
		return fmt.Sprintf("etcd is at term %d, and term %d is known", now.Term, k.Term)
	case chain.Newest().Number < k.Link.Number:
		return "changes that are known are missing in it"
	}
	for _, l := range chain.Links {
		if l.Number == k.Link.Number && l.Nonce != k.Link.Nonce {
			return "changes that are known are missing in it, and others were made in their place"
		}
	}
	return ""
}

// Hold is the value of the store's key "hold". While it exists no server writes anything
// that begins, ends, places, frees or gives up a life, a volume or an address: each such
// transaction compares that the key is absent. Only "stead restore" removes it.
type Hold struct {
	Cause string    `json:"cause"` // for people: what was noticed
	By    string    `json:"by"`    // who noticed: "server NAME", "node NAME", or a person
	At    time.Time `json:"at"`    // shown, never compared
	// Ended: a person has ended the store that names itself so, and what it had goes on in another one. "": it was not ended.
	Ended string `json:"ended,omitempty"`
}

// Count is the value of the store's key "count": which nodes have to say, after a restore,
// what they run, before anything starts, moves, is freed or given up (SAFETY S8).
type Count struct {
	Epoch int64       `json:"epoch"` // that of the restore
	Nodes []CountNode `json:"nodes"` // by name
	By    string      `json:"by"`    // who declared the restore
	At    time.Time   `json:"at"`    // shown, never compared
	// Done is set once every node was heard or excused. It is never unset in this epoch.
	Done bool `json:"done,omitempty"`
}

// Open: in a store of this epoch, nodes are waited for.
func (c *Count) Open(epoch int64) bool { return c != nil && c.Epoch == epoch && !c.Done }

// With is c with those of nodes that it does not name yet, by name. c is not changed.
func (c Count) With(from string, nodes map[spec.NodeName]spec.UID) Count {
	named := map[spec.UID]bool{}
	for _, n := range c.Nodes {
		named[n.UID] = true
	}
	c.Nodes = slices.Clone(c.Nodes)
	for name, uid := range nodes {
		if !named[uid] {
			c.Nodes = append(c.Nodes, CountNode{Name: name, UID: uid, From: from})
		}
	}
	slices.SortFunc(c.Nodes, func(a, b CountNode) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return c
}

// CountNode is one node that a count waits for.
type CountNode struct {
	Name spec.NodeName `json:"name"`
	UID  spec.UID      `json:"uid"`
	From string        `json:"from"` // how it became known: one of the constants From…
	// Off is who said that the machine is off, and so need not be heard; empty: nobody.
	Off string `json:"off,omitempty"`
}

// How a count knows a node.
const (
	FromStore  = "store"  // the backup has it
	FromServer = "server" // a server remembered it
	FromHello  = "hello"  // it has joined since
)

// Refusal is the sentence for whoever wants something changed while h stands.
func (h *Hold) Refusal() string {
	if h.Ended != "" {
		return fmt.Sprintf("%s: %s; nothing is changed in it; running members are not affected; see 'stead restore --status'", h.By, h.Cause)
	}
	return fmt.Sprintf("%s says that the store went back: %s; nothing is changed until an operator has run 'stead restore'; running members are not affected", h.By, h.Cause)
}

// Add is k with what now says of the same store: the highest of each. A higher epoch is a
// restore that was declared: what was known of the store before counts no more, and a lower
// one adds nothing. Nodes stay as they are in k.
func (k Known) Add(now Known) Known {
	switch {
	case now.At.Epoch < k.At.Epoch:
		return k
	case now.At.Epoch > k.At.Epoch:
		now.Nodes = k.Nodes
		return now
	}
	if now.Cluster != "" {
		k.Cluster = now.Cluster
	}
	if now.Origin != "" {
		k.Origin = now.Origin
	}
	k.Term, k.At.Rev = max(k.Term, now.Term), max(k.At.Rev, now.At.Rev)
	if now.Link.Number > k.Link.Number {
		k.Link = now.Link
	}
	return k
}

// RestoreState is how it stands with a store that went back, and with its restore, for
// people.
type RestoreState struct {
	State string `json:"state"` // one of the constants Restore…
	Epoch int64  `json:"epoch"`
	// Cause is what was noticed, of a held store; By and At tell who held it, or declared
	// the restore.
	Cause string    `json:"cause,omitempty"`
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// Ended: a person has ended the held store, or the one of which it is a copy.
	Ended bool `json:"ended,omitempty"`
	// Nodes are those of the count. Of a held store: those that a restore would wait for.
	Nodes []RestoreNode `json:"nodes,omitempty"`
	Next  string        `json:"next,omitempty"` // what to do, for people
}

// The states of a restore.
const (
	RestoreNever    = "Never"    // nobody holds the store, and it was never restored
	RestoreHeld     = "Held"     // it went back, and nothing is done before a restore is declared
	RestoreCounting = "Counting" // it was declared, and nodes are waited for
	RestoreComplete = "Complete" // every node was heard or excused
)

// RestoreNode is a node of a count.
type RestoreNode struct {
	CountNode
	State string `json:"state"` // one of the constants Node…
	// Connected: it has a session.
	Connected bool `json:"connected,omitempty"`
}

// The states of a node of a count.
const (
	NodeHeard   = "Heard"   // it has said since the restore what it runs
	NodeWaited  = "Waited"  // it has not
	NodeExcused = "Excused" // it has not, and a person says that it is off
)
