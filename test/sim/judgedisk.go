package sim

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// makes judges that a volume is made once, and on the disk of its class (SAFETY S11).
func (j *judge) makes(n *node, id spec.Identity, v records.MemberVolume) {
	if j.volume(v.ID).handed {
		j.w.fail("made once", "%s makes volume %s of %s a second time", n.name, v.ID, id)
	}
	if n.classes[v.Class].away() {
		j.w.fail("volumes", "%s makes volume %s of %s where the disk of class %s would be, which is away", n.name, v.ID, id, v.Class)
	}
}

// forgets judges that nothing lies in the trash of a disk that is away when its node says
// that it is erased.
func (j *judge) forgets(n *node, class string, id records.VolumeID) {
	if n.classes[class].away() && n.hasTrashed(id) {
		j.w.fail("volumes", "%s says that volume %s is erased, and it lies in the trash of a disk that is away", n.name, id)
	}
}

// forgot: by order a node has forgotten that it made a volume, which was given up. An older store, for which no life was ever ready
// on it, may have it made once more.
func (j *judge) forgot(id records.VolumeID) {
	j.volume(id).handed = false
	j.lineages[id] = &lineage{anew: true}
}

// excused: a volume is not where its node should have it, or not what that said of it: its
// disk died, or the node lied about it.
func (j *judge) excused(n *node, id records.VolumeID) bool {
	return j.volume(id).destroyed || n != nil && n.lies[id]
}

// numberKey is a claim of an identity, for as long as its set stands.
type numberKey struct {
	set spec.UID
	volumeKey
}

// numbered judges that a new volume has a number above all that its claim had under the
// set: the member tells by it that its data are lost (SAFETY S11, S19).
func (j *judge) numbered(v cache.View, now *records.Volume) {
	key := numberKey{volumeKey: volumeKey{now.ID, now.Claim}}
	switch set := v.Set(now.ID.Ref()); {
	case isOfClaim(now.ID): // for ever
	case set == nil:
		return
	default:
		key.set = set.UID
	}
	if now.Number <= j.numbers[key] {
		j.w.fail("volumes", "the new volume %s of %s has the number %d after %d", now.UID, now.ID, now.Number, j.numbers[key])
	}
	if j.numbers[key] > 0 {
		j.w.count("volume replaced by the next")
	}
	j.numbers[key] = now.Number
}

// telling is what may be told of a life's volume that is new.
type telling struct {
	life
	claim spec.ClaimName
}

// notes keeps for each volume of a life that begins what its member may be told: not that one
// is new on which a life was ready, nor that it is the first of its set when it is not
// (SAFETY S19). A store that was restored may not know what a later one has marked.
func (j *judge) notes(v cache.View, m *records.Member) {
	for _, mount := range m.Volumes {
		at := telling{life{m.ID, m.Token}, mount.Claim}
		switch {
		case mount.Object && j.volume(mount.ID).used == "":
			j.may[at] = "unused"
		case j.volume(mount.ID).used != "":
			j.may[at] = ""
		case mount.Number > 1 || v.Bootstrapped(m.SetUID) || j.dataOf(v, m.ID.Ref()):
			j.may[at] = records.VolumeReplaced
		default:
			j.may[at] = records.VolumeFirst
		}
	}
}

// dataOf: a volume of the set is kept on which a life was ready.
func (j *judge) dataOf(v cache.View, ref spec.SetRef) bool {
	return slices.ContainsFunc(v.Volumes(ref), func(vol *records.Volume) bool {
		return vol.Fate != records.FateReclaiming && j.volume(vol.UID).used != ""
	})
}

// given: volumes changed, and with the last of a set that held data its members are the
// first again.
func (j *judge) given(v cache.View, b store.Batch) {
	for _, e := range b.Events {
		if kind, _ := store.Kind(e.Key); kind != store.KindVolume {
			continue
		}
		ref, _ := store.RefOfKey(e.Key)
		for _, s := range v.World(ref).Slots {
			if m := s.Member; m != nil && !v.Bootstrapped(m.SetUID) && !j.dataOf(v, ref) {
				for _, mount := range m.Volumes {
					if at := (telling{life{m.ID, m.Token}, mount.Claim}); !mount.Object && mount.Number <= 1 && j.may[at] == records.VolumeReplaced {
						j.may[at] = records.VolumeFirst
					}
				}
			}
		}
	}
}

// told judges what a node is told of a life.
func (j *judge) told(l *records.Life) {
	m := &l.Member
	truth := j.life(m.ID, m.Token)
	if before := truth.service; before != nil && *before != l.Service {
		j.w.fail("names", "%s %s is told the service %q after %q", m.ID, m.Token, l.Service, *before)
	}
	truth.service = &l.Service
	if j.w.restores > 0 {
		return
	}
	for _, claim := range l.UnusedClaims {
		if j.may[telling{life{m.ID, m.Token}, claim}] == "" {
			j.w.fail("data", "%s %s is told that the volume of the claim %s is unused, and a life was ready on it", m.ID, m.Token, claim)
		}
	}
	for claim, says := range l.FreshVolumes {
		if may := j.may[telling{life{m.ID, m.Token}, claim}]; may == "" || may == records.VolumeReplaced && says == records.VolumeFirst {
			j.w.fail("data", "%s %s is told that its volume of %s is new (%s); it is %q", m.ID, m.Token, claim, says, may)
		}
		j.w.count("volume told as " + says)
	}
}

// lost judges that a volume is looked for once more because a person said that this very
// one is lost, knowing all lives that it had, and that nobody can use it.
func (j *judge) lost(v cache.View, b store.Batch, old *records.Volume, m *records.Member) string {
	if m != nil && j.proven(v, m) {
		m = nil
	}
	if !asked(v, b, old, records.VerbLost) {
		return "nobody says that it is lost"
	}
	return j.user(old.ID, m)
}

// left: the host of a volume that is lost is off, as a person said; nobody looks for it.
func left(v cache.View, old *records.Volume) bool {
	return old.Fate == records.FateLost && !old.Shared && v.ModRev(store.SessionKey(old.Node)) == 0 && v.ModRev(store.FenceKey(old.Node)) != 0
}

// marked notes volumes on which a life was ready, and under which set first.
func (j *judge) marked(v cache.View, b store.Batch, e store.Event) {
	rec, _ := decoded[records.IdentityRecord](j, e)
	j.owesNoMore(v, b, &rec)
	for claim, number := range rec.VolumeReady {
		if vol := v.Volume(rec.ID, claim); vol != nil && vol.Number == number && j.volume(vol.UID).used == "" {
			j.volume(vol.UID).used = rec.ReadyOnce
			if isOfClaim(rec.ID) {
				j.volume(vol.UID).used = "of a claim"
			}
		}
	}
}

// firstStart judges that no life begins in a set that takes the start for its first while
// a volume is kept that an earlier set of the name used (SAFETY S19). A store that was
// restored may not know what a later one has marked.
func (j *judge) firstStart(v cache.View, m *records.Member) {
	if j.w.restores > 0 {
		return
	}
	for _, vol := range v.Volumes(m.ID.Ref()) {
		by := j.volume(vol.UID).used
		switch {
		case by == "" || by == m.SetUID || vol.Fate == records.FateReclaiming:
		case !v.Bootstrapped(m.SetUID):
			j.w.fail("data", "%s %s begins in a set that is not bootstrapped, and volume %s of %s holds data of the set before",
				m.ID, m.Token, vol.UID, vol.ID)
		default:
			j.w.count("life begun beside data of an earlier set")
		}
	}
}
