package engine

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// historySeen is what a term saw of a set when it compared it with its history last. Only members
// that moved since, or of which something was not recorded then, can differ from it now, as long
// as the nodes are the same and none is silent: a silence proves more as it lasts.
type historySeen struct {
	uid   spec.UID // "": nothing was compared yet
	epoch int64
	slots []seenSlot // ascending
	nodes []plan.Node
	open  map[int]bool // ordinals with something to be recorded
}

// seenSlot is what of a slot a history is made from. Records are never changed, only replaced.
type seenSlot struct {
	ordinal int
	member  *records.Member
	report  *records.Report
}

// moved lists the ordinals to compare again, ascending; nil: all. resumed: the history is the one
// that was compared last, and what was added to it.
func (h *historySeen) moved(w plan.World, resumed bool) []int {
	if !resumed || h.uid != w.Set.UID || h.epoch != w.Epoch || !slices.EqualFunc(h.nodes, w.Nodes, sameNode) ||
		slices.ContainsFunc(w.Nodes, func(n plan.Node) bool { return n.Session == nil }) {
		return nil
	}
	ordinals := []int{}
	old := h.slots
	for i := range w.Slots {
		now := slotSeen(&w.Slots[i])
		for len(old) > 0 && old[0].ordinal < now.ordinal {
			ordinals, old = append(ordinals, old[0].ordinal), old[1:]
		}
		before := seenSlot{ordinal: now.ordinal}
		if len(old) > 0 && old[0].ordinal == now.ordinal {
			before, old = old[0], old[1:]
		}
		if before != now || h.open[now.ordinal] {
			ordinals = append(ordinals, now.ordinal)
		}
	}
	for _, gone := range old {
		ordinals = append(ordinals, gone.ordinal)
	}
	return ordinals
}

// saw notes that w was compared, and that changes are to be recorded.
func (h *historySeen) saw(w plan.World, changes []records.Change) {
	if len(w.Broken) > 0 {
		*h = historySeen{} // nothing was compared
		return
	}
	slots := h.slots[:0]
	for i := range w.Slots {
		slots = append(slots, slotSeen(&w.Slots[i]))
	}
	open := map[int]bool{}
	for i := range changes {
		open[changes[i].Ordinal] = true
	}
	// A slot that is gone is not seen again, so what is open of it is looked for by its being missing.
	for o := range open {
		if _, there := slices.BinarySearchFunc(slots, o, func(s seenSlot, o int) int { return s.ordinal - o }); !there && o != records.NoOrdinal {
			*h = historySeen{}
			return
		}
	}
	*h = historySeen{uid: w.Set.UID, epoch: w.Epoch, slots: slots, nodes: w.Nodes, open: open}
}

func slotSeen(s *plan.Slot) seenSlot { return seenSlot{s.ID.Ordinal, s.Member, s.Report} }

// sameNode: what proves something of its lives is the same.
func sameNode(a, b plan.Node) bool {
	return a.Node == b.Node && a.Facts == b.Facts && a.Session == b.Session && a.Unread == b.Unread && a.Fenced == b.Fenced && a.Fencing == b.Fencing
}
