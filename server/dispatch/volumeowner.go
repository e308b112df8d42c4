package dispatch

import (
	"fmt"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

const (
	// maxUnproven bounds the volumes that one node may have in its trash by its word alone.
	maxUnproven = 1000
	// causeBytes and volumeTextBytes bound what is said of a volume in words.
	causeBytes      = 64
	volumeTextBytes = 1024
	// documentBytes bounds one report as it is stored.
	documentBytes = 4096
)

// volumeOwner decides which reports about volumes are a node's to make (SAFETY S21): those of
// volumes that their records place on it, and of what is in its trash and in no other.
type volumeOwner struct {
	v        cache.View
	node     spec.NodeName
	unproven int // stored ones of this node
}

func newVolumeOwner(v cache.View, node spec.NodeName) *volumeOwner {
	o := &volumeOwner{v: v, node: node}
	for _, r := range v.VolumeReportsOn(node) {
		if r.Unproven {
			o.unproven++
		}
	}
	return o
}

// judge returns the report as it is to be stored. stale: it is not the node's to make, for
// the reason why; known: there is nothing to store.
func (o *volumeOwner) judge(r records.VolumeReport) (out records.VolumeReport, v verdict, why string) {
	r.Node, r.Unproven = o.node, false
	r.Cause, r.Message = truncate(r.Cause, causeBytes), truncate(r.Message, volumeTextBytes)
	record, old := o.v.Volume(r.ID, r.Claim), o.v.VolumeReport(r.ID, r.Claim, r.Volume)
	switch {
	case r.State == records.VolumeLeft:
		return r, stale, fmt.Sprintf("volume %s of %s: a node cannot report that it was left on a host that is off", r.Volume, r.ID)
	case record == nil && o.v.ModRev(store.VolumeKey(r.ID, r.Claim)) != 0,
		old == nil && o.v.ModRev(store.VolumeReportKey(r.ID, r.Claim, r.Volume)) != 0:
		return r, stale, fmt.Sprintf("what is stored of volume %s of %s cannot be read", r.Volume, r.ID)
	case record != nil && record.UID == r.Volume:
		if record.Node != o.node {
			return r, stale, fmt.Sprintf("volume %s of %s is on node %s", r.Volume, r.ID, record.Node)
		}
		r.Number, r.Class, r.SizeBytes = record.Number, record.Class, record.SizeBytes
	case old != nil:
		if old.Node != o.node {
			return r, stale, fmt.Sprintf("volume %s of %s is on node %s", r.Volume, r.ID, old.Node)
		}
		r.Number, r.Class, r.SizeBytes, r.Unproven = old.Number, old.Class, old.SizeBytes, old.Unproven
	case r.State != records.VolumeTrashed:
		return r, known, "" // of nothing that is stored, and nothing that could come back
	default:
		if why := o.refuse(r); why != "" {
			return r, stale, why
		}
		r.Unproven = true
		o.unproven++
	}
	if old != nil && old.State == records.VolumeLeft && r.State == records.VolumeRefused {
		return r, known, "" // it tries again
	}
	return r, keep, ""
}

// refuse says why a volume of which the store knows nothing is not noted; "": it is.
func (o *volumeOwner) refuse(r records.VolumeReport) string {
	switch {
	case o.v.ModRev(store.IdentityKey(r.ID)) == 0 && o.v.ModRev(store.MemberKey(r.ID)) == 0:
		return fmt.Sprintf("volume %s belongs to %s, which the store does not know", r.Volume, r.ID)
	case o.unproven >= maxUnproven:
		return fmt.Sprintf("volume %s: the trash of node %s has %d volumes already that no record names", r.Volume, o.node, maxUnproven)
	case len(store.Encode(r)) > documentBytes:
		return fmt.Sprintf("the report of volume %s has more than %d bytes", r.Volume, documentBytes)
	}
	return ""
}

// truncate is text of at most n bytes, whole characters only.
func truncate[T ~string](text T, n int) T {
	return T(strings.ToValidUTF8(string(text[:min(len(text), n)]), ""))
}
