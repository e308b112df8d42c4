package sim

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/sim/rules"
)

// written judges what is written of a volume: it is made once, with a life; it stays what and
// where it is; its fate goes the way of SAFETY S11; and its record goes last.
func (j *judge) written(v cache.View, b store.Batch, e store.Event) {
	old := volumeOf(v, e.Key)
	if e.Delete {
		j.dropped(v, old, e.Key)
		return
	}
	now, ok := decoded[records.Volume](j, e)
	if !ok {
		return
	}
	truth := j.volume(now.UID)
	truth.going, truth.toGo = truth.going || now.Fate == records.FateReclaiming, now.Fate.Going()
	used := truth.known
	truth.known = true
	switch {
	case j.w.restoring:
	case old == nil && used && now.Fate == records.FateRestoring:
		j.lineages[now.UID] = &lineage{anew: true} // a person wants it as it is
		j.w.count("volume is brought back")
		j.restores(v, b, &now)
	case old == nil && used:
		j.w.fail("volumes", "%s gets volume %s for %s, which there was before", now.ID, now.UID, now.Claim)
	case old == nil && (now.Fate != records.FateKeep || !mounts(b, &now)):
		j.w.fail("volumes", "volume %s of %s is made with the fate %s, or for no life", now.UID, now.ID, now.Fate)
	case old == nil:
		j.numbered(v, &now)
	case old.UID != now.UID && (j.flipped(v, b, old, &now) || j.wentBack(v, b, old, &now) || j.forwarded(v, old, &now)):
	case old.UID != now.UID || old.Node != now.Node && !(old.Shared && mounts(b, &now)) || old.Class != now.Class || old.Number != now.Number || old.SizeBytes > now.SizeBytes:
		j.w.fail("volumes", "volume %s (%d bytes) of %s on %s becomes %s (%d bytes) on %s", old.UID, old.SizeBytes, old.ID, old.Node, now.UID, now.SizeBytes, now.Node)
	case old.Fate != now.Fate:
		j.w.count("volume " + string(old.Fate) + " to " + string(now.Fate))
		j.fate(v, b, old, &now)
	}
}

// volumeOf is the record of a key; nil: there is none.
func volumeOf(v cache.View, key string) *records.Volume {
	ref, _ := store.RefOfKey(key)
	for _, s := range v.World(ref).Slots {
		for claim, r := range s.Volumes {
			if store.VolumeKey(s.ID, claim) == key {
				return r
			}
		}
	}
	return nil
}

// mounts: the batch begins a life with the volume.
func mounts(b store.Batch, v *records.Volume) bool {
	return slices.ContainsFunc(b.Events, func(e store.Event) bool {
		if kind, _ := store.Kind(e.Key); kind != store.KindMember || e.Delete || !isOfClaim(v.ID) && e.Key != store.MemberKey(v.ID) {
			return false
		}
		m, err := store.Decode[records.Member](e.KV)
		return err == nil && slices.ContainsFunc(m.Volumes, func(x records.MemberVolume) bool { return x.ID == v.UID })
	})
}

// written is what the batch writes at a key; empty: nothing.
func written(b store.Batch, key string) store.KV {
	for _, e := range b.Events {
		if e.Key == key && !e.Delete {
			return e.KV
		}
	}
	return store.KV{}
}

// fate judges a new fate by the set as it is at this moment, and by who lives.
func (j *judge) fate(v cache.View, b store.Batch, old, now *records.Volume) {
	if isOfClaim(old.ID) {
		j.claimFate(v, b, old, now)
		return
	}
	set := v.Set(old.ID.Ref())
	m := v.Member(old.ID)
	wanted := set != nil && !set.Deleting && slices.Contains(rules.Ordinals(set), old.ID.Ordinal)
	policy := rules.Retention(set, old.Claim)
	wrong := ""
	switch {
	case now.Fate == records.FateLost && old.Fate != records.FateRestoring:
		wrong = j.lost(v, b, old, m)
	case old.Fate == records.FateRestoring && now.Fate == records.FateReclaiming && byHand(v, b, old): // called off
		wrong = j.user(old.ID, m)
	case old.Fate == records.FateRestoring || old.Fate == records.FateLost:
		x := v.World(old.ID.Ref())
		if said := x.Said(old.ID, old.Claim); now.Fate != records.FateKeep || now.Turn <= old.Turn || said == nil || said.Volume != old.UID || said.State != records.VolumeFound {
			wrong = "its node does not say that it is back"
		}
	case old.Fate == records.FateReclaiming:
		wrong = "it was given up"
	case wanted && now.Fate != records.FateKeep:
		wrong = "its member is wanted"
	case now.Fate == records.FateKeep && !wanted && (policy != spec.Retain || set.Deleting || m == nil):
		wrong = "no policy keeps it"
	case now.Fate == records.FateDelete && (policy != spec.Delete || !set.Deleting && m == nil):
		wrong = "no policy deletes it"
	case now.Fate == records.FateReclaiming && old.Fate != records.FateDelete && (policy != spec.Delete || !set.Deleting) && !byHand(v, b, old):
		wrong = "no policy deleted it"
	case now.Fate == records.FateReclaiming:
		wrong = j.user(old.ID, m)
	}
	if wrong != "" {
		j.w.fail("volumes", "the fate of volume %s of %s becomes %s after %s: %s", old.UID, old.ID, now.Fate, old.Fate, wrong)
	}
}

// byHand: a person asked to give up this very volume, knowing all lives it had; the
// request goes with it.
func byHand(v cache.View, b store.Batch, old *records.Volume) bool {
	return asked(v, b, old, records.VerbReclaim)
}

// asked: a person asked for this of the very volume.
func asked(v cache.View, b store.Batch, old *records.Volume, verb records.VolumeVerb) bool {
	q := v.VolumeRequest(old.ID, old.Claim)
	id := v.Identity(old.ID)
	return q != nil && q.Verb == verb && q.Volume == old.UID && (id == nil || q.Token == id.LastToken) &&
		slices.ContainsFunc(b.Events, func(e store.Event) bool { return e.Delete && e.Key == store.VolumeRequestKey(old.ID, old.Claim) })
}

// restores judges a volume that gets its record again: a person asked for it, it lies in
// the trash of its node, and nobody lives who could have another.
func (j *judge) restores(v cache.View, b store.Batch, now *records.Volume) {
	q := v.VolumeRequest(now.ID, now.Claim)
	wrong := j.user(now.ID, v.Member(now.ID))
	if isOfClaim(now.ID) {
		wrong = j.claimUser(v, now)
	}
	x := v.World(now.ID.Ref())
	switch said := x.Said(now.ID, now.Claim); {
	case q == nil || q.Verb != records.VerbRestore || q.Volume != now.UID:
		wrong = "nobody asked for it"
	case said == nil || said.Volume != now.UID || said.State != records.VolumeTrashed || said.Node != now.Node || said.Number != now.Number:
		wrong = "its node does not say that it lies in the trash"
	case !slices.ContainsFunc(b.Events, func(e store.Event) bool { return e.Delete && e.Key == store.VolumeRequestKey(now.ID, now.Claim) }):
		wrong = "the request stays"
	case j.w.restores == 0 && j.elsewhere(now):
		wrong = "it lies in the trash of another node"
	}
	if wrong != "" {
		j.w.fail("volumes", "volume %s of %s is brought back: %s", now.UID, now.ID, wrong)
	}
}

// elsewhere: a volume lies in the trash of a node, and not of the one on which it is
// (SAFETY S21).
func (j *judge) elsewhere(vol *records.Volume) (yes bool) {
	for _, n := range j.w.nodes {
		if n.hasTrashed(vol.UID) {
			if n.name == vol.Node {
				return false
			}
			yes = true
		}
	}
	return yes
}

// user is who may use the volumes of an identity; "": nobody, for ever.
func (j *judge) user(id spec.Identity, m *records.Member) string {
	if m != nil {
		return "it has the life " + m.Token.String()
	}
	if r, ok := j.alive[id]; ok && !j.nobodyKnows(r.uid) {
		return r.token.String() + " runs on " + string(r.node)
	}
	for _, n := range j.w.nodes {
		if n.agent == nil {
			continue
		}
		// One that is over by its deadline may be open until its agent looks.
		if open := n.agent.led.Look(id).Open; !open.IsZero() && !j.life(id, open).over && !j.nobodyKnows(n.uid) {
			return open.String() + " is open on " + string(n.name)
		}
	}
	return ""
}

// dropped judges that a record goes after its node said that nothing is in the volume's
// place, and nothing is.
func (j *judge) dropped(v cache.View, old *records.Volume, key string) {
	if old == nil || !old.Fate.Ordered() {
		j.w.fail("volumes", "the record %s is gone, and it was not given up", key)
		return
	}
	if left(v, old) {
		truth := j.volume(old.UID)
		truth.going, truth.behind = true, true
		j.w.count("volume left on a host that is off")
		return
	}
	x := v.World(old.ID.Ref())
	if said := x.Said(old.ID, old.Claim); said == nil || said.Volume != old.UID || !said.State.Released() {
		j.w.fail("volumes", "the record %s is gone, and its node did not say so", key)
	}
	n := j.w.machine(old.Node)
	if n != nil && n.there(old) && !j.excused(n, old.UID) {
		j.w.fail("volumes", "the record %s is gone, and the volume is there", key)
	}
	j.w.count("volume record gone")
}

// stops judges, when a life is told to end because the set does not want it any more,
// that by then it is recorded what becomes of its volumes; with OrderedReady, of those of
// all members that leave.
func (j *judge) stops(v cache.View, b store.Batch, m *records.Member) {
	if !m.StopReason.IsUnwanted() {
		return
	}
	x := v.World(m.ID.Ref())
	if x.Set == nil || j.w.restoring {
		return
	}
	r := rules.Read(x)
	j.takesLeave(v, b, m, r, x.Set)
	if r.IsWanted(m.ID.Ordinal) { // it has left, and keeps its volumes
		return
	}
	if p := x.Set.Spec.Retention; p != nil {
		j.w.count(string(m.StopReason) + " under " + string(p.WhenScaled) + "/" + string(p.WhenDeleted))
	}
	for o, s := range r.Slots {
		if o == m.ID.Ordinal || r.Ordered() && !r.Recreates() && s.Member != nil && !r.IsWanted(o) && !r.Vacant(o) {
			j.undecided(v, b, s)
		}
	}
}

// undecided judges that what becomes of the volumes of one that leaves is recorded, as
// the policy has it.
func (j *judge) undecided(v cache.View, b store.Batch, s *plan.Slot) {
	set := v.Set(s.ID.Ref())
	for claim, old := range s.Volumes {
		fate := old.Fate
		if now, err := store.Decode[records.Volume](written(b, store.VolumeKey(s.ID, claim))); err == nil {
			fate = now.Fate
		}
		policy := rules.Retention(set, claim)
		if policy == spec.Delete && fate == records.FateKeep || policy == spec.Retain && !set.Deleting && fate == records.FateDelete {
			j.w.fail("volumes", "%s leaves, its volumes are to be what %q says, and the fate of %s is %s", s.ID, policy, strings.TrimPrefix(string(old.UID), "0"), fate)
		}
	}
}
