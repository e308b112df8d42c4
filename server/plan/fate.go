package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// maxFates is how many volumes may change with one action: more than one transaction
// holds would not be recorded at once.
const maxFates = 30

// fate is what becomes of a volume when its member goes, by the set's policy; that of
// a claim which the set does not have stays as it is, and so does, when the set is
// deleted and its volumes stay, what a scale-down has decided.
func (s volumes) fate(v *records.Volume) records.VolumeFate {
	policy := spec.RetentionPolicy{}
	if p := s.world.Set.Spec.Retention; p != nil {
		policy = *p
	}
	when := policy.WhenScaled
	if s.world.Set.Deleting {
		when = policy.WhenDeleted
	}
	switch {
	case v.Fate.Ordered() || s.claimTemplate(v.Claim) == nil:
		return v.Fate
	case when == spec.Delete:
		return records.FateDelete
	case s.world.Set.Deleting:
		return v.Fate
	}
	return records.FateKeep
}

// claimTemplate is the set's template of a claim; nil: it has none.
func (f *facts) claimTemplate(name spec.ClaimName) *spec.ClaimTemplate {
	for i := range f.world.Set.Spec.VolumeClaimTemplates {
		if c := &f.world.Set.Spec.VolumeClaimTemplates[i]; c.Metadata.Name == string(name) {
			return c
		}
	}
	return nil
}

// withFate is v with the fate and, from the set's template, the trash period that it
// is to have; false: it has them.
func (s volumes) withFate(v *records.Volume, fate records.VolumeFate) (records.Volume, bool) {
	now := *v
	now.Fate = fate
	if c := s.claimTemplate(v.Claim); c != nil && !v.Fate.Ordered() {
		now.TrashAfter = trash(c)
	}
	return now, now.Fate != v.Fate || now.Trash() != v.Trash()
}

// trash is the trash period of a claim as records have it.
func trash(c *spec.ClaimTemplate) *scalar.Duration {
	if c.Trash() == spec.DefaultTrash {
		return nil
	}
	return &scalar.Duration{Duration: c.Trash()}
}

// inOrder are the claims of m, ascending. Most members have one or none, and every step
// asks for them of each.
func inOrder[V any](m map[spec.ClaimName]V) []spec.ClaimName {
	if len(m) == 0 {
		return nil
	}
	out := make([]spec.ClaimName, 0, len(m))
	for claim := range m {
		out = append(out, claim)
	}
	slices.Sort(out)
	return out
}

// fatesToRecord are the volumes of a member that goes whose fate is not recorded yet as it
// is to be. Whoever asks records them: they are named once.
func (s volumes) fatesToRecord(t *memberState) (out []records.Volume) {
	if t.wanted || t.Member == nil || t.fatesRecorded {
		return nil
	}
	t.fatesRecorded = true
	for _, claim := range inOrder(t.Volumes) {
		if v, changed := s.withFate(t.Volumes[claim], s.fate(t.Volumes[claim])); changed {
			out = append(out, v)
		}
	}
	return out
}

// fates are those of all members that go, highest first.
func (s volumes) fates() (out []records.Volume) {
	for _, t := range slices.Backward(s.members) {
		out = append(out, s.fatesToRecord(t)...)
	}
	return out
}

// setVolumes records them, in as many actions as it takes.
func (s volumes) setVolumes(volumes []records.Volume, why string) {
	for part := range slices.Chunk(volumes, maxFates) {
		s.act(SetVolumes{Volumes: part, Text: why})
	}
}

// keepVolumes keeps the volumes of members that are wanted (again), and lets them grow.
func (s volumes) keepVolumes() {
	for _, t := range s.inside {
		changed := s.toKeep(t)
		t.volumesKept = len(changed) > 0
		if t.volumesKept {
			s.setVolumes(changed, t.ID.MemberName()+" is wanted, with the size that is asked for")
		}
	}
}

// toKeep are the volumes of a wanted member as they are to be recorded; none: they are.
func (s volumes) toKeep(t *memberState) (changed []records.Volume) {
	for _, claim := range inOrder(t.Volumes) {
		v := t.Volumes[claim]
		if v.Fate.Ordered() {
			continue
		}
		kept, size := *v, v.SizeBytes
		if c := s.claimTemplate(claim); c != nil && c.Spec.Class() == v.Class {
			size = max(size, sizeOf(c))
		}
		kept.Fate, kept.SizeBytes, kept.Grown = records.FateKeep, size, v.Grown || size > v.SizeBytes
		if v.Fate == records.FateDelete || size > v.SizeBytes {
			changed = append(changed, kept)
		}
	}
	return changed
}

// reclaimVolumes gives up what is to go (SAFETY S11): a volume that cannot be used any more is
// reclaimed, and its record goes when its node has said that its place is empty. It disturbs
// no member, so it waits for none. It reports whether a fate was recorded.
func (s volumes) reclaimVolumes() (given bool) {
	for _, t := range s.members {
		given = s.reclaim(t) || given
		s.keepFound(t)
		s.voidRequests(t)
		s.dropVolumes(t)
		if !t.wanted && t.Member == nil {
			s.blockGivenUp(t)
		}
	}
	return given
}

// reclaim gives up the volumes of an identity that has no life and gets none. The
// last life's record is gone, so it is proven over; a stray may use them still.
func (s volumes) reclaim(t *memberState) bool {
	if t.wanted || t.Member != nil || t.gone || t.Move != nil { // the nodes of a move have its volumes
		return false
	}
	var changed []records.Volume
	why := "" // as far as a user asked for it
	for _, claim := range inOrder(t.Volumes) {
		v, asked := t.Volumes[claim], s.askedFor(t, claim, records.VerbReclaim)
		fate := v.Fate
		if s.world.Set.Deleting {
			fate = s.fate(v)
		}
		if (fate == records.FateDelete && s.awaitsForgetting(t) == nil || asked != nil || s.claimGoes(v)) && len(t.Strays) == 0 {
			fate = records.FateReclaiming
		}
		if fate == v.Fate {
			continue
		}
		now, _ := s.withFate(v, fate)
		if fate == records.FateReclaiming {
			now.Node = s.keeper(v)
		}
		if asked != nil && fate == records.FateReclaiming {
			why += "given up on request; "
			if asked.Trash != nil {
				now.TrashAfter = asked.Trash
			}
		}
		changed = append(changed, now)
	}
	if len(changed) > 0 {
		s.act(SetVolumes{Volumes: changed, Text: fmt.Sprintf("%sno life of %s is left that could use them", why, t.ID.MemberName())})
	}
	return len(changed) > 0
}

// dropVolumes removes the record of a volume that is gone from its place, or lost with its host; the
// next one follows at the next look. With the last of an identity that is not wanted its
// address is free.
func (s volumes) dropVolumes(t *memberState) {
	for _, claim := range inOrder(t.Volumes) {
		v, said := t.Volumes[claim], t.Said[claim]
		a := DropVolume{ID: t.ID, Claim: claim, Volume: v.UID, Turn: v.Turn}
		switch {
		case t.volumesLost: // in this very step: what was said before that does not count
			continue
		case proof.VolumeGone(v, said):
			a.Text = fmt.Sprintf("node %s says that it is %s", v.Node, said.State)
		case proof.LostWithHost(v, s.node(v.Node)):
			a.Left, a.Text = true, fmt.Sprintf("node %s was fenced; if it returns, what is left there goes to its trash", v.Node)
		default:
			continue
		}
		if s.world.Claim == nil && t.Identity != nil && !t.wanted && t.Member == nil && !t.gone && len(t.Volumes) == 1 && len(t.Strays) == 0 {
			rec := withoutAddress(t.Identity, s.world.Set)
			a.Identity, a.FreeAddress = &rec, true
		}
		s.act(a)
		return
	}
}

// blockGivenUp says what a volume waits for that nobody uses and that is to go.
func (s volumes) blockGivenUp(t *memberState) {
	if no := s.awaitsForgetting(t); no != nil {
		s.block(t, no.Reason, no.Text)
		return
	}
	for _, claim := range inOrder(t.Volumes) {
		v := t.Volumes[claim]
		going := v.Fate == records.FateDelete || s.askedFor(t, claim, records.VerbReclaim) != nil
		switch {
		case going && len(t.Strays) > 0:
			s.block(t, causes.BlockedStray, fmt.Sprintf("its volume of the claim %s is to go, but %s", claim, t.strayText()))
			return
		case v.Fate.Ordered():
			no := s.givenUp(v, t.Said[claim])
			s.block(t, no.Reason, no.Text)
			return
		}
	}
	if len(t.Asked) > 0 && len(t.Strays) > 0 { // what is asked is not about a volume with a record
		s.block(t, causes.BlockedStray, "one of its volumes is to be restored, but "+t.strayText())
	}
}

// givenUp says what a volume waits for about which its node has an order.
func (s volumes) givenUp(v *records.Volume, said *records.VolumeReport) *place.Refusal {
	what := fmt.Sprintf("its volume %s of the claim %s is being given up", v.UID, v.Claim)
	switch v.Fate {
	case records.FateLost:
		what = fmt.Sprintf("its volume %s of the claim %s was reported lost, and is being checked once more", v.UID, v.Claim)
	case records.FateRestoring:
		what = fmt.Sprintf("its volume %s of the claim %s is being brought back from the trash", v.UID, v.Claim)
	}
	n := s.node(v.Node)
	switch {
	case n == nil || !n.Connected():
		return &place.Refusal{Reason: causes.BlockedNodeSilent, Text: fmt.Sprintf("%s on node %s, which is unreachable; if the node is off for good: stead node fence %s --i-have-powered-off", what, v.Node, v.Node)}
	case said != nil && said.Volume == v.UID && said.State == records.VolumeRefused:
		return &place.Refusal{Reason: cmp.Or(causes.BlockedReason(said.Cause), causes.BlockedReclaiming), Text: fmt.Sprintf("%s, but node %s refuses: %s", what, v.Node, said.Message)}
	case v.Fate == records.FateRestoring:
		return &place.Refusal{Reason: causes.BlockedRestoring, Text: fmt.Sprintf("%s of node %s", what, v.Node)}
	}
	return &place.Refusal{Reason: causes.BlockedReclaiming, Text: fmt.Sprintf("%s on node %s; a new one follows when it is gone", what, v.Node)}
}

// withoutSet is the world of what has no set (any more), as one of a set that is being deleted.
func withoutSet(w World, ref spec.SetRef) World {
	w.Set, w.Table = &records.Set{Ref: ref, Deleting: true}, false
	return w
}

// planRemovedSet plans for what a removed set has left behind: volumes that are to go, or of
// which a person asks something. All else of it runs on: absence does not order anything.
func planRemovedSet(w World) Plan {
	if len(w.Slots) == 0 {
		return Plan{}
	}
	s := newStep(withoutSet(w, w.Slots[0].ID.Ref()))
	if !s.blockUnreadable() && !s.blockHalted() {
		s.applyRequests()
		s.mover().moveVolumes()
		s.reclaimVolumes()
		if w.WasBootstrapped && !keepsAny(&w) {
			s.act(ForgetBootstrapped{})
		}
	}
	return s.plan
}
