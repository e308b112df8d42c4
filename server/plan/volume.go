package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// storage finds the volume of each claim for the life that a begins on node, and makes
// those that were never made; rec gets their numbers. A volume that has a record is
// used or waited for: it is never made a second time (promise 2). One that is being
// given up, looked for or brought back is waited for also when the set has its claim no more: no node gives up a
// volume of an identity that has a life. A shared one comes along.
func (s volumes) storage(t *memberState, rec *records.IdentityRecord, node *Node, a *Start) *place.Refusal {
	for _, claim := range inOrder(t.volumes) {
		if v := t.volumes[claim]; v.Fate.Ordered() {
			return s.givenUp(t, v)
		}
	}
	for i := range s.world.Set.Spec.VolumeClaimTemplates {
		c := &s.world.Set.Spec.VolumeClaimTemplates[i]
		name := spec.ClaimName(c.Metadata.Name)
		v := t.volumes[name]
		if v == nil {
			v = s.newVolume(t, c, rec, node)
			a.Volumes = append(a.Volumes, *v)
		} else if why := mismatch(v, c); why != "" {
			return &place.Refusal{Reason: causes.BlockedVolume, Text: fmt.Sprintf("its volume of the claim %s %s", name, why)}
		} else if v.Shared && v.Node != node.Node.Name {
			moved := *v
			moved.Node = node.Node.Name
			a.Moved = append(a.Moved, moved)
		}
		a.Member.Volumes = append(a.Member.Volumes, records.MemberVolume{
			Claim: name, ID: v.UID, Number: v.Number, Class: v.Class, SizeBytes: v.SizeBytes,
			Shared: v.Shared, Fenced: v.Shared && node.Facts.FencesClass(v.Class),
		})
	}
	return nil
}

func (s volumes) newVolume(t *memberState, c *spec.ClaimTemplate, rec *records.IdentityRecord, node *Node) *records.Volume {
	name := spec.ClaimName(c.Metadata.Name)
	if rec.VolumeNumbers == nil {
		rec.VolumeNumbers = map[spec.ClaimName]int{}
	}
	rec.VolumeNumbers[name]++
	return &records.Volume{
		ID: t.id, Claim: name, UID: s.world.VolumeID(), Number: rec.VolumeNumbers[name], Class: c.Spec.Class(),
		Node: node.Node.Name, Shared: node.Facts.SharesClass(c.Spec.Class()), SizeBytes: sizeOf(c), Fate: records.FateKeep, CreatedAt: s.world.Now, TrashAfter: trash(c),
		Labels: s.world.Set.Spec.ClaimLabels(c),
	}
}

// mismatch says why a volume does not serve a claim; "": it does. A volume larger
// than asked serves; one that is smaller has grown before (see keepVolumes).
func mismatch(v *records.Volume, c *spec.ClaimTemplate) string {
	switch {
	case v.Class != c.Spec.Class():
		return fmt.Sprintf("is of class %s, but %s is asked for; change the claim back, or scale the member away and give up the volume", v.Class, c.Spec.Class())
	}
	return ""
}

func sizeOf(c *spec.ClaimTemplate) int64 { return c.Spec.Resources.Requests["storage"].Value() }
