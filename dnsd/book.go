package dnsd

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/spec"
)

// Book keeps the newest picture of each set, as they arrive. It belongs to one
// goroutine, which builds and swaps zones from it in the order of its changes.
type Book struct {
	base     Snapshot
	pictures map[spec.SetRef]spec.Picture // gone ones too, so that they stay gone
}

// NewBook begins an empty book; see Snapshot for the arguments.
func NewBook(domain string, gateway netip.Addr, members netip.Prefix) *Book {
	return &Book{
		base:     Snapshot{Domain: domain, Gateway: gateway, Members: members},
		pictures: map[spec.SetRef]spec.Picture{},
	}
}

// Put keeps p if it is newer than what is known of its set, and reports whether
// it did. The book keeps p's slices: the caller must not change them any more.
func (b *Book) Put(p spec.Picture) bool {
	old, known := b.pictures[p.Ref]
	if known && p.Sequence.Compare(old.Sequence) <= 0 {
		return false
	}
	b.pictures[p.Ref] = p
	b.advance(p.Sequence)
	return true
}

// PutAll takes the whole list of sets as it was at seq: besides Put of each, it
// forgets the sets that are not in it and were not told later than seq. It
// reports whether anything changed. A list older than the book's newest picture
// forgets nothing.
func (b *Book) PutAll(seq spec.Sequence, all []spec.Picture) bool {
	changed := false
	if seq.Compare(b.base.Sequence) >= 0 {
		listed := map[spec.SetRef]bool{}
		for _, p := range all {
			listed[p.Ref] = true
		}
		before := len(b.pictures)
		maps.DeleteFunc(b.pictures, func(ref spec.SetRef, _ spec.Picture) bool { return !listed[ref] })
		changed = len(b.pictures) != before
		b.advance(seq)
	}
	for _, p := range all {
		changed = b.Put(p) || changed
	}
	return changed
}

func (b *Book) advance(seq spec.Sequence) {
	if seq.Compare(b.base.Sequence) > 0 {
		b.base.Sequence = seq
	}
}

// Snapshot returns what the book holds now, for Build; the caller may keep it.
func (b *Book) Snapshot() Snapshot {
	s := b.base
	s.Pictures = slices.Collect(maps.Values(b.pictures))
	return s
}
