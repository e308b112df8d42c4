package engine

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/world"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// volume writes a volume's record, which must stand.
func (u *unit) volume(v world.View, volume spec.Volume) {
	key := store.VolumeKey(volume.ID, volume.Claim)
	u.seen(key, v.VolumeRev(volume.ID, volume.Claim))
	u.put(key, volume)
}

// setVolumes guards that no life begins meanwhile: a volume that is reclaimed has no
// user, and none whom the node knows and we do not.
func (u *unit) setVolumes(v world.View, a plan.SetVolumes) error {
	guarded := map[string]bool{}
	once := func(key string, rev store.Rev) {
		if !guarded[key] {
			guarded[key] = true
			u.seen(key, rev)
		}
	}
	for _, volume := range a.Volumes {
		now := v.Volume(volume.ID, volume.Claim)
		if now == nil || now.UID != volume.UID {
			return fmt.Errorf("set volume %s of %s: it has no record", volume.UID, volume.ID)
		}
		m, member := v.Member(volume.ID)
		once(store.MemberKey(volume.ID), member)
		if volume.Fate == spec.FateReclaiming {
			if m != nil {
				return fmt.Errorf("reclaim volume %s of %s: token %s may use it", volume.UID, volume.ID, m.Token)
			}
			_, facts, _ := v.NodeRevs(volume.Node)
			once(store.FactsKey(volume.Node), facts)
			u.unsay(v, volume)
			if _, asked := v.VolumeRequest(volume.ID, volume.Claim); asked != 0 {
				u.replace(store.VolumeRequestKey(volume.ID, volume.Claim), asked)
			}
		}
		u.volume(v, volume)
	}
	return nil
}

// unsay forgets what was said of a volume before it was given up: it may have been put
// back into its place since, by hand or with an older store.
func (u *unit) unsay(v world.View, volume spec.Volume) {
	if rev := v.VolumeReportRev(volume.ID, volume.Claim, volume.UID); rev != 0 {
		u.replace(store.VolumeReportKey(volume.ID, volume.Claim, volume.UID), rev)
	}
}

// voidRequest removes a request as it was seen: one that was made since stands.
func (u *unit) voidRequest(v world.View, a plan.VoidRequest) {
	_, rev := v.VolumeRequest(a.ID, a.Claim)
	u.replace(store.VolumeRequestKey(a.ID, a.Claim), rev)
}

// dropVolume removes a record. The proof is read once more: the node's word, about
// this very volume.
func (u *unit) dropVolume(v world.View, a plan.DropVolume, now time.Time) error {
	w := v.World(a.ID.Ref())
	volume, said := v.Volume(a.ID, a.Claim), w.Said(a.ID, a.Claim)
	if volume == nil || said == nil || volume.UID != a.Volume || said.Volume != a.Volume ||
		volume.Fate != spec.FateReclaiming || !said.State.Released() {
		return fmt.Errorf("drop volume %s of %s: nothing proves it gone", a.Volume, a.ID)
	}
	_, member := v.Member(a.ID)
	id, identity := v.Identity(a.ID)
	u.seen(store.MemberKey(a.ID), member)
	u.seen(store.IdentityKey(a.ID), identity)
	u.seen(store.VolumeReportKey(a.ID, a.Claim, a.Volume), v.VolumeReportRev(a.ID, a.Claim, a.Volume))
	u.replace(store.VolumeKey(a.ID, a.Claim), v.VolumeRev(a.ID, a.Claim))
	if a.FreeAddress && id != nil && id.Address.IsValid() && !u.free(v, id, now) {
		return nil // the identity keeps what it has
	}
	if a.Identity != nil {
		u.put(store.IdentityKey(a.ID), *a.Identity)
	}
	return nil
}
