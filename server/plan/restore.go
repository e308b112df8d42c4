package plan

import (
	"fmt"
	"maps"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// whyNotRestore says why a volume cannot be brought back from the trash; "": it can.
func (s volumes) whyNotRestore(t *memberState, q *records.VolumeRequest) string {
	v, said := t.volumes[q.Claim], t.said[q.Claim]
	switch {
	case v != nil && v.UID == q.Volume && v.Fate == records.FateReclaiming:
		return "it is still being given up; restore it once it is in the trash"
	case v != nil && v.UID == q.Volume:
		return "it is not in the trash"
	case v != nil:
		return fmt.Sprintf("%s has another volume for the claim %s, %s; give that up first", t.id.MemberName(), q.Claim, v.UID)
	case t.member != nil:
		return s.uses(t)
	case said == nil || said.Volume != q.Volume || said.State != records.VolumeTrashed:
		return "it is no longer in the trash"
	}
	for _, claim := range inOrder(t.volumes) {
		if other := t.volumes[claim]; other.Node != said.Node && !other.Shared {
			return fmt.Sprintf("it is on node %s, and the volume of %s for the claim %s on node %s: give that up first, for a member has all on one node",
				said.Node, t.id.MemberName(), claim, other.Node)
		}
	}
	return ""
}

// restore gives a volume its record again, with its id and number. It counts as used: it is
// never made anew, and no member is told that it is new.
func (s volumes) restore(t *memberState, q *records.VolumeRequest, said *records.VolumeReport) {
	v := records.Volume{
		ID: t.id, Claim: q.Claim, UID: q.Volume, Number: said.Number, Class: said.Class, Node: said.Node,
		SizeBytes: said.SizeBytes, Fate: records.FateRestoring, Turn: said.Turn + 1, CreatedAt: s.world.Now,
	}
	if n := s.node(said.Node); n != nil {
		v.Shared = n.Facts.SharesClass(v.Class)
	}
	if c := s.claimTemplate(q.Claim); c != nil {
		v.Labels = s.world.Set.Spec.ClaimLabels(c)
	}
	rec := records.IdentityRecord{ID: t.id}
	if t.identity != nil {
		rec = *t.identity
	}
	rec.VolumeNumbers = raised(rec.VolumeNumbers, v.Claim, v.Number)
	rec.VolumeReady = raised(rec.VolumeReady, v.Claim, v.Number)
	rec.ReadyOnce = "" // under whichever set it was used, it is none of the present one's first
	s.act(RestoreVolume{Volume: v, Identity: rec, Text: fmt.Sprintf("restore requested from the trash of node %s", v.Node)})
	t.become(t.withIdentity(&rec))
	t.become(t.withAnswer(&v))
}

// raised is numbers with at least n for the claim.
func raised(numbers map[spec.ClaimName]int, claim spec.ClaimName, n int) map[spec.ClaimName]int {
	out := maps.Clone(numbers)
	if out == nil {
		out = map[spec.ClaimName]int{}
	}
	out[claim] = max(out[claim], n)
	return out
}

// keepFound keeps what stands in its place, in a new turn.
func (s volumes) keepFound(t *memberState) {
	for _, claim := range inOrder(t.said) {
		v := t.volumes[claim]
		if !proof.VolumeFound(v, t.said[claim]) {
			continue
		}
		kept := *v
		kept.Fate, kept.Turn = records.FateKeep, v.Turn+1
		s.act(SetVolumes{Volumes: []records.Volume{kept}, Text: fmt.Sprintf("node %s reports that it is in its place", v.Node)})
		t.become(t.withVolume(&kept))
	}
}
