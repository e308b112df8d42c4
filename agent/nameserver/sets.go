package nameserver

import (
	"reflect"
	"slices"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// sets are all sets, by reference.
type sets []records.Snapshot

func (s sets) find(ref spec.SetRef) (int, bool) {
	if n := len(s); n > 0 && s[n-1].Ref.Compare(ref) < 0 {
		return n, false // as they come when they come in order
	}
	return slices.BinarySearchFunc(s, ref, func(p records.Snapshot, r spec.SetRef) int { return p.Ref.Compare(r) })
}

// apply makes them what a change leads to.
func (s *sets) apply(c *change) {
	if c.Whole {
		*s = nil
	}
	for _, ref := range c.Gone {
		if at, found := s.find(ref); found {
			*s = slices.Delete(*s, at, at+1)
		}
	}
	for _, p := range c.Sets {
		at, found := s.find(p.Ref)
		if found {
			(*s)[at] = p
		} else {
			*s = slices.Insert(*s, at, p)
		}
	}
	for _, c := range c.Peers {
		if at, found := s.find(c.Set); found {
			(*s)[at].Peers = c.of((*s)[at].Peers)
		}
	}
}

// of is what peers become, in a list of its own; they are ascending.
func (c *peersChange) of(peers []records.Peer) []records.Peer {
	out, came := make([]records.Peer, 0, len(peers)+len(c.Peers)), c.Peers
	for _, p := range peers {
		for len(came) > 0 && came[0].Ordinal < p.Ordinal {
			out, came = append(out, came[0]), came[1:]
		}
		switch {
		case len(came) > 0 && came[0].Ordinal == p.Ordinal:
			out, came = append(out, came[0]), came[1:]
		case !slices.Contains(c.Left, p.Ordinal):
			out = append(out, p)
		}
	}
	return append(out, came...)
}

// peersDifference leads from peers to next, both ascending; false: they are not, or most of them differ.
func peersDifference(ref spec.SetRef, peers, next []records.Peer) (c peersChange, ok bool) {
	ascending := func(list []records.Peer) bool {
		for i := 1; i < len(list); i++ {
			if list[i-1].Ordinal >= list[i].Ordinal {
				return false
			}
		}
		return true
	}
	if !ascending(peers) || !ascending(next) {
		return c, false
	}
	c.Set = ref
	for i := range next {
		for len(peers) > 0 && peers[0].Ordinal < next[i].Ordinal {
			c.Left, peers = append(c.Left, peers[0].Ordinal), peers[1:]
		}
		if len(peers) > 0 && peers[0].Ordinal == next[i].Ordinal {
			same := peers[0] == next[i]
			peers = peers[1:]
			if same {
				continue
			}
		}
		c.Peers = append(c.Peers, next[i])
	}
	for i := range peers {
		c.Left = append(c.Left, peers[i].Ordinal)
	}
	return c, len(c.Peers)+len(c.Left) <= len(next)/2
}

// snapshot is what a zone is made from after a change.
func (s sets) snapshot(c *change) dnsd.Snapshot {
	out := dnsd.Snapshot{
		Domain: c.Domain, Sequence: c.Sequence, Gateway: c.Gateway, Members: c.Members, Services: c.Services, Pictures: s,
	}
	for i := range s {
		if s[i].Brief {
			out.Others = append(out.Others, s[i].SetNames())
		}
	}
	return out
}

// difference leads from the sets that a process has, by reference, to those of next; had becomes what it has then. nil:
// the process has nothing yet.
func difference(had map[spec.SetRef]records.Snapshot, next *dnsd.Snapshot) (*change, map[spec.SetRef]records.Snapshot) {
	c := &change{
		Sequence: next.Sequence, Domain: next.Domain, Gateway: next.Gateway, Members: next.Members, Services: next.Services, Whole: had == nil,
	}
	if had == nil {
		had = make(map[spec.SetRef]records.Snapshot, len(next.Pictures))
	}
	there := 0
	for i := range next.Pictures {
		p := &next.Pictures[i]
		if p.Gone {
			continue
		}
		there++
		old, ok := had[p.Ref]
		if ok && same(&old, p) {
			continue
		}
		brief := ofDNS(p)
		had[p.Ref] = brief
		if ok && sameButPeers(&old, p) {
			if d, few := peersDifference(p.Ref, old.Peers, p.Peers); few {
				c.Peers = append(c.Peers, d)
				continue
			}
		}
		c.Sets = append(c.Sets, brief)
	}
	if there == len(had) {
		return c, had
	}
	left := make(map[spec.SetRef]bool, there)
	for i := range next.Pictures {
		left[next.Pictures[i].Ref] = !next.Pictures[i].Gone
	}
	for ref := range had {
		if !left[ref] {
			delete(had, ref)
			c.Gone = append(c.Gone, ref)
		}
	}
	return c, had
}

// ofDNS is what DNS reads of a set.
func ofDNS(p *records.Snapshot) records.Snapshot {
	return records.Snapshot{
		Ref: p.Ref, Service: p.Service, Former: p.Former, Peers: p.Peers, Names: p.Names, Brief: p.Brief,
	}
}

// same reports whether DNS reads the same of both. Lists that are one and the same are not looked at.
func same(a, b *records.Snapshot) bool {
	return sameButPeers(a, b) && (sameList(a.Peers, b.Peers) || slices.Equal(a.Peers, b.Peers))
}

func sameButPeers(a, b *records.Snapshot) bool {
	return a.Service == b.Service && a.Former == b.Former && a.Brief == b.Brief && (sameList(a.Names, b.Names) || reflect.DeepEqual(a.Names, b.Names))
}

func sameList[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
