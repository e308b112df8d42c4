package plan

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// mark records, once each, that a member was ready under this set, in this life and on its volumes,
// on which revision it was available, and that the set is bootstrapped. Marks ride with the start
// of the next member, so that they cost no revision of their own on the way to ready.
func (s step) mark() {
	if s.world.Set.UID == "" { // of a set that is gone: there is none under which it is ready
		return
	}
	for _, t := range s.members {
		if !s.firstReady(t) {
			continue
		}
		rec := s.marked(t)
		s.act(MarkReady{Identity: rec})
		t.become(t.withIdentity(&rec))
	}
	s.markClaims()
	if !s.bootstrapped && s.initialReady() {
		s.markBootstrapped(false)
	}
}

// firstReady: the member is ready, and something about that was not so before.
func (f *facts) firstReady(t *memberState) bool {
	if !t.Ready || t.Identity == nil {
		return false
	}
	fresh := t.Identity.ReadyOnce != f.world.Set.UID || t.Identity.ReadyToken != t.Member.Token ||
		t.Available && t.Identity.AvailableOn != t.Member.Revision && t.heads() == t.Member.Revision
	for _, v := range t.Member.Volumes {
		fresh = fresh || !v.Object && t.Identity.VolumeReady[v.Claim] != v.Number
	}
	return fresh
}

// marked is the identity's record with that written down.
func (s step) marked(t *memberState) records.IdentityRecord {
	rec := *t.Identity
	rec.ReadyOnce, rec.ReadyToken, rec.Forgotten = s.world.Set.UID, t.Member.Token, nil
	if t.Available && t.heads() == t.Member.Revision {
		rec.AvailableOn = t.Member.Revision
	}
	for _, v := range t.Member.Volumes {
		if !v.Object {
			rec.VolumeReady = with(rec.VolumeReady, v.Claim, v.Number)
		}
	}
	return rec
}

// initialReady reports whether each of the set's initial members was ready once. A set that never
// had members is not bootstrapped: its first member would look for peers that never were.
func (s step) initialReady() bool {
	initial, ready := s.initial(), 0
	for _, t := range s.members {
		ready += one(initial.Has(t.ID.Ordinal) && t.readyUnder(s.world.Set))
	}
	if s.world.Folded != nil {
		ready += s.world.Folded.initialReady
	}
	return ready > 0 && ready == s.world.Set.InitialReplicas
}

// initial are the ordinals of the set's first members, where its range is now.
func (f *facts) initial() spec.OrdinalRange {
	return f.world.Set.Spec.Ordinals.Range(f.world.Set.InitialReplicas)
}

// Used reports whether a volume may hold what a database wrote: a life was ready on it.
// rec is the record of its identity. A volume is new only when that is proven: by a mark that
// names an earlier volume of the claim, or because no life of the identity was ever ready.
// Without any mark (a store of an old version) it counts as used.
func Used(v *records.Volume, rec *records.IdentityRecord) bool {
	if rec == nil {
		return true
	}
	if n, marked := rec.VolumeReady[v.Claim]; marked {
		return n >= v.Number
	}
	return len(rec.VolumeReady) == 0 && rec.ReadyOnce != ""
}

// Kept reports whether a volume is there, or may be there again: all but one that its
// node was told to give up.
func Kept(v *records.Volume) bool { return v.Fate != records.FateReclaiming }

// VolumesState is what a peer hears of the volumes of a slot; "": it has none.
func VolumesState(slot *Slot) (state string) {
	for _, v := range slot.Volumes {
		if !Kept(v) {
			continue
		}
		if Used(v, slot.Identity) {
			return records.VolumesUsed
		}
		state = records.VolumesNew
	}
	return state
}

// inheritBootstrapped is the first rule of a set that is not bootstrapped (SAFETY S19): if it takes
// back data of an earlier set of its name, it is bootstrapped before any of its members
// starts, so that none forms a new cluster. The mark is written alone, before all else.
func (s step) inheritBootstrapped() {
	switch {
	case s.world.Bootstrapped:
	case Inherits(s.world):
		s.markBootstrapped(true)
	case s.world.WasBootstrapped:
		s.act(ForgetBootstrapped{})
	}
}

// Inherits reports whether a set goes on with the data of an earlier one of its name: a
// volume is kept of one that was bootstrapped, or a life was ready on it that was not one
// of this set.
func Inherits(w World) bool {
	for i := range w.Slots {
		slot := &w.Slots[i]
		foreign := slot.Identity == nil || slot.Identity.ReadyOnce != w.Set.UID
		for _, v := range slot.Volumes {
			if Kept(v) && (w.WasBootstrapped || foreign && Used(v, slot.Identity)) {
				return true
			}
		}
	}
	return false
}

// keepsAny: a volume of the set is kept.
func keepsAny(w *World) bool {
	return slices.ContainsFunc(w.Slots, func(slot Slot) bool { return VolumesState(&slot) != "" })
}
