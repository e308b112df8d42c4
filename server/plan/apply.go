package plan

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Batch is what of a plan is written now; the rest is decided again when that is stored. A raised revision is written alone, and so
// is what a set knows of an earlier one of its name, or of its jobs: no life starts before that is stored. With a new
// revision go only the starts that may need it. Lives that reach their target as they are come before all else. In which order these
// were decided does not matter.
func (p *Plan) Batch() []Action {
	if i := slices.IndexFunc(p.Actions, goesAlone); i >= 0 {
		return p.Actions[i : i+1]
	}
	if has[AddRevision](p.Actions) {
		return slices.DeleteFunc(slices.Clone(p.Actions), func(a Action) bool { return !is[AddRevision](a) && !is[Start](a) })
	}
	if has[Promote](p.Actions) {
		return slices.DeleteFunc(slices.Clone(p.Actions), func(a Action) bool { return !is[Promote](a) })
	}
	return p.Actions
}

func goesAlone(a Action) bool {
	switch a := a.(type) {
	case RaiseRevision, ForgetBootstrapped, PutJobs, OrderJob:
		return true
	case MarkBootstrapped:
		return a.Inherited
	}
	return false
}

func is[T Action](a Action) bool { _, is := a.(T); return is }

func has[T Action](list []Action) bool { return slices.ContainsFunc(list, is[T]) }

// Record is what a stop makes of the member's record.
func (a *Stop) Record(m records.Member) records.Member {
	m.Goal, m.StopReason, m.Hook, m.Change = records.GoalStop, a.Reason, nil, nil
	return m
}

// Record is what remains of the identity's record. What it ran last does not matter when it
// returns.
func (a *Forget) Record(old records.IdentityRecord, set *records.Set) records.IdentityRecord {
	old.Gone = a.Gone
	if a.FreeAddress {
		return withoutAddress(&old, set)
	}
	old.Due = ""
	return old
}

// withoutAddress is what remains of an identity whose address is free; its volumes are counted on
// as long as the set is there.
func withoutAddress(old *records.IdentityRecord, set *records.Set) records.IdentityRecord {
	kept := records.IdentityRecord{ID: old.ID, LastToken: old.LastToken, Gone: old.Gone}
	if set != nil && !set.Deleting {
		kept.VolumeNumbers, kept.VolumeReady = old.VolumeNumbers, old.VolumeReady
	}
	return kept
}

// apply makes w the world after one action, at the next store revision, as the engine's
// transactions do. The slots of w must be the caller's own; records and maps are replaced,
// never changed.
func (w *World) apply(a Action) {
	w.Rev++
	switch a := a.(type) {
	case AddRevision:
		w.Revisions = append(slices.Clone(w.Revisions), &a.Revision)
	case RaiseRevision:
		w.Revisions = append(w.revisionsWithout(a.Revision.Hash), &a.Revision)
	case PruneRevision:
		w.Revisions = w.revisionsWithout(a.Hash)
	case Start:
		w.applyStart(a)
	case Stop:
		slot := w.slotOf(a.ID)
		m := a.Record(*slot.Member)
		slot.Member, slot.Request = &m, nil
		if a.Move != nil {
			slot.Move = a.Move
		}
		for i := range a.Volumes {
			w.slotOf(a.Volumes[i].ID).put(&a.Volumes[i])
		}
	case Forget:
		slot := w.slotOf(a.ID)
		slot.Member, slot.Report, slot.Request = nil, nil, nil
		if slot.Identity != nil {
			w.free(slot, a.FreeAddress)
			kept := a.Record(*slot.Identity, w.Set)
			slot.Identity = &kept
		}
	case OrderHook:
		slot := w.slotOf(a.ID)
		m := a.Record(*slot.Member)
		slot.Member = &m
	case Promote:
		slot := w.slotOf(a.ID)
		m := a.Record(*slot.Member)
		slot.Member, slot.Identity = &m, &a.Identity
	case ChangeInPlace:
		slot := w.slotOf(a.ID)
		m := a.Record(*slot.Member)
		slot.Member, slot.Identity = &m, &a.Identity
	case PutJobs:
		w.Jobs = &a.Record
	case OrderJob:
		slot := w.slotOf(a.ID)
		m := (&OrderHook{Hook: a.Hook}).Record(*slot.Member)
		slot.Member, w.Jobs = &m, &a.Record
	case Forgotten:
		w.putIdentity(&a.Identity)
		if !a.Token.IsZero() {
			slot := w.slotOf(a.By)
			m := (&OrderHook{}).Record(*slot.Member)
			slot.Member = &m
		}
	case MarkReady:
		w.putIdentity(&a.Identity)
	case SetVolumes:
		for i := range a.Volumes {
			v := &a.Volumes[i]
			slot := w.slotOf(v.ID)
			slot.put(v)
			if v.Fate == records.FateReclaiming || v.Fate == records.FateLost {
				slot.Asked, slot.Said = without(slot.Asked, v.Claim), without(slot.Said, v.Claim)
			}
		}
	case DropVolume:
		w.applyDrop(a)
	case RestoreVolume:
		slot := w.slotOf(a.Volume.ID)
		if slot.Volumes[a.Volume.Claim] != nil && !a.Unknown {
			panic("a volume came back beside another")
		}
		for _, left := range a.Left {
			slot.Left = append(slices.Clone(slot.Left), left.Node)
		}
		slot.put(&a.Volume)
		slot.Identity = &a.Identity
		slot.Said, slot.Asked = without(slot.Said, a.Volume.Claim), without(slot.Asked, a.Volume.Claim)
	case LeaveVolume:
		slot := w.slotOf(a.Left.ID)
		slot.Left = append(slices.Clone(slot.Left), a.Left.Node)
		slot.Unknown = slices.DeleteFunc(slices.Clone(slot.Unknown), func(u UnknownVolume) bool { return u.Volume == a.Left.Volume })
		slot.Asked = without(slot.Asked, a.Left.Claim)
	case VoidRequest:
		slot := w.slotOf(a.ID)
		slot.Asked = without(slot.Asked, a.Claim)
	case MarkBootstrapped:
		w.Bootstrapped, w.WasBootstrapped = true, false
	case ForgetBootstrapped:
		w.WasBootstrapped, w.Jobs = false, nil
	case BeginMove, AdvanceMove, FlipMove, BackMove, ForwardMove, EndMove, VoidMoveRequest:
		w.applyMove(a)
	case RemoveClaim:
		gone := *w.Claim
		gone.Record, w.Claim = nil, &gone
	case RemoveSet:
		w.WasBootstrapped = w.WasBootstrapped || w.Bootstrapped && keepsAny(w)
		if !w.WasBootstrapped {
			w.Jobs = nil
		}
		w.Set, w.Status, w.Revisions, w.Bootstrapped = nil, nil, nil, false
	}
}

func (w *World) applyStart(a Start) {
	slot := w.slotOf(a.Member.ID)
	slot.Member, slot.Identity, slot.Report, slot.Request = &a.Member, &a.Identity, nil, nil
	for i := range a.Volumes {
		of := w.holder(a.Volumes[i].ID)
		if of.Volumes[a.Volumes[i].Claim] != nil {
			panic("a volume was made a second time")
		}
		of.put(&a.Volumes[i])
	}
	for i := range a.Moved {
		w.holder(a.Moved[i].ID).put(&a.Moved[i])
	}
	for i := range a.Claimed {
		w.putIdentity(&a.Claimed[i])
	}
	if a.NewAddress {
		w.Free = slices.DeleteFunc(slices.Clone(w.Free), func(x netip.Addr) bool { return x == a.Member.Address })
	}
}

func (w *World) applyDrop(a DropVolume) {
	slot := w.slotOf(a.ID)
	if a.Left {
		slot.Left = append(slices.Clone(slot.Left), slot.Volumes[a.Claim].Node)
	}
	slot.Volumes, slot.Said = without(slot.Volumes, a.Claim), without(slot.Said, a.Claim)
	if a.Identity != nil {
		w.free(slot, a.FreeAddress)
		slot.Identity = a.Identity
	}
}

// free returns the address of an identity.
func (w *World) free(slot *Slot, address bool) {
	if address && slot.Identity.Address.IsValid() {
		w.Free = append(slices.Clone(w.Free), slot.Identity.Address)
	}
}

func (w *World) revisionsWithout(h spec.RevisionHash) []*records.Revision {
	return slices.DeleteFunc(slices.Clone(w.Revisions), func(r *records.Revision) bool { return r.Hash == h })
}

// slotOf finds or makes the slot of an identity.
func (w *World) slotOf(id spec.Identity) *Slot {
	i, known := w.find(id.Ordinal)
	if !known {
		w.Slots = slices.Insert(w.Slots, i, Slot{ID: id})
	}
	return &w.Slots[i]
}

func (w *World) find(ordinal int) (int, bool) {
	return slices.BinarySearchFunc(w.Slots, ordinal, func(s Slot, o int) int { return cmp.Compare(s.ID.Ordinal, o) })
}

// put replaces or adds the record of a volume.
func (slot *Slot) put(v *records.Volume) {
	slot.Volumes = with(slot.Volumes, v.Claim, v)
}

// with is m with v for the claim, without is m without the claim. m stays as it is.
func with[V any](m map[spec.ClaimName]V, claim spec.ClaimName, v V) map[spec.ClaimName]V {
	m = maps.Clone(m)
	if m == nil {
		m = map[spec.ClaimName]V{}
	}
	m[claim] = v
	return m
}

func without[V any](m map[spec.ClaimName]V, claim spec.ClaimName) map[spec.ClaimName]V {
	if _, known := m[claim]; !known {
		return m
	}
	m = maps.Clone(m)
	delete(m, claim)
	return m
}
