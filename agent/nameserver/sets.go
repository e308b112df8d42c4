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
		if old, ok := had[p.Ref]; !ok || !same(&old, p) {
			brief := ofDNS(p)
			had[p.Ref] = brief
			c.Sets = append(c.Sets, brief)
		}
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
	return a.Service == b.Service && a.Former == b.Former && a.Brief == b.Brief &&
		(sameList(a.Peers, b.Peers) || slices.Equal(a.Peers, b.Peers)) &&
		(sameList(a.Names, b.Names) || reflect.DeepEqual(a.Names, b.Names))
}

func sameList[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
