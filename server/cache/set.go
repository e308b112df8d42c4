package cache

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// setState is all that is stored of one set, so that reading it costs nothing
// of the others.
type setState struct {
	ref       spec.SetRef
	set       entry[records.Set]
	hash      spec.RevisionHash // of set's template
	claims    []string          // PersistentVolumeClaims that a template of the set names, sorted
	status    entry[records.SetStatus]
	revisions map[spec.RevisionHash]entry[records.Revision]
	byNumber  []*records.Revision   // ascending; replaced whole
	slots     []*slot               // ascending by ordinal
	on        map[spec.NodeName]int // members, by the node that their life is on
	events    map[string]entry[records.Event]
	base      entry[records.HistoryBase]
	jobs      entry[hooks.Jobs]
	pageRevs  map[int64]store.Rev    // of all pages of the history
	pageList  []*records.HistoryPage // those that can be read, ascending; replaced whole
}

// slot is what is stored of one identity, and the planner's view of it.
type slot struct {
	view     plan.Slot
	member   entry[records.Member]
	report   entry[records.Report]
	identity entry[records.IdentityRecord]
	request  entry[records.Request]
	move     entry[moves.Move]
	moveAsk  entry[moves.MoveRequest]
	volumes  map[spec.ClaimName]entry[records.Volume]
	requests map[spec.ClaimName]entry[records.VolumeRequest]
	reports  map[volumeKey]entry[records.VolumeReport]
	weight   weight // as counted at its node
}

// set is the state of a set, made when there is none.
func (s *state) set(ref spec.SetRef) *setState {
	t := s.sets[ref]
	if t == nil {
		t = &setState{
			ref:       ref,
			on:        map[spec.NodeName]int{},
			revisions: map[spec.RevisionHash]entry[records.Revision]{},
			events:    map[string]entry[records.Event]{},
			pageRevs:  map[int64]store.Rev{},
		}
		s.sets[ref] = t
	}
	return t
}

func (t *setState) index(ordinal int) (int, bool) {
	return slices.BinarySearchFunc(t.slots, ordinal, func(l *slot, o int) int { return cmp.Compare(l.view.ID.Ordinal, o) })
}

// slot is the slot of an identity of the set, made when there is none.
func (t *setState) slot(id spec.Identity) *slot {
	i, ok := t.index(id.Ordinal)
	if !ok {
		l := &slot{
			view: plan.Slot{ID: id}, volumes: map[spec.ClaimName]entry[records.Volume]{},
			requests: map[spec.ClaimName]entry[records.VolumeRequest]{}, reports: map[volumeKey]entry[records.VolumeReport]{},
		}
		t.slots = slices.Insert(t.slots, i, l)
	}
	return t.slots[i]
}

// find is the state of a set, or one without any record.
func (s *state) find(ref spec.SetRef) *setState {
	if t := s.sets[ref]; t != nil {
		return t
	}
	return &setState{}
}

// lookup is the slot of an identity, or one without any record.
func (s *state) lookup(id spec.Identity) *slot {
	t := s.find(id.Ref())
	if i, ok := t.index(id.Ordinal); ok {
		return t.slots[i]
	}
	return &slot{}
}

// dropIdle forgets a slot without records, and the set when it was the last.
func (t *setState) dropIdle(s *state, id spec.Identity) {
	if i, ok := t.index(id.Ordinal); ok && t.slots[i].idle() {
		t.slots = slices.Delete(t.slots, i, i+1)
	}
	t.dropIdleSet(s)
}

func (t *setState) dropIdleSet(s *state) {
	if t.set.mod == 0 && t.status.mod == 0 && t.base.mod == 0 && t.jobs.mod == 0 &&
		len(t.revisions)+len(t.slots)+len(t.events)+len(t.pageRevs) == 0 {
		delete(s.sets, t.ref)
	}
}

func (l *slot) idle() bool {
	return l.member.mod == 0 && l.report.mod == 0 && l.identity.mod == 0 && l.request.mod == 0 && l.move.mod == 0 && l.moveAsk.mod == 0 &&
		len(l.volumes)+len(l.requests)+len(l.reports) == 0 && len(l.view.Strays)+len(l.view.Unknown) == 0
}

// refresh makes the planner's view again; its maps and slices are never changed in
// place, because views that were handed out share them.
func (l *slot) refresh(s *state) {
	v := plan.Slot{ID: l.view.ID, Identity: l.identity.record, Member: l.member.record}
	if r := l.report.record; r != nil && v.Member != nil && r.Token == v.Member.Token {
		v.Report = r
	}
	if r := l.request.record; r != nil && v.Member != nil && r.Token == v.Member.Token {
		v.Request = r
	}
	v.Volumes, v.Asked, v.Said, v.Left = readable(l.volumes), readable(l.requests), l.currentReports(), l.leftOn()
	v.Move, v.MoveAsked = l.move.record, l.moveAsk.record
	v.Strays, v.Unknown = s.unknownLives[v.ID], s.unknownVolumes[v.ID]
	l.view = v
}

// applySet takes over one change of a record that belongs to a set.
func (s *state) applySet(ref spec.SetRef, ev store.Event, ch *Changes) (err error) {
	kind, rest := store.Kind(ev.Key)
	var space [4]string
	parts := elements(space[:0], rest)[2:]
	if kind == store.KindVolumeReport {
		return s.applyVolumeReport(s.set(ref), parts, ev, ch)
	}
	if (kind == store.KindSet || kind == store.KindStatus || kind == store.KindJobs) && len(parts) > 0 {
		return fmt.Errorf("decode %s: malformed key of a set", ev.Key)
	}
	t := s.set(ref)
	defer t.dropIdleSet(s)
	switch kind {
	case store.KindSet:
		t.set, err = decode(s, ev, func(r *records.Set) string { return store.SetKey(r.Ref) })
		t.rehash()
		ch.noteSet(t)
	case store.KindStatus: // the record does not name its set
		former, way := t.formerOf(), wayOf(t.status.record)
		t.status, err = decode(s, ev, func(*records.SetStatus) string { return ev.Key })
		if t.formerOf() != former || wayOf(t.status.record) != way {
			ch.noteSet(t)
		}
	case store.KindRevision:
		hash := spec.RevisionHash(strings.Join(parts, "/"))
		err = keep(s, t.revisions, hash, ev, func(r *records.Revision) string { return store.RevisionKey(r.Ref, r.Hash) })
		t.byNumber = listed(t.revisions)
		slices.SortStableFunc(t.byNumber, func(a, b *records.Revision) int { return cmp.Compare(a.Number, b.Number) })
		t.rehash()
		s.reweigh(t)
		ch.noteSet(t)
	case store.KindEvent: // the record does not name its key
		err = keep(s, t.events, strings.Join(parts, "/"), ev, func(*records.Event) string { return ev.Key })
	case store.KindJobs:
		t.jobs, err = decode(s, ev, func(r *hooks.Jobs) string { return store.JobsKey(r.Ref) })
	case store.KindHistory:
		ch.noteHistory(t)
		return s.applyHistory(t, strings.Join(parts, "/"), ev)
	default:
		return s.applyMember(t, kind, parts, ev, ch)
	}
	return err
}

// elements appends those of a key to list.
func elements(list []string, key string) []string {
	for element := range strings.SplitSeq(key, "/") {
		list = append(list, element)
	}
	return list
}

// applyHistory takes over the base or a page of a set's history.
func (s *state) applyHistory(t *setState, name string, ev store.Event) (err error) {
	if name == store.HistoryBase {
		t.base, err = decode(s, ev, func(r *records.HistoryBase) string { return store.HistoryBaseKey(r.Ref) })
		return err
	}
	page, err := strconv.ParseInt(name, 10, 64)
	if err != nil || strconv.FormatInt(page, 10) != name {
		return fmt.Errorf("decode %s: invalid page %q", ev.Key, name)
	}
	e, err := decode(s, ev, func(r *records.HistoryPage) string { return store.HistoryPageKey(r.Ref, r.Page) })
	t.movePage(page, e)
	return err
}

// movePage takes over a page of the history.
func (t *setState) movePage(page int64, now entry[records.HistoryPage]) {
	delete(t.pageRevs, page)
	if now.mod != 0 {
		t.pageRevs[page] = now.mod
	}
	at, there := slices.BinarySearchFunc(t.pageList, page, func(p *records.HistoryPage, page int64) int { return cmp.Compare(p.Page, page) })
	list := slices.Clone(t.pageList)
	switch {
	case there && now.record != nil:
		list[at] = now.record
	case there:
		list = slices.Delete(list, at, at+1)
	case now.record != nil:
		list = slices.Insert(list, at, now.record)
	}
	t.pageList = list
}

// rehash names the revision of the set's template, and the claims of all its templates.
func (t *setState) rehash() {
	t.hash, t.claims = "", t.claimNames(t.set.record)
	if t.set.record != nil {
		t.hash = t.set.record.RevisionHash(t.byNumber)
	}
}

// applyMember takes over one change of a record that belongs to an identity.
func (s *state) applyMember(t *setState, kind string, parts []string, ev store.Event, ch *Changes) error {
	id, claim, err := identityOf(t.ref, kind, parts)
	if err != nil {
		return fmt.Errorf("decode %s: %w", ev.Key, err)
	}
	return s.changeSlot(t, id, ch, func(l *slot) error { return s.decodeMember(t, l, kind, claim, ev) })
}

// decodeMember takes over one record of an identity into its slot.
func (s *state) decodeMember(t *setState, l *slot, kind string, claim spec.ClaimName, ev store.Event) (err error) {
	switch kind {
	case store.KindMember:
		old := l.member.record
		l.member, err = decode(s, ev, func(r *records.Member) string { return store.MemberKey(r.ID) })
		s.moveMember(t, l.view.ID, old, l.member.record)
		s.moveUser(l.view.ID, old, l.member.record)
		s.weigh(t, l)
	case store.KindReport:
		l.report, err = decode(s, ev, func(r *records.Report) string { return store.ReportKey(r.ID) })
		if r := l.report.record; r != nil && r.Phase.Over() {
			s.moveUser(l.view.ID, l.member.record, l.member.record)
		}
	case store.KindIdentity:
		l.identity, err = decode(s, ev, func(r *records.IdentityRecord) string { return store.IdentityKey(r.ID) })
	case store.KindRequest:
		l.request, err = decode(s, ev, func(r *records.Request) string { return store.RequestKey(r.ID) })
	case store.KindMove:
		old := l.move.record
		l.move, err = decode(s, ev, func(r *moves.Move) string { return store.MoveKey(r.ID) })
		moveMove(s, old, l.move.record)
	case store.KindMoveRequest:
		l.moveAsk, err = decode(s, ev, func(r *moves.MoveRequest) string { return store.MoveRequestKey(r.ID) })
	case store.KindVolume:
		old := l.volumes[claim].record
		err = keep(s, l.volumes, claim, ev, func(r *records.Volume) string { return store.VolumeKey(r.ID, r.Claim) })
		s.moveVolume(ev.Key, old, l.volumes[claim].record)
	case store.KindVolumeRequest:
		err = keep(s, l.requests, claim, ev, func(r *records.VolumeRequest) string { return store.VolumeRequestKey(r.ID, r.Claim) })
	}
	return err
}

// identityOf reads "<ordinal>", or "<claim>/<ordinal>" of a volume or a request of one.
func identityOf(ref spec.SetRef, kind string, parts []string) (id spec.Identity, claim spec.ClaimName, err error) {
	if (kind == store.KindVolume || kind == store.KindVolumeRequest) && len(parts) == 2 {
		claim, parts = spec.ClaimName(parts[0]), parts[1:]
	}
	if len(parts) != 1 {
		return id, claim, fmt.Errorf("malformed key of a member")
	}
	n, err := strconv.ParseInt(parts[0], 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != parts[0] {
		return id, claim, fmt.Errorf("invalid ordinal %q", parts[0])
	}
	return spec.Identity{Namespace: ref.Namespace, Set: ref.Name, Ordinal: int(n)}, claim, nil
}

// moveMember keeps the list of members of each node.
func (s *state) moveMember(t *setState, id spec.Identity, old, now *records.Member) {
	if old != nil && (now == nil || now.Node != old.Node) {
		n := s.node(old.Node)
		delete(n.members, id)
		t.on[old.Node]--
		if t.on[old.Node] == 0 {
			delete(t.on, old.Node)
			delete(n.sets, t.ref)
		}
		s.dropIdleNode(old.Node)
	}
	if now != nil && (old == nil || now.Node != old.Node) {
		n := s.node(now.Node)
		n.members[id] = true
		n.sets[t.ref] = true
		t.on[now.Node]++
	}
}
