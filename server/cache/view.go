package cache

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

var _ View = (*state)(nil)

func (s *state) Rev() store.Rev              { return s.rev }
func (s *state) Epoch() int64                { return s.epoch }
func (s *state) EpochRev() store.Rev         { return s.epochRev }
func (s *state) ClusterID() string           { return s.cluster }
func (s *state) Leader() (string, store.Rev) { return s.leader, s.leaderCreated }

// Sets lists the sets that exist, by namespace and name.
func (s *state) Sets() []spec.SetRef {
	refs := make([]spec.SetRef, 0, len(s.sets))
	for ref, t := range s.sets {
		if t.set.record != nil {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, compareRef)
	return refs
}

func compareRef(a, b spec.SetRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (s *state) Set(ref spec.SetRef) (*records.Set, store.Rev) {
	t := s.sets[ref]
	if t == nil {
		return nil, 0
	}
	return t.set.record, t.set.mod
}

func (s *state) World(ref spec.SetRef) plan.World {
	w := plan.World{Rev: int64(s.rev), Epoch: s.epoch, Nodes: s.Nodes(), Broken: s.brokenOf(ref), Hold: s.hold}
	w.Count, _ = s.Count()
	t := s.sets[ref]
	if t == nil {
		return w
	}
	w.Nodes = s.nodesFor(t)
	w.Set, w.TemplateHash, w.Status = t.set.record, t.hash, t.status.record
	w.Revisions = t.byNumber
	w.Slots = make([]plan.Slot, len(t.slots))
	for i, l := range t.slots {
		w.Slots[i] = l.view
	}
	if w.Set != nil {
		w.Bootstrapped = s.boots[w.Set.UID]
		w.Budgets = s.budgetsOf(w.Set)
	}
	w.WasBootstrapped = s.wasBoot[ref] != 0
	return w
}

// brokenOf names the records that cannot be read without which nothing is decided for a set.
func (s *state) brokenOf(ref spec.SetRef) []string {
	var keys []string
	for key := range s.broken {
		if key == store.CountKey {
			keys = append(keys, key) // nobody knows for whom is waited
		}
		if of, ok := store.RefOfKey(key); ok && of == ref {
			if kind, _ := store.Kind(key); kind != store.KindEvent && kind != store.KindStatus && kind != store.KindHistory && kind != store.KindVolumeReport {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

func (t *setState) sortRevisions() []*records.Revision {
	var list []*records.Revision
	for _, e := range t.revisions {
		if e.record != nil {
			list = append(list, e.record)
		}
	}
	slices.SortFunc(list, func(a, b *records.Revision) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Hash, b.Hash))
	})
	return list
}

func (s *state) Member(id spec.Identity) (*records.Member, store.Rev) {
	l := s.lookup(id)
	return l.member.record, l.member.mod
}

func (s *state) Report(id spec.Identity) (*records.Report, store.Rev) {
	l := s.lookup(id)
	return l.report.record, l.report.mod
}

func (s *state) Identity(id spec.Identity) (*records.IdentityRecord, store.Rev) {
	l := s.lookup(id)
	return l.identity.record, l.identity.mod
}

func (s *state) RequestRev(id spec.Identity) store.Rev { return s.lookup(id).request.mod }

func (s *state) Status(ref spec.SetRef) (*records.SetStatus, store.Rev) {
	t := s.sets[ref]
	if t == nil {
		return nil, 0
	}
	return t.status.record, t.status.mod
}

func (s *state) Revision(ref spec.SetRef, h spec.RevisionHash) (*records.Revision, store.Rev) {
	t := s.sets[ref]
	if t == nil {
		return nil, 0
	}
	e := t.revisions[h]
	return e.record, e.mod
}

// Volumes lists the set's volumes by ordinal and claim.
func (s *state) Volumes(ref spec.SetRef) []*records.Volume {
	t := s.sets[ref]
	if t == nil {
		return nil
	}
	var list []*records.Volume
	for _, l := range t.slots {
		for _, claim := range slices.Sorted(maps.Keys(l.view.Volumes)) {
			list = append(list, l.view.Volumes[claim])
		}
	}
	return list
}

func (s *state) VolumeRev(id spec.Identity, c spec.ClaimName) store.Rev {
	return s.lookup(id).volumes[c].mod
}

func (s *state) Strays(id spec.Identity) []plan.NodeStray { return s.strays[id] }

func (s *state) MembersOn(node spec.NodeName) []spec.Identity {
	n := s.nodes[node]
	if n == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(n.members), compareIdentity)
}

func compareIdentity(a, b spec.Identity) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Set, b.Set), cmp.Compare(a.Ordinal, b.Ordinal))
}

// Nodes lists the nodes that have a record, by name. A session or facts of
// another uid than the record's are not the node's (SAFETY S9).
func (s *state) Nodes() []plan.Node { return s.nodeList }

// listNodes makes the list that Nodes hands out; it is never changed afterwards.
func (s *state) listNodes() []plan.Node {
	var list []plan.Node
	for _, n := range s.nodes {
		if n.node.record == nil {
			continue
		}
		p := plan.Node{
			Node: n.node.record, Labels: n.node.record.AllLabels(),
			Lives: len(n.members), CPUMillis: n.cpuMillis, MemoryBytes: n.memoryBytes,
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
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b plan.Node) int { return strings.Compare(string(a.Node.Name), string(b.Node.Name)) })
	return list
}

func (s *state) Session(node spec.NodeName) (*records.Session, store.Rev) {
	n := s.nodes[node]
	if n == nil {
		return nil, 0
	}
	return n.session.record, n.session.mod
}

func (s *state) NodeRevs(node spec.NodeName) (record, facts, session store.Rev) {
	n := s.nodes[node]
	if n == nil {
		return 0, 0, 0
	}
	return n.node.mod, n.facts.mod, n.session.mod
}

func (s *state) FenceRev(node spec.NodeName) store.Rev {
	n := s.nodes[node]
	if n == nil {
		return 0
	}
	return n.fence.mod
}

// Services lists the services of a namespace by name.
func (s *state) Services(ns spec.Namespace) []*records.ServiceRecord {
	var list []*records.ServiceRecord
	for _, name := range slices.Sorted(maps.Keys(s.services[ns])) {
		if r := s.services[ns][name].record; r != nil {
			list = append(list, r)
		}
	}
	return list
}

func (s *state) Config(ns spec.Namespace, name string) (*records.ConfigRecord, store.Rev) {
	e := s.configs[store.ConfigKey(ns, name)]
	return e.record, e.mod
}

func (s *state) Secret(ns spec.Namespace, name string) (*records.SecretRecord, store.Rev) {
	e := s.secrets[store.SecretKey(ns, name)]
	return e.record, e.mod
}

// Events lists the events of a set by key.
func (s *state) Events(ref spec.SetRef) []*records.Event {
	t := s.sets[ref]
	if t == nil {
		return nil
	}
	var list []*records.Event
	for _, name := range slices.Sorted(maps.Keys(t.events)) {
		if r := t.events[name].record; r != nil {
			list = append(list, r)
		}
	}
	return list
}

func (s *state) EventNames(ref spec.SetRef) map[string]*records.Event {
	names := map[string]*records.Event{}
	if t := s.sets[ref]; t != nil {
		for name, e := range t.events {
			if e.record != nil {
				names[name] = e.record
			}
		}
	}
	return names
}

func (s *state) History(ref spec.SetRef) History {
	t := s.sets[ref]
	if t == nil {
		return History{}
	}
	h := History{Base: t.base.record, BaseRev: t.base.mod, PageRevs: make(map[int64]store.Rev, len(t.pages))}
	for page, e := range t.pages {
		h.PageRevs[page] = e.mod
	}
	h.Pages = t.pageList
	return h
}

func (t *setState) sortPages() []*records.HistoryPage {
	var list []*records.HistoryPage
	for _, page := range slices.Sorted(maps.Keys(t.pages)) {
		if r := t.pages[page].record; r != nil {
			list = append(list, r)
		}
	}
	return list
}

func (s *state) LastChange(ref spec.SetRef) (last records.ChangeID) {
	if t := s.sets[ref]; t != nil && len(t.pageList) > 0 {
		last = records.LastChange(t.pageList[len(t.pageList)-1].Changes)
	}
	return last
}

func (s *state) Addresses() map[string]*records.AddressRecord { return s.addresses }

func (s *state) AddressRev(ip string) store.Rev { return s.addrRevs[ip] }

func (s *state) Bootstrapped(uid spec.UID) bool { return s.boots[uid] }

func (s *state) WasBootstrapped(ref spec.SetRef) store.Rev { return s.wasBoot[ref] }
