package proof

import "github.com/stead-project/stead/records"

// VolumeGone reports whether what a volume's node said proves that the volume is in its
// place no more, and will not be by an order that the node has.
func VolumeGone(v *records.Volume, said *records.VolumeReport) bool {
	if v == nil || said == nil || said.Volume != v.UID || said.Turn != v.Turn {
		return false
	}
	switch v.Fate {
	case records.FateReclaiming, records.FateLost:
		return said.State.Released()
	case records.FateRestoring:
		return said.State == records.VolumeAbsent
	}
	return false
}

// VolumeFound reports whether a volume's node said that it is in its place, which was said
// to be lost, or was in the trash.
func VolumeFound(v *records.Volume, said *records.VolumeReport) bool {
	return v != nil && said != nil && said.Volume == v.UID && said.Turn == v.Turn && said.State == records.VolumeFound &&
		(v.Fate == records.FateLost || v.Fate == records.FateRestoring)
}

// LostWithHost reports whether a volume is lost with its host: a person says both, that the
// host is off and that the volume is lost. Nobody can look for it once more; for a shared
// one somebody can.
func LostWithHost(v *records.Volume, n *Node) bool {
	return v != nil && !v.Shared && v.Fate == records.FateLost && n != nil && n.Fenced && n.Session == nil
}
