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

// seat is one machine under its name. A life belongs to the machine, not to the
// name: another one that took the name over must not hear of it, for its refusal
// would count as proof.
type seat struct {
	node spec.NodeName
	uid  spec.UID
}

// holds tells whether m is assigned to this machine.
func (s seat) holds(m *records.Member) bool { return m.Node == s.node && m.NodeUID == s.uid }

// told is what a session has told its node, to tell only what differs.
type told struct {
	lives map[spec.Identity]toldLife
	over  map[life]bool
	files map[FileRef]store.Rev // 0: told that it is absent
	// orders are those that stand, of volumes.
	orders map[records.VolumeID]records.VolumeOrder
	// pictures is the publisher's version up to which pictures were told.
	pictures uint64
	// changes is the last change told of each set that has a member at the seat.
	changes map[spec.SetRef]records.ChangeID
}

// toldLife is what of a life may differ from one telling to the next.
type toldLife struct {
	member   store.Rev
	service  string
	minReady int32
	booted   bool // the set is bootstrapped
	fresh    map[spec.ClaimName]string
	files    []FileRef
}

// same tells whether the node need not hear of the life again.
func (a toldLife) same(b toldLife) bool {
	return a.member == b.member && a.service == b.service && a.minReady == b.minReady &&
		a.booted == b.booted && maps.Equal(a.fresh, b.fresh)
}

func newTold() *told {
	return &told{
		lives: map[spec.Identity]toldLife{}, over: map[life]bool{}, files: map[FileRef]store.Rev{},
		changes: map[spec.SetRef]records.ChangeID{},
	}
}

// nextHistories returns what became of the sets that have a member at the seat since
// that was told, and takes it as told.
func (t *told) nextHistories(v cache.View, at seat) []records.History {
	var out []records.History
	here := map[spec.SetRef]bool{}
	for _, id := range v.MembersOn(at.node) { // sorted: a set's members stand together
		ref := id.Ref()
		if here[ref] {
			continue
		}
		here[ref] = true
		last := v.LastChange(ref)
		if last.Compare(t.changes[ref]) <= 0 {
			continue
		}
		changes := records.ChangesAfter(records.NewestChanges(v.History(ref).Pages), t.changes[ref])
		t.changes[ref] = last
		out = append(out, records.History{Ref: ref, Changes: changes})
	}
	maps.DeleteFunc(t.changes, func(ref spec.SetRef, _ records.ChangeID) bool { return !here[ref] })
	return out
}

// nextLives returns the lives at the seat that differ from what was told, in order,
// and takes them as told. A record that went away is forgotten and not told:
// absence is no order (SAFETY S2).
func (t *told) nextLives(v cache.View, at seat, holds map[life]bool, domain string) []records.Life {
	var out []records.Life
	present := map[spec.Identity]bool{}
	for _, id := range v.MembersOn(at.node) {
		m, rev := v.Member(id)
		if !at.holds(m) {
			continue // it lives on the machine that had the name before
		}
		if !holds[life{ID: id, Token: m.Token}] && mayLiveElsewhere(v, m) {
			continue // told when that is over
		}
		present[id] = true
		set, _ := v.Set(id.Ref())
		now := toldLife{member: rev, service: cmp.Or(m.Service, string(id.Set))}
		if set != nil {
			st, _ := v.Status(id.Ref())
			now.service, now.minReady = plan.Service(set, plan.Former(set, st, nil), m), set.Spec.MinReadySeconds
			now.booted = v.Bootstrapped(set.UID)
		}
		now.fresh = freshVolumes(v, m, now.booted)
		if t.lives[id].same(now) {
			continue
		}
		r, _ := v.Revision(id.Ref(), m.Revision)
		if r == nil {
			continue // told when its template has come
		}
		now.files = FilesOf(id.Namespace, &r.Template)
		t.lives[id] = now
		l := records.Life{
			Member: *m, Template: r.Template, Service: now.service, Domain: domain,
			MinReadySeconds: now.minReady, FreshVolumes: now.fresh, Bootstrapped: now.booted,
		}
		if set != nil {
			l.SetGeneration = set.Generation
		}
		out = append(out, l)
	}
	maps.DeleteFunc(t.lives, func(id spec.Identity, _ toldLife) bool { return !present[id] })
	return out
}

// freshVolumes names the claims of m whose volume no life of the identity was
// ever ready on, by how the volume came to be: no member that has data for peers reads
// that its own is the first (SAFETY S19).
func freshVolumes(v cache.View, m *records.Member, booted bool) map[spec.ClaimName]string {
	var fresh map[spec.ClaimName]string
	id, _ := v.Identity(m.ID)
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

// nextOver returns the holdings that are over and were not told so yet.
func (t *told) nextOver(v cache.View, at seat, holds map[life]bool) []life {
	var out []life
	for l := range holds {
		if !t.over[l] && superseded(v, at, l) {
			t.over[l] = true
			out = append(out, l)
		}
	}
	maps.DeleteFunc(t.over, func(l life, _ bool) bool { return !holds[l] })
	slices.SortFunc(out, compareLives)
	return out
}

// superseded: the identity has had a newer token, so this one must end.
func superseded(v cache.View, at seat, l life) bool {
	id, _ := v.Identity(l.ID)
	return !present(v, at, l) && id != nil && id.LastToken.Compare(l.Token) > 0
}

// present: it is what the store wants on this machine now.
func present(v cache.View, at seat, l life) bool {
	m, _ := v.Member(l.ID)
	return m != nil && m.Token == l.Token && at.holds(m)
}

// strays are the holdings that the store neither wants nor knows to be over: they
// run on, are shown, and block their identity (SAFETY S2).
func strays(v cache.View, at seat, holds map[life]bool) []spec.LifeID {
	var out []spec.LifeID
	for l := range holds {
		if !present(v, at, l) && !superseded(v, at, l) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, compareLives)
	return out
}

func compareLives(a, b life) int {
	return cmp.Or(cmp.Compare(a.ID.Namespace, b.ID.Namespace), cmp.Compare(a.ID.Set, b.ID.Set),
		cmp.Compare(a.ID.Ordinal, b.ID.Ordinal), a.Token.Compare(b.Token))
}

// nextFiles returns what the lives told name and is new or changed, in order, and
// takes it as told. What no life names any more is forgotten.
func (t *told) nextFiles(v cache.View) []FileRef {
	named := map[FileRef]bool{}
	var out []FileRef
	for _, l := range t.lives {
		for _, r := range l.files {
			if named[r] {
				continue
			}
			named[r] = true
			rev := fileRev(v, r)
			if old, known := t.files[r]; known && old == rev {
				continue
			}
			t.files[r] = rev
			out = append(out, r)
		}
	}
	maps.DeleteFunc(t.files, func(r FileRef, _ store.Rev) bool { return !named[r] })
	slices.SortFunc(out, func(a, b FileRef) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}
