package engine

import (
	"slices"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// moved is what moved of a set's members since somebody looked at them last.
type moved struct {
	all      bool                   // anything
	nodes    map[spec.NodeName]bool // and with them the lives there
	ordinals map[int]bool
}

func (m *moved) add(ordinal int) {
	if m.ordinals == nil {
		m.ordinals = map[int]bool{}
	}
	m.ordinals[ordinal] = true
}

func (m *moved) addAll(ch *cache.Changes) {
	m.all = m.all || ch.All
	for node := range ch.Nodes {
		if m.nodes == nil {
			m.nodes = map[spec.NodeName]bool{}
		}
		m.nodes[node] = true
	}
}

// note notes that a record of a member moved.
func (m *setMemory) note(ordinal int) {
	m.members.moved.add(ordinal)
	m.history.moved.add(ordinal)
}

// foldedMembers is the fold of a set as its records are, and shared by the copies of a set's memory. What was laid
// over the records and not stored is moved out again; that such a life is the newest that was up stays, which
// at most has the wait for progress start again.
type foldedMembers struct {
	fold  plan.Fold
	moved moved // since it was folded
}

func newFoldedMembers() *foldedMembers { return &foldedMembers{moved: moved{all: true}} }

// wholeSize is up to how many members a set has that is never folded: that would leave out too few. The simulation judges
// worlds that are whole, and has no larger sets.
const wholeSize = 24

// in is w with the members of the set: a larger one is folded, if it may be, by what moved.
func (m *foldedMembers) in(set cache.SetView, w plan.World) plan.World {
	if w.Table || set.Identities() <= wholeSize && w.Set.Replicas() <= wholeSize || !plan.Foldable(w) {
		return whole(set, w)
	}
	if m.moved.all || !m.fold.Fits(w) {
		m.fold.Build(whole(set, w))
	} else {
		for node := range m.moved.nodes {
			for _, ordinal := range m.fold.On(node) {
				m.moved.add(ordinal)
			}
		}
		m.fold.Move(w, sorted(m.moved.ordinals), set.Slot)
	}
	m.moved = moved{}
	return m.fold.World(w, set.Slot)
}

// whole is w with all members.
func whole(set cache.SetView, w plan.World) plan.World {
	w.Slots, w.Folded = set.Slots(), nil
	return w
}

func sorted(ordinals map[int]bool) []int {
	list := make([]int, 0, len(ordinals))
	for ordinal := range ordinals {
		list = append(list, ordinal)
	}
	slices.Sort(list)
	return list
}
