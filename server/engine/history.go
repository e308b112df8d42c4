package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// pageSize is from how many changes on a page is added to no more: each write is a page. The base, which
// has a row a member, is written once in records.HistoryWindow changes.
const pageSize = 8

// startsDelay is how many StatusDelays the start of a life may wait to be recorded.
const startsDelay = 10

// historyDecision records what became of the set since its history was last written; any is false
// when nothing did, startsOnly true when lives started and no more. It is written before the
// actions of its evaluation: what takes a fact away is never written before the fact is recorded.
func historyDecision(v cache.View, w plan.World, now time.Time, seen *historySeen) (d decision, startsOnly, any bool) {
	ref := w.Set.Ref
	h := v.History(ref)
	seen.kept.follow(h, w)
	ordinals := seen.toCompare(w, seen.kept.resumed)
	set := cache.OfSet(v, ref)
	w = withSlots(set, w, ordinals)
	recorded := seen.kept.of(ordinals)
	changes := plan.DiffHistory(w, &recorded, ordinals)
	seen.saw(w, changes)
	if len(changes) == 0 {
		return decision{}, false, false
	}
	startsOnly = true
	for i := range changes {
		startsOnly = startsOnly && (changes[i].Kind == records.ChangeJoined || changes[i].Kind == records.ChangeReturned)
		changes[i].Epoch, changes[i].Number, changes[i].At = w.Epoch, seen.kept.next+int64(i), asStored(now)
	}
	page := records.HistoryPage{Ref: ref, SetUID: w.Set.UID}
	d.seen(v, store.HistoryBaseKey(ref))
	switch last := seen.kept.last; {
	case last == nil || seen.kept.since(h)+len(changes) >= records.HistoryWindow:
		page.Page, page.Changes = freshPage(h), changes[max(0, len(changes)-records.HistoryWindow):]
		d.add(store.PutRecord(store.HistoryBaseKey(ref), newBase(whole(set, w), page, seen.kept.of(nil), changes)))
	case len(last.Changes) >= pageSize:
		d.seen(v, store.HistoryPageKey(ref, last.Page)) // which has the last number
		page.Page, page.Changes = last.Page+1, changes
	default:
		page.Page, page.Changes = last.Page, append(slices.Clip(last.Changes), changes...)
	}
	d.compareLeavers(v, w, changes)
	d.seen(v, store.HistoryPageKey(ref, page.Page))
	d.add(store.PutRecord(store.HistoryPageKey(ref, page.Page), page))
	if h.PageRevs[page.Page] == 0 {
		for _, old := range outOfWindow(h, page) {
			d.remove(store.HistoryPageKey(ref, old))
		}
	}
	return d, startsOnly, true
}

// newBase is the base before page, which has the newest of changes. recorded, which is the caller's own, is what
// was recorded before all of them.
func newBase(w plan.World, page records.HistoryPage, recorded records.Recorded, changes []records.Change) records.HistoryBase {
	for i := range changes[:len(changes)-len(page.Changes)] {
		recorded.Add(&changes[i])
	}
	plan.CompactHistory(w, &recorded)
	if len(recorded.Members) == 0 {
		recorded.Members = nil // as it is decoded
	}
	return records.HistoryBase{Ref: page.Ref, UID: page.SetUID, Open: page.Page, Next: page.Changes[0].Number, Told: recorded}
}

// compareLeavers compares what the record of lives that are over by their deadline relies on.
func (d *decision) compareLeavers(v cache.View, w plan.World, changes []records.Change) {
	for i := range changes {
		c := &changes[i]
		at, known := slices.BinarySearchFunc(w.Slots, c.Ordinal, func(s plan.Slot, ordinal int) int { return cmp.Compare(s.ID.Ordinal, ordinal) })
		if c.Kind != records.ChangeLeft || !known {
			continue
		}
		if s := &w.Slots[at]; s.Member != nil && c.Token == s.Member.Token.String() && !proof.Ended(s.Member, s.Report) {
			d.noSession(v, s.Member.Node)
		}
	}
}

// resume is what the stored history has recorded, its last page, and the next number; resumed is false
// when nothing was recorded yet. The history
// of an earlier set of the name, or one that cannot be read, starts again with higher numbers.
func resume(h cache.History, w plan.World) (recorded records.Recorded, last *records.HistoryPage, next int64, resumed bool) {
	b := h.Base
	switch {
	case h.BaseRev == 0 && len(h.PageRevs) == 0:
		return plan.InitialHistory(w), nil, 1, false
	case b == nil:
		return plan.InitialHistory(w), nil, max(w.Rev, lastNumber(h)+1), false
	}
	pages, readable := pagesSince(h)
	switch {
	case !readable: // there are not as many changes since the base
		return plan.InitialHistory(w), nil, b.Next + 2*records.HistoryWindow, false
	case b.Of() != w.Set.UID:
		return plan.InitialHistory(w), nil, max(b.Next, lastNumber(h)+1), false
	}
	recorded, next = b.Told, b.Next
	recorded.Members = slices.Clone(recorded.Members)
	for _, last = range pages {
		for i := range last.Changes {
			recorded.Add(&last.Changes[i])
			next = last.Changes[i].Number + 1
		}
	}
	return recorded, last, next, true
}

// pagesSince are the pages from that on which the base names, in a row; false: one of them is missing, cannot be read, or
// is another set's.
func pagesSince(h cache.History) (pages []*records.HistoryPage, readable bool) {
	there := 0
	for page := range h.PageRevs {
		if page >= h.Base.Open {
			there++
		}
	}
	for _, p := range h.Pages {
		if p.Page == h.Base.Open+int64(len(pages)) && p.SetUID == h.Base.Of() {
			pages = append(pages, p)
		}
	}
	return pages, len(pages) == there
}

func lastNumber(h cache.History) (last int64) {
	for _, p := range h.Pages {
		for _, c := range p.Changes {
			last = max(last, c.Number)
		}
	}
	return last
}

// freshPage is the number of a page that was not there before.
func freshPage(h cache.History) (page int64) {
	if h.Base != nil {
		page = h.Base.Open + 1
	}
	for p := range h.PageRevs {
		page = max(page, p+1)
	}
	return page
}

// outOfWindow lists the pages of which nothing is among the newest changes any more
// once page is written, and those that cannot be read or are of an earlier set.
func outOfWindow(h cache.History, page records.HistoryPage) (old []int64) {
	space := records.HistoryWindow - len(page.Changes)
	keep := map[int64]bool{page.Page: true}
	for _, p := range slices.Backward(h.Pages) {
		if space > 0 && p.Page != page.Page && p.SetUID == page.SetUID {
			space -= len(p.Changes)
			keep[p.Page] = true
		}
	}
	for p := range h.PageRevs {
		if !keep[p] {
			old = append(old, p)
		}
	}
	slices.Sort(old)
	return old
}

// closeHistory ends the history of a set that is removed: only its last number stays.
func (d *decision) closeHistory(v cache.View, ref spec.SetRef) {
	h := v.History(ref)
	if len(h.PageRevs) == 0 {
		return // an earlier set's is closed already
	}
	_, _, next, _ := resume(h, v.World(ref))
	last := records.HistoryBase{Ref: ref, Open: freshPage(h), Next: next}
	for page := range h.PageRevs {
		d.remove(store.HistoryPageKey(ref, page))
	}
	d.put(store.HistoryBaseKey(ref), last)
}
