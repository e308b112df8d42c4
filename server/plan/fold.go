package plan

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Folded counts the members of a large set that a step need not look at one by one: nothing is to be
// done about them, and what they wait for is what a listed member of their kind waits for. Next decides
// on a folded world what it decides on the whole one (TestAFoldedWorldIsPlannedAsTheWholeOne).
type Folded struct {
	up      map[spec.RevisionHash]int // wanted, with a life that is available, by what they run
	surplus map[spec.RevisionHash]int // not wanted, the same
	vacant  map[spec.RevisionHash]int // wanted, without a life, by what they were available on last
	// Of each kind that waits, the listed member for which the others stand; -1: none does.
	likeVacant, likeSurplus, likeQueued int
	queued                              int                   // of up: the update has not come to them
	byNode                              map[spec.NodeName]int // lives; also of listed, see counted; shared
	counted                             []int                 // listed members that are in byNode, ascending
	initialReady                        int                   // of the initial members, those that were ready once
	newest                              spec.Token            // of all that were up and left out
}

// Foldable reports whether the world of a set may be folded; w needs no slots. What is rare, and
// what looks at every member anyway, is planned whole.
func Foldable(w World) bool {
	if w.Set == nil || w.Set.Deleting || w.Set.Orphaned || w.Set.Paused || w.Set.UID == "" || w.Table ||
		len(w.Claims) > 0 || len(w.Broken) > 0 || w.Epoch < 1 || w.WasBootstrapped && !w.Bootstrapped || len(w.Set.Spec.Jobs) > 0 || w.Jobs != nil || w.differs() || len(w.Set.Spec.UpdateStrategy.InPlace) > 0 {
		return false
	}
	f := facts{world: w, reach: w.Set.Range()}
	if f.recreates() || f.partition() != f.reach.First || Former(w.Set, w.Status, nil) != "" ||
		slices.ContainsFunc(w.Nodes, func(n Node) bool { return n.Unread }) {
		return false
	}
	reason, _ := halted(&w)
	return reason == ""
}

// differs: members of one revision do not all run the same.
func (w *World) differs() bool {
	return len(w.Set.Spec.Members) > 0 || slices.ContainsFunc(w.Revisions, func(r *records.Revision) bool { return len(r.Members) > 0 })
}

// Fold has the members of one set by how a step sees them, so that a step costs what is to be done
// and not what the set has. Each change of a member's records, or of its node's, is moved into it.
// The zero Fold is to be built.
type Fold struct {
	basis   basis
	members map[int]foldedMember
	// Ordinals, ascending: of members that matter one by one, and of those folded.
	listed, vacant, surplus []int
	up                      map[spec.RevisionHash][]int
	risen                   []int // came up, and were not left out yet
	counts                  Folded
}

// basis is what, beside the records of a member and its node, says how the member is folded.
type basis struct {
	set          *records.Set
	epoch        int64
	bootstrapped bool
}

func basisOf(w *World) basis { return basis{w.Set, w.Epoch, w.Bootstrapped} }

// Fits reports whether the fold was built for worlds as this one is, beside slots and nodes.
func (f *Fold) Fits(w World) bool { return f.members != nil && f.basis == basisOf(&w) }

// Build takes up all members of a world, which has all slots.
func (f *Fold) Build(w World) {
	*f = Fold{
		basis: basisOf(&w), members: make(map[int]foldedMember, len(w.Slots)), up: map[spec.RevisionHash][]int{},
		counts: Folded{
			up: map[spec.RevisionHash]int{}, surplus: map[spec.RevisionHash]int{}, vacant: map[spec.RevisionHash]int{},
			byNode: map[spec.NodeName]int{},
		},
	}
	c := newClassifier(w)
	for slot := range slotsOf(c.reach, w.Set.Ref, w.Slots) {
		f.put(slot.ID.Ordinal, c.classify(slot))
	}
}

// Move takes up what became of some members. w has no slots; slot finds one, which may be without
// any record.
func (f *Fold) Move(w World, ordinals []int, slot func(ordinal int) Slot) {
	c := newClassifier(w)
	for _, ordinal := range ordinals {
		f.remove(ordinal)
		s := slot(ordinal)
		if c.reach.Has(ordinal) || !s.empty() {
			f.put(ordinal, c.classify(s))
		}
	}
}

// On lists the members with a life or a volume on a node; their order is any.
func (f *Fold) On(node spec.NodeName) (ordinals []int) {
	for ordinal, m := range f.members {
		if m.node == node || slices.Contains(m.volumes, node) {
			ordinals = append(ordinals, ordinal)
		}
	}
	return ordinals
}

// World is w, which has no slots, with those that matter one by one, and the others counted: of each
// kind as many are listed as a step may act on, and one more.
func (f *Fold) World(w World, slot func(ordinal int) Slot) World {
	folded := f.counts
	folded.up, folded.surplus, folded.vacant = maps.Clone(folded.up), maps.Clone(folded.surplus), maps.Clone(folded.vacant)
	w.Slots, w.Folded = nil, &folded
	target, budget := f.update(w)
	queued, all := f.highestQueued(target, budget+1)
	folded.queued = all - len(queued)
	next, last := f.vacant[:min(2, len(f.vacant))], f.surplus[max(0, len(f.surplus)-2):]
	folded.likeVacant, folded.likeSurplus, folded.likeQueued = -1, -1, -1
	if len(next) > 0 {
		folded.likeVacant = next[len(next)-1]
	}
	if len(last) > 0 {
		folded.likeSurplus = last[0]
	}
	if len(queued) > 0 {
		folded.likeQueued = queued[0]
	}
	for _, ordinal := range slices.Concat(next, queued, last) {
		folded.unfold(ordinal, f.members[ordinal])
	}
	slices.Sort(folded.counted)
	f.raise(folded.counted)
	folded.newest = f.counts.newest
	ordinals := slices.Concat(f.listed, next, queued, last)
	slices.Sort(ordinals)
	w.Slots = make([]Slot, len(ordinals))
	for i, ordinal := range ordinals {
		w.Slots[i] = slot(ordinal)
	}
	return w
}

// update is the revision where members go, and how many may be down for it.
func (f *Fold) update(w World) (target spec.RevisionHash, budget int) {
	facts := newSetFacts(w)
	size := len(f.vacant)
	for _, ordinals := range f.up {
		size += len(ordinals)
	}
	for _, ordinal := range f.listed {
		size += one(facts.reach.Has(ordinal))
	}
	return facts.targetRevision, facts.budgetOf(size)
}

// raise takes the lives that came up into the newest, but for those that are listed: a step counts
// these itself, after what it does to them.
func (f *Fold) raise(listed []int) {
	f.risen = slices.DeleteFunc(f.risen, func(ordinal int) bool {
		if _, waits := slices.BinarySearch(listed, ordinal); waits {
			return false
		}
		if m := f.members[ordinal]; m.kind == up && m.token.Compare(f.counts.newest) > 0 {
			f.counts.newest = m.token
		}
		return true
	})
}

// highestQueued are the highest members up, at most n and ascending, that do not run target, and
// how many there are in all.
func (f *Fold) highestQueued(target spec.RevisionHash, n int) (ordinals []int, all int) {
	for revision, runs := range f.up {
		if revision != target {
			ordinals = append(ordinals, runs[max(0, len(runs)-n):]...)
			all += len(runs)
		}
	}
	slices.Sort(ordinals)
	return ordinals[max(0, len(ordinals)-n):], all
}

// unfold takes a member out that is listed.
func (c *Folded) unfold(ordinal int, m foldedMember) {
	c.initialReady -= one(m.initialReady)
	switch m.kind {
	case up:
		c.up[m.revision]--
	case surplus:
		c.surplus[m.revision]--
	case vacant:
		c.vacant[m.revision]--
		return
	}
	c.counted = append(c.counted, ordinal)
}

func (f *Fold) put(ordinal int, m foldedMember) {
	f.members[ordinal] = m
	switch m.kind {
	case listed:
		f.listed = inserted(f.listed, ordinal)
		return
	case up:
		f.up[m.revision] = inserted(f.up[m.revision], ordinal)
		f.counts.up[m.revision]++
		f.counts.byNode[m.node]++
		f.risen = append(f.risen, ordinal)
	case surplus:
		f.surplus = inserted(f.surplus, ordinal)
		f.counts.surplus[m.revision]++
		f.counts.byNode[m.node]++
	case vacant:
		f.vacant = inserted(f.vacant, ordinal)
		f.counts.vacant[m.revision]++
	}
	f.counts.initialReady += one(m.initialReady)
}

func (f *Fold) remove(ordinal int) {
	m, known := f.members[ordinal]
	if !known {
		return
	}
	delete(f.members, ordinal)
	switch m.kind {
	case listed:
		f.listed = removed(f.listed, ordinal)
		return
	case up:
		f.up[m.revision] = removed(f.up[m.revision], ordinal)
		lower(f.counts.up, m.revision)
		lower(f.counts.byNode, m.node)
	case surplus:
		f.surplus = removed(f.surplus, ordinal)
		lower(f.counts.surplus, m.revision)
		lower(f.counts.byNode, m.node)
	case vacant:
		f.vacant = removed(f.vacant, ordinal)
		lower(f.counts.vacant, m.revision)
	}
	f.counts.initialReady -= one(m.initialReady)
}

func lower[K comparable](counts map[K]int, key K) {
	counts[key]--
	if counts[key] == 0 {
		delete(counts, key)
	}
}

func inserted(ordinals []int, ordinal int) []int {
	i, _ := slices.BinarySearch(ordinals, ordinal)
	return slices.Insert(ordinals, i, ordinal)
}

func removed(ordinals []int, ordinal int) []int {
	i, _ := slices.BinarySearch(ordinals, ordinal)
	return slices.Delete(ordinals, i, i+1)
}
