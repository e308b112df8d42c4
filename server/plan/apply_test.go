package plan

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/spec"
)

type addr = netip.Addr

func encodeStatus(s spec.SetStatus) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// apply makes the world after all actions of p.
func apply(w World, p Plan) World {
	for _, a := range p.Actions {
		w = applyOne(w, a)
	}
	w.Status = &p.Status
	return w
}

// applyOne makes the world after one action, at the next store revision.
func applyOne(w World, a Action) World {
	w.Rev++
	w.Slots = slices.Clone(w.Slots)
	switch a := a.(type) {
	case AddRevision:
		w.Revisions = append(slices.Clone(w.Revisions), &a.Revision)
	case RaiseRevision:
		w.Revisions = slices.DeleteFunc(slices.Clone(w.Revisions), func(r *spec.Revision) bool { return r.Hash == a.Revision.Hash })
		w.Revisions = append(w.Revisions, &a.Revision)
	case PruneRevision:
		w.Revisions = slices.DeleteFunc(slices.Clone(w.Revisions), func(r *spec.Revision) bool { return r.Hash == a.Hash })
	case Start:
		s := slotOf(&w, a.Member.ID)
		s.Member, s.Identity, s.Report = &a.Member, &a.Identity, nil
		s.Volumes = maps.Clone(s.Volumes)
		for i := range a.Volumes {
			if s.Volumes == nil {
				s.Volumes = map[spec.ClaimName]*spec.Volume{}
			}
			if s.Volumes[a.Volumes[i].Claim] != nil {
				panic("a volume was made a second time")
			}
			s.Volumes[a.Volumes[i].Claim] = &a.Volumes[i]
		}
		if a.NewAddress {
			w.Free = slices.DeleteFunc(slices.Clone(w.Free), func(x addr) bool { return x == a.Member.Address })
		}
	case Stop:
		s := slotOf(&w, a.ID)
		m := *s.Member
		m.Goal, m.StopReason = spec.GoalStop, a.Reason
		s.Member, s.Request = &m, nil // answered
		for i := range a.Volumes {
			v := slotOf(&w, a.Volumes[i].ID)
			v.Volumes = maps.Clone(v.Volumes)
			v.Volumes[a.Volumes[i].Claim] = &a.Volumes[i]
		}
	case Forget:
		s := slotOf(&w, a.ID)
		s.Member, s.Report = nil, nil
		id := *s.Identity
		id.Due = ""
		s.Identity = &id
		if a.FreeAddress {
			w.Free = append(slices.Clone(w.Free), s.Identity.Address)
			s.Identity = &spec.IdentityRecord{ID: a.ID, LastToken: s.Identity.LastToken}
		}
	case MarkReady:
		slotOf(&w, a.Identity.ID).Identity = &a.Identity
	case SetVolumes:
		for i := range a.Volumes {
			v := &a.Volumes[i]
			s := slotOf(&w, v.ID)
			s.Volumes = maps.Clone(s.Volumes)
			s.Volumes[v.Claim] = v
			if v.Fate == spec.FateReclaiming || v.Fate == spec.FateLost { // answered
				s.Asked = maps.Clone(s.Asked)
				delete(s.Asked, v.Claim)
			}
		}
	case DropVolume:
		s := slotOf(&w, a.ID)
		s.Volumes, s.Said = maps.Clone(s.Volumes), maps.Clone(s.Said)
		delete(s.Volumes, a.Claim)
		delete(s.Said, a.Claim)
		if a.Identity != nil {
			s.Identity = a.Identity
		}
	case RestoreVolume:
		s := slotOf(&w, a.Volume.ID)
		s.Volumes, s.Said, s.Asked = maps.Clone(s.Volumes), maps.Clone(s.Said), maps.Clone(s.Asked)
		if s.Volumes == nil {
			s.Volumes = map[spec.ClaimName]*spec.Volume{}
		}
		if s.Volumes[a.Volume.Claim] != nil {
			panic("a volume came back beside another")
		}
		s.Volumes[a.Volume.Claim], s.Identity = &a.Volume, &a.Identity
		delete(s.Said, a.Volume.Claim) // of an earlier turn
		delete(s.Asked, a.Volume.Claim)
	case VoidRequest:
		s := slotOf(&w, a.ID)
		s.Asked = maps.Clone(s.Asked)
		delete(s.Asked, a.Claim)
	case MarkBootstrapped:
		w.Bootstrapped, w.WasBootstrapped = true, false
	case ForgetBootstrapped:
		w.WasBootstrapped = false
	case RemoveSet:
		w.Set, w.Status, w.Revisions = nil, nil, nil
	}
	return w
}

// slotOf finds or makes the slot of an identity; w.Slots must be the caller's own.
func slotOf(w *World, id spec.Identity) *Slot {
	i, ok := slices.BinarySearchFunc(w.Slots, id.Ordinal, func(s Slot, o int) int { return cmp.Compare(s.ID.Ordinal, o) })
	if !ok {
		w.Slots = slices.Insert(w.Slots, i, Slot{ID: id})
	}
	return &w.Slots[i]
}
