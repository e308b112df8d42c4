package sim

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// putBack moves aside what stands in the place of a volume that the store knows, and has
// that one stand there: from the trash, or after a restore from where the operator saved it.
func (n *node) putBack() {
	if n.w.ownerOf(n.name) != n.uid {
		return // it was removed, and another has its name
	}
	for _, ref := range n.w.refs {
		for vol, s := range volumesOf(n.w.view().World(ref)) {
			if vol.Node == n.name && n.puts(s, vol) {
				n.endSession("the operator moved a volume")
			}
		}
	}
}

// puts does it for one volume; false: there was nothing to do.
func (n *node) puts(s *plan.Slot, vol *records.Volume) bool {
	disk, key := n.classes[vol.Class].disk, volumeKey{s.ID, vol.Claim}
	if disk == nil || n.classes[vol.Class].away() {
		return false
	}
	have, there := disk.dirs[key]
	used := s.Identity != nil && s.Identity.VolumeReady[vol.Claim] >= vol.Number
	binned := n.w.trashes(disk, vol.UID)
	gone := vol.Fate == records.FateReclaiming && (binned || s.Said[vol.Claim] != nil && s.Said[vol.Claim].State.Released()) ||
		vol.Fate == records.FateRestoring && n.erased[vol.UID] // the server may have heard so, and not stored it yet
	switch {
	case there && have.id != vol.UID:
		n.w.note("the operator moves volume %s of %s on %s away", have.id, s.ID.MemberName(), n.name)
		delete(disk.dirs, key)
		return true
	case there && binned:
		n.w.note("the operator throws the copy of volume %s in the trash of %s away", vol.UID, n.name)
	case !there && (used && n.w.restores > 0 && !n.w.judge.volume(vol.UID).destroyed || binned) && !gone:
		n.w.note("the operator puts volume %s of %s on %s back", vol.UID, s.ID.MemberName(), n.name)
		disk.dirs[key] = dir{vol.UID, vol.Number, vol.Class}
	default:
		return false
	}
	for _, x := range n.w.nodes { // whoever gave up a shared one
		delete(x.bins(disk), vol.UID)
	}
	return true
}

// resolve is the operator's part after a restore: a life that the store does not
// know is ended by hand, and volumes are put where the store has them.
func (n *node) resolve(known func(spec.Identity, spec.Token) bool) {
	if n.w.restores > 0 || len(n.lies) > 0 {
		n.putBack()
	}
	for _, id := range slices.Clone(n.agent.ids) {
		if token, ok := n.agent.workers[id].Pending(); ok && !known(id, token) {
			n.w.note("the operator ends %s %s on %s", id.MemberName(), token, n.name)
			n.agent.workers[id].over(token)
		}
	}
	for _, e := range n.agent.led.Entries() {
		if !e.Open.IsZero() && !known(e.ID, e.Open) {
			n.w.note("the operator ends %s %s on %s", e.ID.MemberName(), e.Open, n.name)
			n.w.judge.life(e.ID, e.Open).resolved = true
			n.worker(e.ID).over(e.Open)
		}
	}
}
