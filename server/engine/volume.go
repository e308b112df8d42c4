package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// setVolumes compares that no life starts meanwhile: a volume that is reclaimed has no user, and
// none that the node knows and we do not.
func (d *decision) setVolumes(v cache.View, a plan.SetVolumes) error {
	w := v.World(a.Volumes[0].ID.Ref())
	guarded := map[string]bool{}
	once := func(key string) {
		if !guarded[key] {
			guarded[key] = true
			d.seen(v, key)
		}
	}
	for _, volume := range a.Volumes {
		now := v.Volume(volume.ID, volume.Claim)
		if now == nil || now.UID != volume.UID {
			return fmt.Errorf("set volume %s of %s: it has no record", volume.UID, volume.ID)
		}
		m := v.Member(volume.ID)
		once(store.MemberKey(volume.ID))
		switch {
		case volume.Fate == records.FateReclaiming || volume.Fate == records.FateLost:
			if m != nil {
				r := v.Report(volume.ID)
				if volume.Fate == records.FateReclaiming || !proof.Ended(m, r) {
					return fmt.Errorf("set volume %s of %s %s: token %s may use it", volume.UID, volume.ID, volume.Fate, m.Token)
				}
				once(store.ReportKey(volume.ID))
			}
			if err := d.claimUnused(v, &volume); err != nil {
				return err
			}
			once(store.FactsKey(volume.Node))
			once(store.HellosKey)
			// What was said of it before may not be true any more: it may have been put back into its
			// place since, by hand or with an older store.
			d.removeIfThere(v, store.VolumeReportKey(volume.ID, volume.Claim, volume.UID))
			d.removeIfThere(v, store.VolumeRequestKey(volume.ID, volume.Claim))
		case now.Fate == records.FateLost || now.Fate == records.FateRestoring:
			if !proof.VolumeFound(now, w.Said(volume.ID, volume.Claim)) {
				return fmt.Errorf("keep volume %s of %s: its node has not reported it", volume.UID, volume.ID)
			}
			d.seen(v, store.VolumeReportKey(volume.ID, volume.Claim, volume.UID))
		}
		d.putSeen(v, store.VolumeKey(volume.ID, volume.Claim), volume)
	}
	return nil
}

// claimUnused compares that the claim to which a volume belongs is as it is in v, where no life has the
// volume. Each start with it compares the claim, the volume and what is requested of it: after
// the claim was marked Deleting, or the request written, none can be added to those in v.
func (d *decision) claimUnused(v cache.View, volume *records.Volume) error {
	name, is := volume.ID.Ref().ClaimName()
	if !is {
		return nil
	}
	c := cache.ClaimOf(v, volume.ID.Namespace, name)
	for _, u := range c.Users {
		if !proof.Ended(u.Member, u.Report) {
			return fmt.Errorf("set volume %s of claim %s %s: token %s of %s may use it", volume.UID, name, volume.Fate, u.Member.Token, u.Member.ID)
		}
	}
	asked := v.ModRev(store.VolumeRequestKey(volume.ID, volume.Claim)) != 0
	if len(c.Strays) > 0 || c.Record != nil && !c.Record.Deleting && !asked {
		return fmt.Errorf("set volume %s of claim %s %s: a life may start with it, or an unknown one use it", volume.UID, name, volume.Fate)
	}
	d.seen(v, store.ClaimKey(volume.ID.Namespace, name))
	return nil
}

// removeClaim removes a claim of which nothing is left but a volume that is being given up.
func (d *decision) removeClaim(v cache.View, a plan.RemoveClaim) error {
	c := cache.ClaimOf(v, a.Namespace, a.Name)
	if c.Record == nil || !c.Record.Deleting {
		return fmt.Errorf("remove claim %s: it is not being deleted", a.Name)
	}
	id := c.Record.Identity()
	d.seen(v, store.VolumeKey(id, spec.ClaimName(a.Name)))
	d.removeSeen(v, store.ClaimKey(a.Namespace, a.Name))
	return nil
}

// restoreVolume makes the record of a volume in the trash, where its claim has none, and
// no life could get another meanwhile.
func (d *decision) restoreVolume(v cache.View, a plan.RestoreVolume) error {
	if a.Unknown {
		return d.knowVolume(v, a)
	}
	id, claim := a.Volume.ID, a.Volume.Claim
	w := v.World(id.Ref())
	said := w.Said(id, claim)
	m := v.Member(id)
	if m != nil || v.ModRev(store.VolumeKey(id, claim)) != 0 || said == nil || said.Volume != a.Volume.UID || said.State != records.VolumeTrashed {
		return fmt.Errorf("restore volume %s of %s: it is not in the trash, or its claim has another", a.Volume.UID, id)
	}
	d.seen(v, store.MemberKey(id), store.IdentityKey(id), store.FactsKey(a.Volume.Node))
	d.noUnknownLives(v)
	d.seen(v, store.VolumeReportKey(id, claim, a.Volume.UID))
	d.absent(store.VolumeKey(id, claim))
	d.put(store.VolumeKey(id, claim), a.Volume)
	d.put(store.IdentityKey(id), a.Identity)
	d.removeIfThere(v, store.VolumeRequestKey(id, claim))
	return nil
}

// knowVolume makes the record of a volume that a node has in its place and the store did not know, instead of that of which both nodes
// say that it is not there. It compares both nodes, and that no other one came with an unknown life or volume.
func (d *decision) knowVolume(v cache.View, a plan.RestoreVolume) error {
	id, claim := a.Volume.ID, a.Volume.Claim
	if err := isUnknown(v, id, a.Volume.Node, a.Volume.UID); err != nil {
		return err
	}
	if m := v.Member(id); m != nil && !proof.Ended(m, v.Report(id)) {
		return fmt.Errorf("restore volume %s of %s: token %s may be running", a.Volume.UID, id, m.Token)
	}
	old := v.Volume(id, claim)
	if (old == nil) != (v.ModRev(store.VolumeKey(id, claim)) == 0) {
		return fmt.Errorf("restore volume %s of %s: the record of the one that it has cannot be read", a.Volume.UID, id)
	}
	c := d.comparing(v)
	c.life(id)
	c.machine(a.Volume.Node)
	c.once(store.MoveKey(id))
	if old != nil {
		n := proof.FindNode(v.Nodes(), old.Node)
		if n == nil || n.Facts == nil || n.Facts.Epoch != v.Epoch() || !slices.Contains(n.Facts.AbsentVolumes, old.UID) {
			return fmt.Errorf("restore volume %s of %s: node %s does not say that it has not %s", a.Volume.UID, id, old.Node, old.UID)
		}
		c.machine(old.Node)
	}
	d.noUnknownLives(v)
	d.leave(v, a.Left)
	d.removeIfThere(v, store.VolumeReportKey(id, claim, a.Volume.UID)) // of when it was in a trash
	d.putSeen(v, store.VolumeKey(id, claim), a.Volume)
	d.put(store.IdentityKey(id), a.Identity)
	d.removeSeen(v, store.VolumeRequestKey(id, claim))
	return nil
}

// leaveVolume gives up a volume that a node has in its place and the store does not know, where it is.
func leaveVolume(d *decision, v cache.View, a plan.LeaveVolume) error {
	r := a.Left
	if err := isUnknown(v, r.ID, r.Node, r.Volume); err != nil {
		return err
	}
	d.seen(v, store.FactsKey(r.Node), store.VolumeKey(r.ID, r.Claim))
	d.leave(v, []records.VolumeReport{r})
	d.removeSeen(v, store.VolumeRequestKey(r.ID, r.Claim))
	return nil
}

// isUnknown fails unless a node says that it has this volume, which the store does not know.
func isUnknown(v cache.View, id spec.Identity, node spec.NodeName, volume records.VolumeID) error {
	if !slices.ContainsFunc(cache.UnknownVolumes(v, id), func(u plan.UnknownVolume) bool { return u.Node == node && u.Volume == volume }) {
		return fmt.Errorf("volume %s of %s: node %s does not say that it has it", volume, id, node)
	}
	return nil
}

// putLeft records that a volume was left on a host that is off, as long as its fence is there and it has
// no session.
func (d *decision) putLeft(v cache.View, volume *records.Volume) {
	d.seen(v, store.FenceKey(volume.Node))
	d.absent(store.SessionKey(volume.Node))
	d.putSeen(v, store.VolumeReportKey(volume.ID, volume.Claim, volume.UID), records.VolumeReport{
		ID: volume.ID, Claim: volume.Claim, Volume: volume.UID, Number: volume.Number, Class: volume.Class, Node: volume.Node,
		State: records.VolumeLeft, Turn: volume.Turn, SizeBytes: volume.SizeBytes, Left: scalar.Duration{Duration: volume.Trash()},
	})
}

// dropVolume removes a record. The proof is read once more: the node's word, or that
// of a person about the node, about this very volume.
func (d *decision) dropVolume(v cache.View, a plan.DropVolume, now time.Time) error {
	w := v.World(a.ID.Ref())
	volume, said := v.Volume(a.ID, a.Claim), w.Said(a.ID, a.Claim)
	switch {
	case volume == nil || volume.UID != a.Volume:
		return fmt.Errorf("drop volume %s of %s: it has no record", a.Volume, a.ID)
	case a.Left && proof.LostWithHost(volume, proof.FindNode(w.Nodes, volume.Node)):
		d.putLeft(v, volume)
	case a.Left || !proof.VolumeGone(volume, said):
		return fmt.Errorf("drop volume %s of %s: nothing proves it gone", a.Volume, a.ID)
	default:
		d.seen(v, store.VolumeReportKey(a.ID, a.Claim, a.Volume))
	}
	id := v.Identity(a.ID)
	d.seen(v, store.MemberKey(a.ID), store.IdentityKey(a.ID))
	d.removeSeen(v, store.VolumeKey(a.ID, a.Claim))
	if a.FreeAddress && id != nil && id.Address.IsValid() && !d.freeAddress(v, id, now) {
		return nil // the identity keeps what it has
	}
	if a.Identity != nil {
		d.put(store.IdentityKey(a.ID), *a.Identity)
	}
	return nil
}
