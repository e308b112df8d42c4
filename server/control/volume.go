package control

import (
	"context"
	"slices"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// volumes are the volumes that q may choose, and behind each what lies in the trash of
// the same claim and member.
func (s queries) fromVolumes(ctx context.Context, q query) ([]item, error) {
	// First what is asked: who finds no request any more finds what came of it.
	requests, err := stored[records.VolumeRequest](ctx, s.shared, store.KindVolumeRequest, q.ns)
	if err != nil {
		return nil, err
	}
	volumes, err := stored[records.Volume](ctx, s.shared, store.KindVolume, q.ns)
	if err != nil {
		return nil, err
	}
	said, err := stored[records.VolumeReport](ctx, s.shared, store.KindVolumeReport, q.ns)
	if err != nil {
		return nil, err
	}
	asked := map[records.VolumeID]records.VolumeVerb{}
	for _, r := range requests {
		asked[r.Volume] = r.Verb
	}
	byID := map[records.VolumeID]*records.VolumeReport{}
	for i := range said {
		byID[said[i].Volume] = &said[i]
	}
	claims, err := stored[records.ClaimRecord](ctx, s.shared, store.KindClaim, q.ns)
	if err != nil {
		return nil, err
	}
	bound := map[spec.Identity]bool{}
	for i := range volumes {
		bound[volumes[i].ID] = true
	}
	var items []item
	claimed := map[spec.Identity]*records.ClaimRecord{}
	trashed := map[records.VolumeID]map[string]string{}
	for i := range claims {
		c := &claims[i]
		claimed[c.Identity()] = c
		if !bound[c.Identity()] {
			items = append(items, showVolume(records.Volume{
				ID: c.Identity(), Claim: spec.ClaimName(c.Name), Class: c.Spec.Class(), SizeBytes: c.Spec.SizeBytes(), Fate: records.FateUnbound,
			}, c, records.ShownVolume{}))
		}
	}
	s.cfg.Cache.Look(func(v cache.View) {
		for _, r := range said {
			trashed[r.Volume] = claimLabels(v, r.ID.Ref(), r.Claim)
		}
		for _, vol := range volumes {
			if vol.Labels == nil {
				vol.Labels = claimLabels(v, vol.ID.Ref(), vol.Claim)
			}
			claim := claimed[vol.ID]
			st := records.ShownVolume{User: userOf(v, vol), Said: byID[vol.UID], Asked: asked[vol.UID]}
			if claim != nil && claim.Deleting {
				st.Asked = records.VerbDelete
			}
			items = append(items, showVolume(vol, claim, st))
			delete(byID, vol.UID)
		}
	})
	var unknown []plan.UnknownVolume
	s.cfg.Cache.Look(func(v cache.View) { unknown = cache.AllUnknownVolumes(v, q.ns) })
	for _, u := range unknown {
		if slices.ContainsFunc(volumes, func(v records.Volume) bool { return v.UID == u.Volume }) { // it was, a moment ago
			continue
		}
		items = append(items, showVolume(records.Volume{
			ID: u.ID, Claim: u.Claim, UID: u.Volume, Number: u.Number, Class: u.Class, Node: u.Node, Fate: "Unknown",
		}, nil, records.ShownVolume{Said: byID[u.Volume], Asked: asked[u.Volume]}))
		delete(byID, u.Volume)
	}
	for _, r := range said {
		if byID[r.Volume] == nil || r.State != records.VolumeTrashed && asked[r.Volume] == "" {
			continue
		}
		items = append(items, showVolume(records.Volume{
			ID: r.ID, Claim: r.Claim, UID: r.Volume, Number: r.Number, Class: r.Class, Node: r.Node,
			SizeBytes: r.SizeBytes, Fate: records.FateTrashed, Labels: trashed[r.Volume],
		}, nil, records.ShownVolume{Said: byID[r.Volume], Asked: asked[r.Volume]}))
	}
	return items, nil
}

// claimLabels are the labels that a set gives to the volumes of a claim; nil: there is no
// such set or claim.
func claimLabels(v cache.View, ref spec.SetRef, claim spec.ClaimName) map[string]string {
	set := v.Set(ref)
	if set == nil {
		return nil
	}
	if c := set.Spec.Claim(claim); c != nil {
		return set.Spec.ClaimLabels(c)
	}
	return nil
}

// stored reads all records of a kind in a namespace. One that cannot be read is left out; the
// server's log has named it.
func stored[T any](ctx context.Context, s *shared, kind string, ns spec.Namespace) (out []T, err error) {
	kvs, err := s.snapshot(ctx, kind, ns)
	for _, kv := range kvs {
		if record, err := store.Decode[T](kv); err == nil {
			out = append(out, record)
		}
	}
	return out, err
}

// userOf is the life that uses a volume; of a claim those that may.
func userOf(v cache.View, vol records.Volume) string {
	if name, is := vol.ID.Ref().ClaimName(); is {
		return listed(cache.ClaimOf(v, vol.ID.Namespace, name).Users, func(u plan.ClaimUser) string { return u.Member.ID.MemberName() + " " + u.Member.Token.String() })
	}
	m := v.Member(vol.ID)
	if m == nil {
		return ""
	}
	for _, mount := range m.Volumes {
		if mount.Claim == vol.Claim && mount.ID == vol.UID {
			return m.ID.MemberName() + " " + m.Token.String()
		}
	}
	return ""
}

// showVolume shows the volume of a PersistentVolumeClaim with what marks that now; claim is nil for others.
func showVolume(v records.Volume, claim *records.ClaimRecord, st records.ShownVolume) item {
	name := records.VolumeName(v.ID, v.Claim)
	if v.Fate == records.FateTrashed || v.Fate.Unknown() {
		name = trashName(name, v.UID)
	}
	var annotations map[string]string
	labels := v.Labels
	v.Labels = nil // shown once
	if claim != nil {
		labels, annotations = claim.Labels, claim.Annotations
	}
	set := v.ID.Set
	if _, is := v.ID.Ref().ClaimName(); is {
		set = ""
	}
	return item{kind: proto.KindVolume, set: set, body: object{
		APIVersion: steadVersion, Kind: "Volume", Spec: v, Status: st,
		Metadata: records.ShownMeta{
			Name: name, Namespace: v.ID.Namespace, UID: string(v.UID), Labels: labels, Annotations: annotations, CreationTimestamp: v.CreatedAt,
		},
	}}
}

// trashName is the name of a volume in the trash, where several of one claim may lie.
func trashName(name string, id records.VolumeID) string {
	return name + "." + string(id)[:min(8, len(id))]
}
