package dnsd

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// others are the sets of which only the names are known, found by service. They never change
// and zones share them; those of the next zone share the buckets in which nothing changed.
type others struct {
	given   []records.SetNames // as they came
	sorted  []records.SetNames // the same by set
	buckets *[otherBuckets]bucket
}

// otherBuckets is so many that those of 10,000 sets have some ten entries each.
const otherBuckets = 1 << 10

// bucket is sorted by key, then set.
type bucket []other

// other is a set below one of its services; or, without a name of a set, a namespace that has sets.
type other struct {
	key        string // the labels of service and namespace as in a wire name; or the namespace's alone
	set        spec.SetRef
	first, end int // ordinals, see records.SetNames
	sets       int // of the namespace
}

var bucketSeed = maphash.MakeSeed()

// next is the others of another list, made from those of the one before (nil: none). It keeps
// the list, which must not change any more.
func (o *others) next(list []records.SetNames) *others {
	if o == nil {
		o = &others{buckets: new([otherBuckets]bucket)}
	}
	switch {
	case len(list) == 0:
		return nil
	case len(list) == len(o.given) && &list[0] == &o.given[0]:
		return o
	}
	sorted := list
	if !isSorted(list) {
		sorted = slices.Clone(list)
		slices.SortStableFunc(sorted, func(a, b records.SetNames) int { return a.Ref.Compare(b.Ref) })
	}
	e := &othersEdit{buckets: o.buckets}
	old := o.sorted
	for i := range sorted {
		now := &sorted[i]
		for len(old) > 0 && old[0].Ref != now.Ref && old[0].Ref.Compare(now.Ref) < 0 {
			e.change(&old[0], -1)
			old = old[1:]
		}
		if len(old) == 0 || old[0].Ref != now.Ref {
			e.change(now, 1)
			continue
		}
		if !sameNames(&old[0], now) {
			e.change(&old[0], -1)
			e.change(now, 1)
		}
		old = old[1:]
	}
	for i := range old {
		e.change(&old[i], -1)
	}
	return &others{given: list, sorted: sorted, buckets: e.buckets}
}

func isSorted(list []records.SetNames) bool {
	for i := 1; i < len(list); i++ {
		if list[i-1].Ref.Compare(list[i].Ref) > 0 {
			return false
		}
	}
	return true
}

func sameNames(a, b *records.SetNames) bool {
	return a.Service == b.Service && a.First == b.First && a.End == b.End && slices.Equal(a.Names, b.Names)
}

// othersEdit changes buckets, each in a copy made at its first change.
type othersEdit struct {
	buckets *[otherBuckets]bucket
	copied  *[otherBuckets]bool // nil: buckets is still that of before
}

// change adds a set (by 1) or takes it out (by -1).
func (e *othersEdit) change(n *records.SetNames, by int) {
	services := serviceKeys(n)
	if len(services) == 0 {
		return
	}
	for _, key := range services {
		entry := other{key: key, set: n.Ref, first: n.First, end: n.End}
		b := e.bucket(key)
		at, _ := slices.BinarySearchFunc(*b, entry, compareOthers)
		if by > 0 {
			*b = slices.Insert(*b, at, entry)
		} else {
			*b = slices.Delete(*b, at, at+1)
		}
	}
	space := other{key: label(string(n.Ref.Namespace))}
	b := e.bucket(space.key)
	at, found := slices.BinarySearchFunc(*b, space, compareOthers)
	if !found {
		*b = slices.Insert(*b, at, space)
	}
	(*b)[at].sets += by
	if (*b)[at].sets == 0 {
		*b = slices.Delete(*b, at, at+1)
	}
}

// bucket is that of a key, to be changed.
func (e *othersEdit) bucket(key string) *bucket {
	if e.copied == nil {
		all := *e.buckets
		e.buckets, e.copied = &all, new([otherBuckets]bool)
	}
	at := maphash.String(bucketSeed, key) % otherBuckets
	if !e.copied[at] {
		e.buckets[at], e.copied[at] = slices.Clone(e.buckets[at]), true
	}
	return &e.buckets[at]
}

func compareOthers(a, b other) int {
	if c := strings.Compare(a.key, b.key); c != 0 {
		return c
	}
	return a.set.Compare(b.set)
}

// serviceKeys are the keys of all services that can be names, each once.
func serviceKeys(n *records.SetNames) []string {
	if !isLabel(string(n.Ref.Namespace)) {
		return nil
	}
	keys := make([]string, 0, 1+len(n.Names))
	for i := -1; i < len(n.Names); i++ {
		service := n.Service
		if i >= 0 {
			service = n.Names[i]
		}
		if key := serviceKey(service, n.Ref.Namespace); isLabel(service) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// serviceKey is the labels of a service and its namespace, as they follow each other in a wire name.
func serviceKey(service string, namespace spec.Namespace) string {
	return label(service) + label(string(namespace))
}

// label is one label of a wire name; s is one that isLabel accepts.
func label(s string) string { return string(rune(len(s))) + s }

// find returns the entries of a key.
func (o *others) find(key []byte) []other {
	b := o.buckets[maphash.Bytes(bucketSeed, key)%otherBuckets]
	for first := range b {
		if b[first].key != string(key) {
			continue
		}
		last := first + 1
		for last < len(b) && b[last].key == string(key) {
			last++
		}
		return b[first:last]
	}
	return nil
}

// hasMember reports whether a label is the name of a member that the set may have.
func (o *other) hasMember(label []byte) bool {
	set := string(o.set.Name)
	if len(label) < len(set)+2 || string(label[:len(set)]) != set || label[len(set)] != '-' {
		return false
	}
	n, ok := number(label[len(set)+1:], 10, 9)
	return ok && n >= o.first && n < o.end
}
