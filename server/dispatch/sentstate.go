package dispatch

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
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

// sentState is what a session has sent its node, to send only what differs.
type sentState struct {
	lives map[spec.Identity]sentLife
	over  map[spec.LifeID]bool
	files map[FileRef]store.Rev // 0: sent as absent
	// orders are the present ones about volumes.
	orders map[records.VolumeID]records.VolumeOrder
	// snapshots is the publisher's version up to which snapshots were sent.
	snapshots uint64
	// changes is the last change sent of each set that has a member on the machine.
	changes map[spec.SetRef]records.ChangeID
}

// sentLife is what of a life may differ from one time to the next.
type sentLife struct {
	member   store.Rev
	service  string
	minReady int32
	booted   bool // the set is bootstrapped
	fresh    map[spec.ClaimName]string
	files    []FileRef
}

// same reports whether the node need not be sent the life again.
func (a sentLife) same(b sentLife) bool {
	return a.member == b.member && a.service == b.service && a.minReady == b.minReady &&
		a.booted == b.booted && maps.Equal(a.fresh, b.fresh)
}

func newSentState() *sentState {
	return &sentState{
		lives: map[spec.Identity]sentLife{}, over: map[spec.LifeID]bool{}, files: map[FileRef]store.Rev{},
		changes: map[spec.SetRef]records.ChangeID{},
	}
}

// nextHistories returns what became of the sets that have a member on the machine since
// that was sent, and takes it as sent.
func (s *sentState) nextHistories(v cache.View, at machine) []records.History {
	var out []records.History
	here := map[spec.SetRef]bool{}
	for _, id := range v.MembersOn(at.node) { // sorted: a set's members stand together
		ref := id.Ref()
		if here[ref] {
			continue
		}
		here[ref] = true
		last := v.LastChange(ref)
		if last.Compare(s.changes[ref]) <= 0 {
			continue
		}
		changes := records.ChangesAfter(records.NewestChanges(v.History(ref).Pages), s.changes[ref])
		s.changes[ref] = last
		out = append(out, records.History{Ref: ref, Changes: changes})
	}
	maps.DeleteFunc(s.changes, func(ref spec.SetRef, _ records.ChangeID) bool { return !here[ref] })
	return out
}

// nextLives returns the lives on the machine that differ from what was sent, in order,
// and takes them as sent. A record that went away is forgotten and not sent:
// absence is not an order (SAFETY S2).
func (s *sentState) nextLives(v cache.View, at machine, holds map[spec.LifeID]bool, domain string) []records.Life {
	var out []records.Life
	present := map[spec.Identity]bool{}
	for _, id := range v.MembersOn(at.node) {
		m := v.Member(id)
		if !at.has(m) {
			continue // it lives on the machine that had the name before
		}
		if !holds[spec.LifeID{ID: id, Token: m.Token}] && mayLiveElsewhere(v, m) {
			continue // sent when that is over
		}
		present[id] = true
		set := v.Set(id.Ref())
		now := sentLife{member: v.ModRev(store.MemberKey(id)), service: cmp.Or(m.Service, string(id.Set))}
		if set != nil {
			st := v.Status(id.Ref())
			now.service, now.minReady = plan.Service(set, plan.Former(set, st, nil), m), set.Spec.MinReadySeconds
			now.booted = v.Bootstrapped(set.UID)
		}
		now.fresh = freshVolumes(v, m, now.booted)
		if s.lives[id].same(now) {
			continue
		}
		r := v.Revision(id.Ref(), m.Revision)
		if r == nil {
			continue // sent when its template has come
		}
		now.files = FilesOf(id.Namespace, &r.Template)
		s.lives[id] = now
		l := records.Life{
			Member: *m, Template: r.Template, Service: now.service, Domain: domain,
			MinReadySeconds: now.minReady, FreshVolumes: now.fresh, Bootstrapped: now.booted,
		}
		if set != nil {
			l.SetGeneration = set.Generation
		}
		out = append(out, l)
	}
	maps.DeleteFunc(s.lives, func(id spec.Identity, _ sentLife) bool { return !present[id] })
	return out
}

// freshVolumes names the claims of m whose volume no life of the identity was
// ever ready on, by how the volume came to be: no member that has data for peers reads
// that its own is the first (SAFETY S19).
func freshVolumes(v cache.View, m *records.Member, booted bool) map[spec.ClaimName]string {
	var fresh map[spec.ClaimName]string
	id := v.Identity(m.ID)
	for _, vol := range m.Volumes {
		if id != nil && id.VolumeReady[vol.Claim] >= vol.Number {
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

// nextOver returns the holdings that are over and of which the node was not sent that yet.
func (s *sentState) nextOver(v cache.View, at machine, holds map[spec.LifeID]bool) []spec.LifeID {
	var out []spec.LifeID
	for l := range holds {
		if !s.over[l] && superseded(v, at, l) {
			s.over[l] = true
			out = append(out, l)
		}
	}
	maps.DeleteFunc(s.over, func(l spec.LifeID, _ bool) bool { return !holds[l] })
	slices.SortFunc(out, compareLives)
	return out
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

// unknownLives are the holdings that the store neither wants nor knows to be over: they
// run on, are shown, and block their identity (SAFETY S2).
func unknownLives(v cache.View, at machine, holds map[spec.LifeID]bool) []spec.LifeID {
	var out []spec.LifeID
	for l := range holds {
		if !present(v, at, l) && !superseded(v, at, l) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, compareLives)
	return out
}

func compareLives(a, b spec.LifeID) int {
	return cmp.Or(a.ID.Compare(b.ID), a.Token.Compare(b.Token))
}

// nextFiles returns what the lives sent name and is new or changed, in order, and
// takes it as sent. What no life names any more is forgotten.
func (s *sentState) nextFiles(v cache.View) []FileRef {
	named := map[FileRef]bool{}
	var out []FileRef
	for _, l := range s.lives {
		for _, r := range l.files {
			if named[r] {
				continue
			}
			named[r] = true
			rev := v.ModRev(r.key())
			if old, known := s.files[r]; known && old == rev {
				continue
			}
			s.files[r] = rev
			out = append(out, r)
		}
	}
	maps.DeleteFunc(s.files, func(r FileRef, _ store.Rev) bool { return !named[r] })
	slices.SortFunc(out, FileRef.compare)
	return out
}

// restoreOpen: a restore waits for nodes (SAFETY S8). Until it is complete a node is sent the lives
// that it has, and nothing that would start, end or be given up.
func restoreOpen(v cache.View) bool {
	return v.Count().Open(v.Epoch())
}

// mayLiveElsewhere: to order m, which its node has not started, could start a second life. A
// store that went back may have a life that was ordered and never started, and replaced since.
// One that was started, as a report says, no node starts twice: it is sent, for an answer.
func mayLiveElsewhere(v cache.View, m *records.Member) bool {
	if r := v.Report(m.ID); r != nil && r.Token == m.Token && r.Phase.Rank() > records.PhasePreparing.Rank() {
		return false
	}
	return restoreOpen(v) || len(v.UnknownLives(m.ID)) > 0
}
