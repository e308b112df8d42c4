package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Volumes that a node has in their place and the store does not know: a person says what becomes of them (SAFETY S11).

// findUnknown is the one that a person names on a node, by its id or by the name that it has; nil: that node has none.
func (s volumes) findUnknown(ns, name string, node spec.NodeName) (*plan.UnknownVolume, error) {
	if node == "" || name == "" {
		return nil, nil
	}
	var found []plan.UnknownVolume
	s.cfg.Cache.Look(func(v cache.View) { found = cache.AllUnknownVolumes(v, namespace(ns)) })
	found = slices.DeleteFunc(found, func(u plan.UnknownVolume) bool {
		has := records.VolumeName(u.ID, u.Claim)
		return u.Node != node || has != name && trashName(has, u.Volume) != name && string(u.Volume) != name
	})
	if len(found) == 0 {
		return nil, nil
	}
	one, err := only(found, name, fmt.Sprintf(" on node %s that the store does not know", node), func(u plan.UnknownVolume) string {
		return fmt.Sprintf("%s is the claim %s of %s, number %d", u.Volume, u.Claim, u.ID.MemberName(), u.Number)
	})
	return &one, err
}

// restoreUnknown asks for a volume to be its member's.
func (s volumes) restoreUnknown(ctx context.Context, u *plan.UnknownVolume, err error) (*proto.VolumeResponse, error) {
	if err != nil {
		return nil, err
	}
	q := records.VolumeRequest{ID: u.ID, Claim: u.Claim, Volume: u.Volume, Verb: records.VerbRestore, Node: u.Node}
	out := &proto.VolumeResponse{Volume: string(u.Volume)}
	return out, s.ask(ctx, q, nil, false, func(f plan.Forecast) {
		out.Effects = []string{fmt.Sprintf("makes volume %s (%s), number %d, on node %s that of %s", records.VolumeName(u.ID, u.Claim), u.Volume, u.Number, u.Node, u.ID.MemberName())}
		for _, step := range f.Steps {
			if a, is := step.Action.(plan.RestoreVolume); is && a.Volume.UID == u.Volume {
				for _, left := range a.Left {
					out.Effects = append(out.Effects, fmt.Sprintf("what is left of %s, number %d, on node %s goes to its trash for %s", left.Volume, left.Number, left.Node, left.Left))
				}
			}
		}
	})
}

// reclaimUnknown asks for a volume to be given up where it is.
func (s volumes) reclaimUnknown(ctx context.Context, r *proto.ReclaimVolumeRequest) (*proto.VolumeResponse, error) {
	u, err := s.findUnknown(r.GetNamespace(), r.GetName(), spec.NodeName(r.GetNode()))
	switch {
	case err != nil:
		return nil, err
	case r.GetLost():
		return nil, invalid("a volume that node %s has is not lost: leave --lost or --node out", r.GetNode())
	case u == nil:
		return nil, absent("node %s has no volume %s of namespace %s that the store does not know; see 'stead volume ls'; for one that it knows leave --node out", r.GetNode(), r.GetName(), namespace(r.GetNamespace()))
	case r.GetVolume() != "" && r.GetVolume() != string(u.Volume):
		return nil, conflict("%s is another volume now (%s, not %s); nothing was changed", r.GetName(), u.Volume, r.GetVolume())
	}
	q := records.VolumeRequest{ID: u.ID, Claim: u.Claim, Volume: u.Volume, Verb: records.VerbReclaim, Node: u.Node}
	if q.Trash, err = trashOf(r); err != nil {
		return nil, err
	}
	trash := scalar.Duration{Duration: spec.DefaultTrash}
	if q.Trash != nil {
		trash = *q.Trash
	}
	out := &proto.VolumeResponse{Volume: string(u.Volume)}
	return out, s.ask(ctx, q, nil, r.GetDryRun(), func(plan.Forecast) {
		out.Effects = []string{
			fmt.Sprintf("gives up volume %s (%s), number %d, on node %s, which the store does not know", records.VolumeName(u.ID, u.Claim), u.Volume, u.Number, u.Node),
			fmt.Sprintf("moved to the trash of node %s for %s", u.Node, trash),
		}
	})
}
