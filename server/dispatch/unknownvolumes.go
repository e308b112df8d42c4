package dispatch

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

// maxUnknownVolumes bounds the volumes of a node that the store does not know. More are refused with the session: to forget some would be
// to take them for not there.
const maxUnknownVolumes = 2048

// hostVolumes are the volumes that a hello names, in order, each once.
func hostVolumes(h *proto.Hello) ([]records.HostVolume, error) {
	if n := len(h.GetVolumesJson()); n > maxHoldings {
		return nil, status.Errorf(codes.ResourceExhausted, "hello of node %s is refused: it names %d volumes, of at most %d", h.GetNode(), n, maxHoldings)
	}
	all, err := wire.ToDocuments[records.HostVolume](h.GetVolumesJson())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "hello of node %s: decode volumes: %v", h.GetNode(), err)
	}
	all = slices.DeleteFunc(all, func(h records.HostVolume) bool {
		return !wellFormed(records.VolumeReport{ID: h.ID, Claim: h.Claim, Volume: h.Volume}) || max(len(h.Class), len(h.SealedFor)) > wordBytes
	})
	slices.SortFunc(all, func(a, b records.HostVolume) int { return a.Compare(&b) })
	return slices.CompactFunc(all, func(a, b records.HostVolume) bool { return a.Compare(&b) == 0 }), nil
}

// onlyUnknown are those of a node's volumes that the store does not know (SAFETY S11): no record names them, nor a move, and they are
// not to be given up there.
func onlyUnknown(v cache.View, node spec.NodeName, said []records.HostVolume) (out []records.HostVolume) {
	for _, h := range said {
		record, r, move := v.Volume(h.ID, h.Claim), v.VolumeReport(h.ID, h.Claim, h.Volume), cache.MoveOf(v, h.ID)
		switch {
		case record != nil && record.UID == h.Volume:
		case r != nil && r.Node == node && r.State != records.VolumeTrashed: // said to be in the trash it was before, and is in its place
		case move != nil && slices.ContainsFunc(move.Claims, func(c moves.MoveClaim) bool { return c.Old == string(h.Volume) || c.New == string(h.Volume) }):
		default:
			out = append(out, h)
		}
	}
	return out
}

// absentOf are the volumes whose records place them on a node, and which it has not in their place, or sealed.
func absentOf(v cache.View, node spec.NodeName, said []records.HostVolume) (absent []records.VolumeID) {
	has := map[records.VolumeID]bool{}
	for _, h := range said {
		has[h.Volume] = h.Unseen || h.SealedFor == ""
	}
	for _, vol := range cache.PlacedOn(v, node) {
		if !vol.Shared && !has[vol.UID] {
			absent = append(absent, vol.UID)
		}
	}
	slices.Sort(absent)
	return absent
}

// nextUnknownVolumes are those that the store still does not know, of those that the node named when it said hello. It makes no other
// meanwhile but by order.
func (se *session) nextUnknownVolumes() (now []records.HostVolume, changed bool) {
	if len(se.facts.UnknownVolumes) == 0 {
		return nil, false
	}
	se.server.cfg.Cache.Look(func(v cache.View) { now = onlyUnknown(v, se.node, se.facts.UnknownVolumes) })
	return now, len(now) != len(se.facts.UnknownVolumes)
}

// tooManyUnknown says why a node with so many volumes that the store does not know is refused; "": it is not.
func tooManyUnknown(n int) string {
	if n <= maxUnknownVolumes {
		return ""
	}
	return fmt.Sprintf("it has %d volumes that the store does not know, of at most %d", n, maxUnknownVolumes)
}
