package cache

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// claimNames are the PersistentVolumeClaims that the templates of a set name, that of set (nil:
// none) and those of its revisions, sorted; nil: none.
func (t *setState) claimNames(set *records.Set) (names []string) {
	if set != nil {
		names = set.Spec.Template.Spec.ClaimNames()
	}
	for _, r := range t.byNumber {
		names = append(names, r.Template.Spec.ClaimNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// noteClaim notes the sets of the namespace that name a claim: what moved may be what a member
// of theirs waits for.
func (s *state) noteClaim(ns spec.Namespace, name string, ch *Changes) {
	for ref, t := range s.sets {
		if ref.Namespace == ns && slices.Contains(t.claims, name) {
			ch.Sets[ref] = true
		}
	}
}

// noteClaims notes what an event of ref, or of its members, is to claims: one that has ref as
// its identity's set, and those whose users moved.
func (s *state) noteClaims(ref spec.SetRef, ch *Changes) {
	if name, is := ref.ClaimName(); is {
		s.noteClaim(ref.Namespace, name, ch)
	}
	for _, id := range s.movedClaims {
		name, _ := id.Ref().ClaimName()
		ch.Sets[id.Ref()] = true
		s.noteClaim(id.Namespace, name, ch)
	}
	s.movedClaims = nil
}

// moveUser keeps the list of members that have the volume of a claim.
func (s *state) moveUser(id spec.Identity, old, now *records.Member) {
	for _, claim := range claimsOf(old) {
		delete(s.claimUsers[claim], id)
		if len(s.claimUsers[claim]) == 0 {
			delete(s.claimUsers, claim)
		}
		s.movedClaims = append(s.movedClaims, claim)
	}
	for _, claim := range claimsOf(now) {
		if s.claimUsers[claim] == nil {
			s.claimUsers[claim] = map[spec.Identity]bool{}
		}
		s.claimUsers[claim][id] = true
		s.movedClaims = append(s.movedClaims, claim)
	}
}

// claimsOf are the identities of the claims whose volumes a life has.
func claimsOf(m *records.Member) (ids []spec.Identity) {
	if m == nil {
		return nil
	}
	for i := range m.Volumes {
		if m.Volumes[i].Object {
			ids = append(ids, m.Volumes[i].Owner(m.ID))
		}
	}
	return ids
}

// claimStates is what is stored of the claims of these names, for a set; nil: there is no name.
func claimStates(v View, set spec.SetRef, names []string) map[string]*plan.ClaimState {
	if len(names) == 0 {
		return nil
	}
	out := make(map[string]*plan.ClaimState, len(names))
	for _, name := range names {
		out[name] = claimState(v, set.Namespace, name, set)
	}
	return out
}

// claimState is what is stored of a claim. Users of the set except are left out.
func claimState(v View, ns spec.Namespace, name string, except spec.SetRef) *plan.ClaimState {
	id, e := spec.ClaimIdentity(ns, name), v.claims[ns][name]
	c := &plan.ClaimState{Record: e.record, Slot: OfSet(v, id.Ref()).Slot(0)}
	c.Unread = e.mod != 0 && e.record == nil || len(v.brokenOf(id.Ref())) > 0
	for _, user := range slices.SortedFunc(maps.Keys(v.claimUsers[id]), spec.Identity.Compare) {
		if slot := judgedSlot(&v, v.lookup(user)); user.Ref() != except && slot.Member != nil {
			c.Users = append(c.Users, plan.ClaimUser{Member: slot.Member, Report: slot.Report})
		}
	}
	for of, strays := range v.unknownLives {
		if of.Namespace != ns {
			continue
		}
		m := v.lookup(of).member.record
		for _, x := range strays {
			if m == nil || x.Stray.Token != m.Token || x.Node != m.Node { // else the store knows it by now
				c.Strays = append(c.Strays, x)
			}
		}
	}
	slices.SortStableFunc(c.Strays, func(a, b plan.NodeStray) int { return a.Stray.ID.Compare(b.Stray.ID) })
	return c
}

// claimUnfinished: the claim is to go, or its volume to grow.
func (s *state) claimUnfinished(r *records.ClaimRecord) bool {
	volume := s.lookup(r.Identity()).volumes[spec.ClaimName(r.Name)].record
	return r.Deleting || volume != nil && volume.SizeBytes < r.Spec.SizeBytes()
}

// ClaimOf is what v has of a PersistentVolumeClaim; there may be nothing of it.
func ClaimOf(v View, ns spec.Namespace, name string) *plan.ClaimState {
	return claimState(v, ns, name, spec.SetRef{})
}
