package engine

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// volume writes a volume's record, which must stand.
func (u *unit) volume(v cache.View, volume records.Volume) {
	key := store.VolumeKey(volume.ID, volume.Claim)
	u.seen(v, key)
	u.put(key, volume)
}

// setVolumes guards that no life begins meanwhile: a volume that is reclaimed has no
// user, and none whom the node knows and we do not.
func (u *unit) setVolumes(v cache.View, a plan.SetVolumes) error {
	w := v.World(a.Volumes[0].ID.Ref())
	guarded := map[string]bool{}
	once := func(key string) {
		if !guarded[key] {
			guarded[key] = true
			u.seen(v, key)
		}
	}
	for _, volume := range a.Volumes {
		now := v.Volume(volume.ID, volume.Claim)
		if now == nil || now.UID != volume.UID {
			return fmt.Errorf("set volume %s of %s: it has no record", volume.UID, volume.ID)
		}
		m, _ := v.Member(volume.ID)
		once(store.MemberKey(volume.ID))
		switch {
		case volume.Fate == records.FateReclaiming || volume.Fate == records.FateLost:
			if m != nil {
				r, _ := v.Report(volume.ID)
				if volume.Fate == records.FateReclaiming || r == nil || r.Token != m.Token || !r.Phase.Over() {
					return fmt.Errorf("set volume %s of %s %s: token %s may use it", volume.UID, volume.ID, volume.Fate, m.Token)
				}
				once(store.ReportKey(volume.ID))
			}
			once(store.FactsKey(volume.Node))
			once(store.HellosKey)
			// What was said of it before may not be true any more: it may have been put back into its
			// place since, by hand or with an older store.
			u.removeIfThere(v, store.VolumeReportKey(volume.ID, volume.Claim, volume.UID))
			u.removeIfThere(v, store.VolumeRequestKey(volume.ID, volume.Claim))
		case now.Fate == records.FateLost || now.Fate == records.FateRestoring:
			if !plan.Back(now, w.Said(volume.ID, volume.Claim)) {
				return fmt.Errorf("keep volume %s of %s: its node does not say that it is there", volume.UID, volume.ID)
			}
			u.seen(v, store.VolumeReportKey(volume.ID, volume.Claim, volume.UID))
		}
		u.volume(v, volume)
	}
	return nil
}

// restoreVolume makes the record of a volume in the trash, where its claim has none, and
// nobody lives who could get another meanwhile.
func (u *unit) restoreVolume(v cache.View, a plan.RestoreVolume) error {
	id, claim := a.Volume.ID, a.Volume.Claim
	w := v.World(id.Ref())
	said := w.Said(id, claim)
	m, _ := v.Member(id)
	if m != nil || v.ModRev(store.VolumeKey(id, claim)) != 0 || said == nil || said.Volume != a.Volume.UID || said.State != records.VolumeTrashed {
		return fmt.Errorf("restore volume %s of %s: it does not lie in the trash alone", a.Volume.UID, id)
	}
	u.seen(v, store.MemberKey(id), store.IdentityKey(id), store.FactsKey(a.Volume.Node))
	u.strays(v)
	u.seen(v, store.VolumeReportKey(id, claim, a.Volume.UID))
	u.absent(store.VolumeKey(id, claim))
	u.put(store.VolumeKey(id, claim), a.Volume)
	u.put(store.IdentityKey(id), a.Identity)
	u.removeIfThere(v, store.VolumeRequestKey(id, claim))
	return nil
}

// leave notes that a volume was left on a host that is off, guarded by the word that it is
// and by its silence.
func (u *unit) leave(v cache.View, volume *records.Volume) {
	u.seen(v, store.FenceKey(volume.Node))
	u.absent(store.SessionKey(volume.Node))
	key := store.VolumeReportKey(volume.ID, volume.Claim, volume.UID)
	u.seen(v, key)
	u.put(key, records.VolumeReport{
		ID: volume.ID, Claim: volume.Claim, Volume: volume.UID, Number: volume.Number, Class: volume.Class, Node: volume.Node,
		State: records.VolumeLeft, Turn: volume.Turn, SizeBytes: volume.SizeBytes, Left: spec.Duration{Duration: volume.Trash()},
	})
}

// dropVolume removes a record. The proof is read once more: the node's word, or that
// of a person about the node, about this very volume.
func (u *unit) dropVolume(v cache.View, a plan.DropVolume, now time.Time) error {
	w := v.World(a.ID.Ref())
	volume, said := v.Volume(a.ID, a.Claim), w.Said(a.ID, a.Claim)
	switch {
	case volume == nil || volume.UID != a.Volume:
		return fmt.Errorf("drop volume %s of %s: it has no record", a.Volume, a.ID)
	case a.Left && plan.Left(volume, plan.NodeOf(w.Nodes, volume.Node)):
		u.leave(v, volume)
	case a.Left || !plan.Gone(volume, said):
		return fmt.Errorf("drop volume %s of %s: nothing proves it gone", a.Volume, a.ID)
	default:
		u.seen(v, store.VolumeReportKey(a.ID, a.Claim, a.Volume))
	}
	id, _ := v.Identity(a.ID)
	u.seen(v, store.MemberKey(a.ID), store.IdentityKey(a.ID))
	u.removeSeen(v, store.VolumeKey(a.ID, a.Claim))
	if a.FreeAddress && id != nil && id.Address.IsValid() && !u.free(v, id, now) {
		return nil // the identity keeps what it has
	}
	if a.Identity != nil {
		u.put(store.IdentityKey(a.ID), *a.Identity)
	}
	return nil
}
