// Package cache mirrors the store in memory and cuts plan.World out of it. It
// moves only by delivered watch events (SAFETY S18); engine, dispatch and control
// of one server share one Cache.
package cache

import (
	"context"
	"maps"
	"sync"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Reader is what engine, dispatch and control read. Records are shared by all
// readers and must not be changed. Every method is one consistent read; use Look
// for several reads at one revision.
type Reader interface {
	// Wait blocks until the cache has reached rev (a linearizable-enough read after
	// one's own write), or ctx ends.
	Wait(ctx context.Context, rev store.Rev) error
	// Look calls f with the cache held still. f must not block nor keep the view.
	Look(f func(View))
	// Subscribe returns a subscription that is woken by every change. Its first
	// Take says All as soon as the cache has been loaded.
	Subscribe() *Subscription
	// SubscribeNode returns one that is woken by what concerns a node.
	SubscribeNode(node spec.NodeName) *NodeSubscription
}

// Memory is the value of known/<server> as far as it matters to a restore.
type Memory struct {
	Server string
	Nodes  map[spec.NodeName]spec.UID
	Epoch  int64
	Rev    store.Rev // the key's mod-revision
}

// History is a set's history as it is stored, valid as long as its View: all of it is shared and must not be
// changed. Pages are ascending; an unreadable base or page is left out.
type History struct {
	Base    *records.HistoryBase // nil: none
	BaseRev store.Rev            // also of an unreadable one
	Pages   []*records.HistoryPage
	// PageRevs holds the mod-revision of every page there is, by its number.
	PageRevs map[int64]store.Rev
}

// Changes names what moved. All is set after the cache was loaded again, when a hold
// began or ended, and when a restore waits for other nodes or is complete: anything may have changed.
type Changes struct {
	All        bool
	Sets       map[spec.SetRef]bool   // any record of the set
	Nodes      map[spec.NodeName]bool // node, facts or session
	Services   map[spec.Namespace]bool
	Policies   map[spec.Namespace]bool // its NetworkPolicies
	Members    map[spec.Identity]bool  // of which a record moved
	Leadership bool
	Room       bool // a life left its node: another may fit there
	Servers    bool // servers, and which keys they have

	nodes map[spec.NodeName]*NodeChanges // what concerns one node
	files bool                           // a ConfigMap or Secret
}

// Subscription gathers what changed between two calls of Take, and never loses a wake-up.
type Subscription struct {
	cache   *Cache
	changed *notify.Signal // notified while gathered is not empty

	mu       sync.Mutex
	gathered *Changes
}

func newChanges() *Changes {
	return &Changes{
		Sets: map[spec.SetRef]bool{}, Nodes: map[spec.NodeName]bool{},
		Services: map[spec.Namespace]bool{}, Policies: map[spec.Namespace]bool{}, nodes: map[spec.NodeName]*NodeChanges{}, Members: map[spec.Identity]bool{},
	}
}

// add merges ch and wakes the reader.
func (s *Subscription) add(ch *Changes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gathered
	g.All = g.All || ch.All
	g.Leadership = g.Leadership || ch.Leadership
	g.Room = g.Room || ch.Room
	g.Servers = g.Servers || ch.Servers
	maps.Copy(g.Sets, ch.Sets)
	maps.Copy(g.Nodes, ch.Nodes)
	maps.Copy(g.Services, ch.Services)
	maps.Copy(g.Policies, ch.Policies)
	maps.Copy(g.Members, ch.Members)
	s.changed.Notify()
}

// C receives when there is something to Take.
func (s *Subscription) C() <-chan struct{} { return s.changed.C() }

// Take returns what changed since the last Take, and starts again. It does not block; when
// nothing changed it returns empty Changes.
func (s *Subscription) Take() Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gathered.none() {
		return Changes{}
	}
	ch := *s.gathered
	s.gathered = newChanges()
	return ch
}

// none: nothing changed.
func (c *Changes) none() bool {
	return !c.All && !c.Leadership && !c.Room && !c.Servers && len(c.Sets)+len(c.Nodes)+len(c.Services)+len(c.Policies)+len(c.Members) == 0
}

// Close ends it: nothing is gathered any more.
func (s *Subscription) Close() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	delete(s.cache.subs, s)
}
