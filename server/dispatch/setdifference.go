package dispatch

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// difference leads from one snapshot of a set to the next.
type difference struct {
	next  records.Snapshot // what it becomes, but for its peers
	head  bool             // next differs in what is not its peers', the last change aside
	told  bool             // next differs in the last change
	peers []records.Peer   // that are new or changed, by ordinal
	left  []int            // ordinals that are not peers any more
}

// empty reports whether there is nothing to publish.
func (d *difference) empty() bool {
	return !d.head && !d.told && len(d.peers)+len(d.left) == 0
}

// size is how much it says, in peers.
func (d *difference) size() int { return 1 + len(d.peers) + len(d.left) }

// message is d on the wire, between two numbers.
func (d *difference) message(base, number uint64, domain string) *proto.SetDifference {
	m := &proto.SetDifference{
		Set: wire.SetName(d.next.Ref), Sequence: wire.Sequence(d.next.Sequence), Base: base, Number: number, Gone: d.next.Gone,
		Brief: d.next.Brief,
	}
	if d.next.Gone {
		return m
	}
	if d.head {
		m.Head = wire.SetHead(&d.next, domain)
	}
	if d.told {
		m.LastChange = wire.SetChange(d.next.Told)
	}
	for i := range d.peers {
		m.Peers = append(m.Peers, wire.SetPeer(&d.next, &d.peers[i], domain))
	}
	for _, o := range d.left {
		m.Left = append(m.Left, int32(o))
	}
	return m
}

// inBrief is the difference between the two snapshots in brief.
func (d *difference) inBrief(old *records.Snapshot) difference {
	was, next := *old, d.next
	was.Peers, next.Peers = nil, nil
	was, next = was.InBrief(), next.InBrief()
	b := difference{next: next, head: !sameHead(&was, &next), left: d.left}
	for _, p := range d.peers {
		p = p.InBrief()
		if at, there := findPeer(old.Peers, p.Ordinal); !there || old.Peers[at].InBrief() != p {
			b.peers = append(b.peers, p)
		}
	}
	return b
}

// apply makes of the snapshot d was taken of the one it leads to, in place.
func (d *difference) apply(s *records.Snapshot) {
	peers := s.Peers
	*s = d.next
	s.Peers = peers
	for _, o := range d.left {
		if at, there := findPeer(s.Peers, o); there {
			s.Peers = slices.Delete(s.Peers, at, at+1)
		}
	}
	for _, p := range d.peers {
		at, there := findPeer(s.Peers, p.Ordinal)
		if there {
			s.Peers[at] = p
		} else {
			s.Peers = slices.Insert(s.Peers, at, p)
		}
	}
}

func findPeer(peers []records.Peer, ordinal int) (at int, there bool) {
	return slices.BinarySearchFunc(peers, ordinal, func(p records.Peer, o int) int { return cmp.Compare(p.Ordinal, o) })
}

// compareSnapshots is the difference between two snapshots of a set, by a look at all of both.
func compareSnapshots(old, next *records.Snapshot) difference {
	d := difference{next: *next, head: !sameHead(old, next), told: old.Told != next.Told}
	d.next.Peers = nil
	had := old.Peers
	for _, p := range next.Peers {
		for len(had) > 0 && had[0].Ordinal < p.Ordinal {
			d.left, had = append(d.left, had[0].Ordinal), had[1:]
		}
		same := len(had) > 0 && had[0] == p
		if len(had) > 0 && had[0].Ordinal == p.Ordinal {
			had = had[1:]
		}
		if !same {
			d.peers = append(d.peers, p)
		}
	}
	for _, p := range had {
		d.left = append(d.left, p.Ordinal)
	}
	return d
}

// sameHead reports whether two snapshots differ in their peers and the last change at most.
func sameHead(a, b *records.Snapshot) bool {
	return a.Gone == b.Gone && a.UID == b.UID && a.Generation == b.Generation && a.Replicas == b.Replicas &&
		a.InitialReplicas == b.InitialReplicas && slices.Equal(a.InitialOrdinals, b.InitialOrdinals) &&
		a.Bootstrapped == b.Bootstrapped && a.Service == b.Service && a.Former == b.Former &&
		reflect.DeepEqual(a.Names, b.Names) && reflect.DeepEqual(a.Policies, b.Policies) && slices.Equal(a.Expected, b.Expected)
}

// touch is what of a set may differ from what was published.
type touch struct {
	all      bool // anything
	services bool // the services of its namespace
	policies bool // its NetworkPolicies, or what these name
	ordinals map[int]bool
}

// sight is the store as one round sees it, for all sets.
type sight struct {
	cache.View
	seq    spec.Sequence
	judge  *proof.Judge
	domain string
	sets   map[spec.Namespace][]*records.Set // nil: not needed yet
}

func newSight(v cache.View, domain string) *sight {
	return &sight{View: v, seq: sequence(v), judge: proof.NewJudge(v.Nodes(), v.Epoch()), domain: domain}
}

// build is the set as it is to be published: the definition of all differences.
func (s *sight) build(ref spec.SetRef) records.Snapshot {
	if name, is := ref.ServiceName(); is {
		of := cache.FindService(s.View, ref.Namespace, name)
		return serviceSnapshot(s.seq, ref, of, serviceEndpoints(s.View, of))
	}
	snap := BuildSnapshot(s.seq, ref, s.World(ref), s.Services(ref.Namespace), s.domain)
	if !snap.Gone {
		snap.Told, snap.Policies = s.LastChange(ref), s.policies(s.Set(ref))
	}
	return snap
}

// difference is what differs from what was published of a set (nil: nothing was), by a look at
// what was touched. It costs what that is, unless the whole set may differ.
func (s *sight) difference(ref spec.SetRef, was *publishedSet, t *touch) difference {
	set, status := s.Set(ref), s.Status(ref)
	// Without the name in the status the former service is looked for among all members.
	if was == nil || t.all || set == nil || set != was.set || status == nil || status.ServiceName == "" ||
		plan.Former(set, status, nil) != was.body.Former {
		old, next := &records.Snapshot{}, s.build(ref)
		if was != nil {
			old = &was.body
		}
		return compareSnapshots(old, &next)
	}
	return s.patch(set, &was.body, t)
}

// patch is the difference of a set whose record, and former service, are those of old.
func (s *sight) patch(set *records.Set, old *records.Snapshot, t *touch) difference {
	f := newFrame(set, old.Former, s.judge, s.domain)
	d := difference{next: *old}
	d.next.Peers, d.next.Sequence = nil, s.seq
	d.next.Bootstrapped, d.next.Told = s.Bootstrapped(set.UID), s.LastChange(set.Ref)
	if t.services {
		d.next.Names = names(set, old.Former, s.Services(set.Ref.Namespace))
	}
	if t.policies {
		d.next.Policies = s.policies(set)
	}
	d.next.Expected = slices.DeleteFunc(slices.Clone(old.Expected), func(p records.Peer) bool { return t.ordinals[p.Ordinal] })
	for _, ordinal := range slices.Sorted(maps.Keys(t.ordinals)) {
		slot := cache.OfSet(s.View, set.Ref).Slot(ordinal)
		peer, kind := f.peer(&slot)
		at, there := findPeer(old.Peers, ordinal)
		switch {
		case kind == listedPeer && (!there || old.Peers[at] != peer):
			d.peers = append(d.peers, peer)
		case kind != listedPeer && there:
			d.left = append(d.left, ordinal)
		}
		if kind == expectedPeer {
			at, _ := findPeer(d.next.Expected, ordinal)
			d.next.Expected = slices.Insert(d.next.Expected, at, peer)
		}
	}
	d.head, d.told = !sameHead(old, &d.next), old.Told != d.next.Told
	return d
}
