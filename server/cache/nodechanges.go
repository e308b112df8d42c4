package cache

import (
	"maps"
	"slices"
	"sync"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// NodeChanges names what moved of all that one node is sent.
type NodeChanges struct {
	All  bool // anything may have changed, as in Changes
	Self bool // a record of the node
	// Members are the identities with a life or volume on the node, now or before, or with a life
	// that it runs and the store does not know, of which a record moved.
	Members map[spec.Identity]bool
	// Sets have a member on the node, and something moved that all members are told with their life.
	Sets map[spec.SetRef]bool
	// Histories are those of sets that have a member on the node. They are gathered, and wake nobody.
	Histories map[spec.SetRef]bool
	Files     bool // a ConfigMap or Secret, of any namespace
}

// Add takes over what o names.
func (c *NodeChanges) Add(o *NodeChanges) {
	c.All, c.Self, c.Files = c.All || o.All, c.Self || o.Self, c.Files || o.Files
	note(&c.Members, o.Members)
	note(&c.Sets, o.Sets)
	note(&c.Histories, o.Histories)
}

// note adds what there is of more; most of it is mostly empty.
func note[K comparable](to *map[K]bool, more map[K]bool) {
	if len(more) == 0 {
		return
	}
	if *to == nil {
		*to = make(map[K]bool, len(more))
	}
	maps.Copy(*to, more)
}

// on are the changes for a node, made when there are none.
func (c *Changes) on(node spec.NodeName) *NodeChanges {
	n := c.nodes[node]
	if n == nil {
		n = &NodeChanges{}
		c.nodes[node] = n
	}
	return n
}

// noteMember notes a change of an identity for each of nodes.
func (c *Changes) noteMember(id spec.Identity, nodes []spec.NodeName) {
	c.Members[id] = true
	only := map[spec.Identity]bool{id: true}
	for _, node := range nodes {
		note(&c.on(node).Members, only)
	}
}

// noteSet notes for the nodes with a member of the set what its members are told of it.
func (c *Changes) noteSet(t *setState) {
	only := map[spec.SetRef]bool{t.ref: true}
	for node := range t.on {
		note(&c.on(node).Sets, only)
	}
}

// noteHistory notes a change of the set's history for the nodes with a member of it.
func (c *Changes) noteHistory(t *setState) {
	only := map[spec.SetRef]bool{t.ref: true}
	for node := range t.on {
		note(&c.on(node).Histories, only)
	}
}

// nodes are those that are sent something of the identity: with a life of it or one of its
// volumes, that run a life of it which the store does not know, or that report of a volume.
func (l *slot) nodes() (nodes []spec.NodeName) {
	if m := l.member.record; m != nil {
		nodes = append(nodes, m.Node)
	}
	for _, e := range l.volumes {
		if e.record != nil {
			nodes = append(nodes, e.record.Node)
		}
	}
	for _, e := range l.reports {
		if e.record != nil {
			nodes = append(nodes, e.record.Node)
		}
	}
	nodes = append(nodes, ends(l.move.record)...)
	for _, stray := range l.view.Strays {
		nodes = append(nodes, stray.Node)
	}
	return nodes
}

// used reports whether a volume of the identity was used.
func (l *slot) used() bool { return plan.VolumesState(&l.view) == records.VolumesUsed }

// changeSlot has change move a record of the identity's slot, and notes it for the nodes
// that it concerns, before and after; and for all of the set when the identity's volumes
// became used, which is told with every life.
func (s *state) changeSlot(t *setState, id spec.Identity, ch *Changes, change func(l *slot) error) error {
	l := t.slot(id)
	nodes, used := l.nodes(), l.used()
	err := change(l)
	l.refresh(s)
	ch.noteMember(id, append(nodes, l.nodes()...))
	if l.used() != used {
		ch.noteSet(t)
	}
	t.dropIdle(s, id)
	return err
}

// NodeSubscription gathers what changed for one node between two calls of Take, and never loses a
// wake-up.
type NodeSubscription struct {
	cache   *Cache
	node    spec.NodeName
	changed *notify.Signal // notified while gathered has more than histories

	mu       sync.Mutex
	gathered *NodeChanges
	follows  map[spec.Identity]bool // see Follow
}

// Follow replaces the identities whose records are of interest wherever they are. Called within
// Look, it misses none that was not in the view.
func (s *NodeSubscription) Follow(ids map[spec.Identity]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(ids)+len(s.follows) > 0 {
		s.cache.following.set(s, len(ids) > 0)
	}
	s.follows = ids
}

// followed adds those of members that are followed.
func (s *NodeSubscription) followed(members map[spec.Identity]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gathered.Members == nil {
		s.gathered.Members = map[spec.Identity]bool{}
	}
	for id := range s.follows {
		if members[id] {
			s.gathered.Members[id] = true
			s.changed.Notify()
		}
	}
}

// SubscribeNode returns a subscription that is woken by what concerns a node. Its first Take
// says All.
func (c *Cache) SubscribeNode(node spec.NodeName) *NodeSubscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &NodeSubscription{cache: c, node: node, changed: notify.New(), gathered: &NodeChanges{}}
	c.nodeSubs[node] = append(c.nodeSubs[node], s)
	s.add(&NodeChanges{All: true})
	return s
}

func (s *NodeSubscription) add(ch *NodeChanges) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathered.Add(ch)
	if !ch.onlyHistories() {
		s.changed.Notify()
	}
}

// onlyHistories: nobody is woken for these changes.
func (c *NodeChanges) onlyHistories() bool {
	return !c.All && !c.Self && !c.Files && len(c.Members)+len(c.Sets) == 0
}

// C receives when there is something to Take.
func (s *NodeSubscription) C() <-chan struct{} { return s.changed.C() }

// Take returns what changed since the last Take, and starts again. It does not block.
func (s *NodeSubscription) Take() NodeChanges {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := *s.gathered
	*s.gathered = NodeChanges{}
	return ch
}

// following are the subscriptions that follow identities: few, so that a change costs nothing for the others.
type following struct {
	mu   sync.Mutex
	subs map[*NodeSubscription]bool
}

func (f *following) set(s *NodeSubscription, follows bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !follows {
		delete(f.subs, s)
		return
	}
	if f.subs == nil {
		f.subs = map[*NodeSubscription]bool{}
	}
	f.subs[s] = true
}

// list is in any order.
func (f *following) list() []*NodeSubscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.subs))
}

// Close ends it: nothing is gathered any more.
func (s *NodeSubscription) Close() {
	s.Follow(nil)
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	rest := slices.DeleteFunc(s.cache.nodeSubs[s.node], func(o *NodeSubscription) bool { return o == s })
	s.cache.nodeSubs[s.node] = rest
	if len(rest) == 0 {
		delete(s.cache.nodeSubs, s.node)
	}
}

// publishToNodes wakes those subscriptions that ch concerns; the cache is locked.
func (c *Cache) publishToNodes(ch *Changes) {
	if len(ch.Members) > 0 {
		for _, s := range c.following.list() {
			s.followed(ch.Members)
		}
	}
	if ch.All || ch.files {
		for _, subs := range c.nodeSubs {
			for _, s := range subs {
				s.add(&NodeChanges{All: ch.All, Files: ch.files})
			}
		}
	}
	for node, changes := range ch.nodes {
		for _, s := range c.nodeSubs[node] {
			s.add(changes)
		}
	}
}

// NodeView is what of a View is on one node.
type NodeView struct {
	View
	name spec.NodeName
}

// On is what is on a node; there may be nothing of it.
func (v View) On(node spec.NodeName) NodeView { return NodeView{v, node} }

// Sets lists the sets that have a member there, sorted.
func (v NodeView) Sets() []spec.SetRef {
	n := v.nodes[v.name]
	if n == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(n.sets), spec.SetRef.Compare)
}

// HasMemberOf reports whether the set has a member there.
func (v NodeView) HasMemberOf(ref spec.SetRef) bool {
	n := v.nodes[v.name]
	return n != nil && n.sets[ref]
}

// MembersOf lists the members of the set whose life is there, by ordinal.
func (v NodeView) MembersOf(ref spec.SetRef) (ids []spec.Identity) {
	for _, l := range v.find(ref).slots {
		if m := l.member.record; m != nil && m.Node == v.name {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// wayOf is from where to where the members of a set are on their way, as far as its status says it.
func wayOf(s *records.SetStatus) [2]spec.RevisionHash {
	if s == nil {
		return [2]spec.RevisionHash{}
	}
	return [2]spec.RevisionHash{s.CurrentRevision, s.RolledBackFrom}
}

// formerOf is the former service of the set, which its members are told with their lives.
func (t *setState) formerOf() string {
	if t.set.record == nil {
		return ""
	}
	return plan.Former(t.set.record, t.status.record, nil)
}
