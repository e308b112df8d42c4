package engine

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// historySeen is what a term saw of a set when it compared it with its history last. Only members
// that moved since, or of which something was not recorded then, can differ from it now, as long
// as the nodes are the same and none is silent: a silence proves more as it lasts.
type historySeen struct {
	moved moved    // since it was compared
	uid   spec.UID // "": nothing was compared yet
	epoch int64
	open  map[int]bool     // ordinals with something to be recorded
	kept  *recordedHistory // shared by copies of the memory
}

func newHistorySeen() historySeen {
	return historySeen{moved: moved{all: true}, kept: &recordedHistory{}}
}

// toCompare lists the ordinals to compare again, ascending; nil: all. resumed: the history is the one
// that was compared last, and what was added to it.
func (h *historySeen) toCompare(w plan.World, resumed bool) []int {
	if !resumed || h.moved.all || len(h.moved.nodes) > 0 || h.uid != w.Set.UID || h.epoch != w.Epoch ||
		slices.ContainsFunc(w.Nodes, func(n plan.Node) bool { return n.Session == nil }) {
		return nil
	}
	ordinals := maps.Clone(h.open)
	maps.Copy(ordinals, h.moved.ordinals)
	return sorted(ordinals)
}

// saw notes that w was compared, and that changes are to be recorded.
func (h *historySeen) saw(w plan.World, changes []records.Change) {
	if len(w.Broken) > 0 {
		h.moved.all = true // nothing was compared
		return
	}
	h.moved, h.uid, h.epoch, h.open = moved{}, w.Set.UID, w.Epoch, map[int]bool{}
	for i := range changes {
		if changes[i].Ordinal != records.NoOrdinal {
			h.open[changes[i].Ordinal] = true
		}
	}
}

// recordedHistory is what a history has recorded, kept along with what is added behind its last page.
type recordedHistory struct {
	told    records.Recorded
	last    *records.HistoryPage // nil: there is none
	next    int64                // the number of the next change
	resumed bool                 // something was recorded
	base    store.Rev            // of the base that told comes from
}

// follow takes up what was added since; what is not an addition is read anew.
func (r *recordedHistory) follow(h cache.History, w plan.World) {
	if !r.add(h, w) {
		r.told, r.last, r.next, r.resumed = resume(h, w)
		r.base = h.BaseRev
	}
}

// add takes up what was added; false: not only that was done.
func (r *recordedHistory) add(h cache.History, w plan.World) bool {
	if !r.resumed || r.last == nil || h.Base == nil || h.BaseRev != r.base || h.Base.Of() != w.Set.UID || len(h.Pages) != len(h.PageRevs) {
		return false
	}
	at := len(h.Pages) - 1
	for at >= 0 && h.Pages[at].Page > r.last.Page {
		at--
	}
	if at < 0 || !startsWith(h.Pages[at].Changes, r.last.Changes) {
		return false
	}
	known := len(r.last.Changes)
	for i, p := range h.Pages[at:] {
		if p.Page != r.last.Page+int64(min(i, 1)) || p.SetUID != h.Base.Of() {
			return false
		}
		for k := range p.Changes[known:] {
			r.told.Add(&p.Changes[known+k])
			r.next = p.Changes[known+k].Number + 1
		}
		r.last, known = p, 0
	}
	return true
}

// since is how many changes came since the base.
func (r *recordedHistory) since(h cache.History) int { return int(r.next - h.Base.Next) }

// startsWith: the changes of a page are those that it had, and what was added: no number comes twice.
func startsWith(changes, had []records.Change) bool {
	n := len(had)
	return len(changes) >= n && n > 0 && changes[n-1].Number == had[n-1].Number && changes[0].Number == had[0].Number
}

// of is what was recorded of these ordinals, ascending; nil: of all. It is the caller's.
func (r *recordedHistory) of(ordinals []int) records.Recorded {
	told := r.told
	if ordinals == nil {
		told.Members = slices.Clone(told.Members)
		return told
	}
	told.Members = nil
	for _, ordinal := range ordinals {
		if i, known := r.told.Find(ordinal); known {
			told.Members = append(told.Members, r.told.Members[i])
		}
	}
	return told
}

// withSlots is w with the slots of these ordinals; nil: with all.
func withSlots(set cache.SetView, w plan.World, ordinals []int) plan.World {
	if ordinals == nil {
		return whole(set, w)
	}
	w.Slots, w.Folded = make([]plan.Slot, 0, len(ordinals)), nil
	for _, ordinal := range ordinals {
		w.Slots = append(w.Slots, set.Slot(ordinal))
	}
	return w
}
