package dispatch

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// machine is one machine under its name. A life belongs to the machine, not to the
// name: another one that took the name over must not be sent it, for its refusal
// would count as proof.
type machine struct {
	node spec.NodeName
	uid  spec.UID
}

// has reports whether member is assigned to this machine.
func (m machine) has(member *records.Member) bool {
	return member.Node == m.node && member.NodeUID == m.uid
}

// sentState is what a session has sent its node, to send only what differs. It is moved by what
// changed, and always as if all were looked at.
type sentState struct {
	machine
	domain string
	lives  map[spec.Identity]sentLife
	// livesMoved: files is to be looked at again.
	livesMoved bool
	holds      map[spec.Identity][]spec.Token // what the node has open
	over       map[spec.LifeID]bool
	// unwanted are the holdings that the store does not want on the machine, and whether it knows
	// them to be over. Those that it does not are unknown.
	unwanted map[spec.LifeID]bool
	named    map[FileRef]int       // how many of lives name it
	files    map[FileRef]store.Rev // 0: sent as absent
	// preparations are what the node is to have before updates stop members.
	preparations map[spec.SetRef]*records.Preparation
	// moves are all orders about moves, encoded; nil: none were sent.
	moves []byte
	// orders are the present ones about volumes.
	orders map[records.VolumeID]records.VolumeOrder
	// snapshots is the publisher's version up to which snapshots were sent.
	snapshots uint64
	// full are the sets that were sent in full, if the session is sent others in brief.
	full map[spec.SetRef]bool
	// served is the publisher's version of the sets among them to which addresses of services lead.
	served uint64
	// setsMoved: other sets than those may have a member on the machine.
	setsMoved bool
	// changes is the last change sent of each set that has a member on the machine.
	changes map[spec.SetRef]records.ChangeID
}

// sentLife is what of a life may differ from one time to the next.
type sentLife struct {
	member   store.Rev
	service  string
	minReady int32
	booted   bool // the set is bootstrapped
	unlinked bool // its containers get no variables of services
	fresh    map[spec.ClaimName]string
	// forgotten is Life.Forgotten.
	forgotten spec.Token
	files     []FileRef
}

// same reports whether the node need not be sent the life again.
func (a sentLife) same(b sentLife) bool {
	return a.member == b.member && a.service == b.service && a.minReady == b.minReady &&
		a.booted == b.booted && a.unlinked == b.unlinked && a.forgotten == b.forgotten && maps.Equal(a.fresh, b.fresh)
}

func newSentState(at machine, domain string) *sentState {
	return &sentState{
		machine: at, domain: domain,
		lives: map[spec.Identity]sentLife{}, holds: map[spec.Identity][]spec.Token{}, over: map[spec.LifeID]bool{}, unwanted: map[spec.LifeID]bool{},
		named: map[FileRef]int{}, files: map[FileRef]store.Rev{}, changes: map[spec.SetRef]records.ChangeID{},
		preparations: map[spec.SetRef]*records.Preparation{},
	}
}

// hold takes over what the node opened (true) and closed.
func (s *sentState) hold(moved map[spec.LifeID]bool) {
	for l, open := range moved {
		tokens := slices.DeleteFunc(s.holds[l.ID], func(t spec.Token) bool { return t == l.Token })
		if open {
			tokens = append(tokens, l.Token)
		}
		s.holds[l.ID] = tokens
		if len(tokens) == 0 {
			delete(s.holds, l.ID)
		}
		delete(s.over, l)
		delete(s.unwanted, l)
	}
}

// touched lists the identities to look at again, in order: whose records or holdings moved.
func (s *sentState) touched(v cache.View, ch *cache.NodeChanges, moved map[spec.LifeID]bool) []spec.Identity {
	ids := slices.AppendSeq(make([]spec.Identity, 0, len(ch.Members)+len(moved)), maps.Keys(ch.Members))
	for l := range moved {
		ids = append(ids, l.ID)
	}
	for ref := range ch.Sets {
		ids = append(ids, v.On(s.node).MembersOf(ref)...)
	}
	if ch.All {
		ids = append(ids, v.MembersOn(s.node)...)
		ids = slices.AppendSeq(ids, maps.Keys(s.lives))
		ids = slices.AppendSeq(ids, maps.Keys(s.holds))
	}
	slices.SortFunc(ids, spec.Identity.Compare)
	return slices.Compact(ids)
}

// nextHistories returns what became of the sets that have a member on the machine since
// that was sent, and takes it as sent.
func (s *sentState) nextHistories(v cache.View, ch *cache.NodeChanges) []historyPart {
	refs := slices.AppendSeq(make([]spec.SetRef, 0, len(ch.Histories)+len(ch.Members)), maps.Keys(ch.Histories))
	for id := range ch.Members {
		refs = append(refs, id.Ref())
	}
	if ch.All {
		refs = append(refs, v.On(s.node).Sets()...)
		refs = slices.AppendSeq(refs, maps.Keys(s.changes))
	}
	slices.SortFunc(refs, spec.SetRef.Compare)
	var out []historyPart
	for _, ref := range slices.Compact(refs) {
		if !v.On(s.node).HasMemberOf(ref) {
			delete(s.changes, ref)
			continue
		}
		last := v.LastChange(ref)
		if last.Compare(s.changes[ref]) <= 0 {
			continue
		}
		out = append(out, historyPart{ref: ref, after: s.changes[ref], last: last})
		s.changes[ref] = last
	}
	return out
}

// nextLives returns the lives among ids that are on the machine and differ from what was sent, and
// takes them as sent. A record that went away is forgotten and not sent: absence is not
// an order (SAFETY S2).
func (s *sentState) nextLives(v cache.View, ids []spec.Identity) (out []records.Life) {
	for _, id := range ids {
		m := v.Member(id)
		// Without has it lives on the machine that had the name before; one that may live elsewhere is
		// sent when that is over.
		if m == nil || !s.has(m) || !slices.Contains(s.holds[id], m.Token) && mayLiveElsewhere(v, m) {
			s.moveLife(id, nil)
			continue
		}
		if l := s.nextLife(v, m); l != nil {
			out = append(out, *l)
		}
	}
	return out
}

// moveLife takes over what was sent of a life; nil: it is none any more.
func (s *sentState) moveLife(id spec.Identity, now *sentLife) {
	for _, r := range s.lives[id].files {
		s.named[r]--
		if s.named[r] == 0 {
			delete(s.named, r)
		}
	}
	delete(s.lives, id)
	s.livesMoved = true
	if now == nil {
		return
	}
	s.lives[id] = *now
	for _, r := range now.files {
		s.named[r]++
	}
}

// nextLife is what is to be sent of a life; nil: nothing.
func (s *sentState) nextLife(v cache.View, m *records.Member) *records.Life {
	id, set := m.ID, v.Set(m.ID.Ref())
	now := sentLife{member: v.ModRev(store.MemberKey(id)), service: cmp.Or(m.Service, string(id.Set)), unlinked: s.lives[id].unlinked}
	if set != nil {
		now.service, now.minReady = plan.Service(set, plan.Former(set, v.Status(id.Ref()), nil), m), set.Spec.MinReadySeconds
		now.booted = v.Bootstrapped(set.UID)
		links := set.Spec.Template.Spec.EnableServiceLinks
		now.unlinked = links != nil && !*links
	}
	now.fresh, now.forgotten = freshVolumes(v, m, now.booted), forgotten(v, m)
	if s.lives[id].same(now) {
		return nil
	}
	r := v.Revision(id.Ref(), runs(v, m))
	if r == nil {
		return nil // sent when its template has come
	}
	template := r.TemplateOf(id.Ordinal)
	now.files = FilesOf(id.Namespace, template)
	s.moveLife(id, &now)
	l := records.Life{
		Member: *m, Template: *template, Service: now.service, Domain: s.domain,
		MinReadySeconds: now.minReady, FreshVolumes: now.fresh, Forgotten: now.forgotten, UnusedClaims: unusedClaims(v, m), Bootstrapped: now.booted,
		NoServiceLinks: now.unlinked,
	}
	if set != nil {
		l.SetGeneration = set.Generation
	}
	l.Member.Revision, l.Member.Began = cmp.Or(m.Began, m.Revision), ""
	return &l
}

// runs is the revision whose template the node of a life is sent: that of a change in place from its order on. An agent that does not know
// such orders would take it for what the life runs.
func runs(v cache.View, m *records.Member) spec.RevisionHash {
	if m.Change == nil {
		return m.Revision
	}
	if n := proof.FindNode(v.Nodes(), m.Node); n == nil || !n.Facts.ChangesInPlace() {
		return m.Revision
	}
	return m.Runs()
}

// freshVolumes names the claims of m whose volume no life of the identity was
// ever ready on, by how the volume came to be: no member that has data for peers reads
// that its own is the first (SAFETY S19).
func freshVolumes(v cache.View, m *records.Member, booted bool) map[spec.ClaimName]string {
	var fresh map[spec.ClaimName]string
	id := v.Identity(m.ID)
	for _, vol := range m.Volumes {
		if vol.Object || id != nil && id.VolumeReady[vol.Claim] >= vol.Number {
			continue
		}
		if fresh == nil {
			fresh = map[spec.ClaimName]string{}
		}
		fresh[vol.Claim] = records.VolumeReplaced
		if vol.Number <= 1 && !booted && !v.HasUsedVolumes(m.ID.Ref()) {
			fresh[vol.Claim] = records.VolumeFirst
		}
	}
	return fresh
}

// forgotten is the last life of the member that the others have forgotten, and since which none was ready; zero: there is none.
func forgotten(v cache.View, m *records.Member) (last spec.Token) {
	if id := v.Identity(m.ID); id != nil && id.Forgotten != nil && id.Forgotten.Epoch == v.Epoch() {
		last = id.Forgotten.Token
	}
	return last
}

// unusedClaims are the claims of m that are the namespace's, and on whose volume no life was ever ready.
// Nothing is said of how these volumes came to be: what is on them is nobody's own.
func unusedClaims(v cache.View, m *records.Member) (unused []spec.ClaimName) {
	for i := range m.Volumes {
		vol := &m.Volumes[i]
		if !vol.Object {
			continue
		}
		if id := v.Identity(vol.Owner(m.ID)); id == nil || id.VolumeReady[vol.Claim] < vol.Number {
			unused = append(unused, vol.Claim)
		}
	}
	return unused
}

// nextOver returns the holdings among ids that are over and of which the node was not sent that
// yet, in order.
func (s *sentState) nextOver(v cache.View, ids []spec.Identity) (out []spec.LifeID) {
	for _, id := range ids {
		for _, t := range s.holds[id] {
			if l := (spec.LifeID{ID: id, Token: t}); !s.over[l] && superseded(v, s.machine, l) {
				s.over[l] = true
				out = append(out, l)
			}
		}
	}
	slices.SortFunc(out, compareLives)
	return out
}

// nextUnknown returns all unknown holdings, in order, after a look at ids. Records of their
// identities, which concern other nodes, are followed from now on.
func (s *sentState) nextUnknown(v cache.View, ids []spec.Identity, sub *cache.NodeSubscription) []spec.LifeID {
	for _, id := range ids {
		for _, t := range s.holds[id] {
			l := spec.LifeID{ID: id, Token: t}
			delete(s.unwanted, l)
			if !present(v, s.machine, l) {
				s.unwanted[l] = superseded(v, s.machine, l)
			}
		}
	}
	var unknown []spec.LifeID
	var follows map[spec.Identity]bool
	if len(s.unwanted) > 0 {
		follows = make(map[spec.Identity]bool, len(s.unwanted))
	}
	for l, over := range s.unwanted {
		follows[l.ID] = true
		if !over {
			unknown = append(unknown, l)
		}
	}
	sub.Follow(follows)
	slices.SortFunc(unknown, compareLives)
	return unknown
}

// superseded: the identity has had a newer token, so this one must end.
func superseded(v cache.View, at machine, l spec.LifeID) bool {
	id := v.Identity(l.ID)
	return !present(v, at, l) && id != nil && id.LastToken.Compare(l.Token) > 0
}

// present: it is what the store wants on this machine now.
func present(v cache.View, at machine, l spec.LifeID) bool {
	m := v.Member(l.ID)
	return m != nil && m.Token == l.Token && at.has(m)
}

// isUnknown: the store neither wants l nor knows it to be over. It runs on, is shown, and blocks
// its identity (SAFETY S2).
func isUnknown(v cache.View, at machine, l spec.LifeID) bool {
	return !present(v, at, l) && !superseded(v, at, l)
}

func compareLives(a, b spec.LifeID) int {
	return cmp.Or(a.ID.Compare(b.ID), a.Token.Compare(b.Token))
}
