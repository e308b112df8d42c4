package sim

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// isOfClaim: the identity is that of a PersistentVolumeClaim, not of a member.
func isOfClaim(id spec.Identity) bool {
	_, is := id.Ref().ClaimName()
	return is
}

// takes judges that a life gets the volume of a claim on the one node on which that is, and that
// the store has the volume and does not give it up (SAFETY S22).
func (j *judge) takes(n *node, user spec.LifeID, v records.MemberVolume) {
	owner := v.Owner(user.ID)
	j.mountedBy(n, owner, user, v)
	truth := j.life(user.ID, user.Token)
	if !slices.Contains(truth.claims, v.ID) {
		truth.claims = append(truth.claims, v.ID)
	}
	j.w.count("volume of a claim mounted")
}

// shared judges, as a process begins, that all lives that have a volume of its claims run on the
// same node, and that no other has one that a single life may have.
func (j *judge) shared(l life, now run) {
	for _, id := range j.life(l.id, l.token).claims {
		for _, other := range j.usersOf(id) {
			r := j.alive[other.id]
			if other.id == l.id || j.beside(l, other, r.uid) || j.beside(other, l, now.uid) {
				continue
			}
			j.w.count("volume of a claim shared")
			if one := j.volume(id).owner == spec.ClaimIdentity(claimNamespace, oneClaim); one || r.node != now.node {
				j.w.fail("shares", "%s %s begins on %s with volume %s, which %s %s has on %s", l.id, l.token, now.node, id, other.id, other.token, r.node)
			}
		}
	}
}

// usersOf are the lives that have processes and the volume of a claim, in order.
func (j *judge) usersOf(volume records.VolumeID) (list []life) {
	for _, id := range sortedKeys(j.alive) {
		l := life{id, j.alive[id].token}
		if slices.Contains(j.life(l.id, l.token).claims, volume) {
			list = append(list, l)
		}
	}
	return list
}

// claimUser is who may use the volume of a claim; "": nobody, for ever.
func (j *judge) claimUser(v cache.View, vol *records.Volume) string {
	for _, ref := range j.w.refs {
		for _, s := range v.World(ref).Slots {
			m := s.Member
			has := func(x records.MemberVolume) bool { return x.ID == vol.UID }
			if m == nil || !slices.ContainsFunc(m.Volumes, has) || s.Report != nil && s.Report.Token == m.Token && s.Report.Phase.Over() {
				continue
			}
			return "it has the life " + m.Token.String() + " of " + m.ID.MemberName()
		}
	}
	for _, l := range j.usersOf(vol.UID) {
		if r := j.alive[l.id]; !j.nobodyKnows(r.uid) {
			return r.token.String() + " of " + l.id.MemberName() + " runs on " + string(r.node)
		}
	}
	return ""
}

// claimFate judges a new fate of the volume of a claim by the claim as it is at this moment, and by
// who lives.
func (j *judge) claimFate(v cache.View, b store.Batch, old, now *records.Volume) {
	claim := v.World(old.ID.Ref()).Claim.Record
	x := v.World(old.ID.Ref())
	said := x.Said(old.ID, old.Claim)
	wrong := ""
	switch {
	case now.Fate == records.FateLost && old.Fate != records.FateRestoring:
		wrong = j.claimUser(v, old)
		if !asked(v, b, old, records.VerbLost) {
			wrong = "nobody says that it is lost"
		}
	case now.Fate == records.FateKeep && (old.Fate == records.FateRestoring || old.Fate == records.FateLost):
		if now.Turn <= old.Turn || said == nil || said.Volume != old.UID || said.State != records.VolumeFound {
			wrong = "its node does not say that it is back"
		}
	case now.Fate != records.FateReclaiming || old.Fate == records.FateReclaiming:
		wrong = "no such thing becomes of the volume of a claim"
	case claim != nil && !claim.Deleting && !(old.Fate == records.FateRestoring && byHand(v, b, old)):
		wrong = "its claim stays"
	case claim == nil && !byHand(v, b, old):
		wrong = "nobody asked for it"
	default:
		wrong = j.claimUser(v, old)
		j.w.count("volume of a claim given up")
	}
	if wrong != "" {
		j.w.fail("claims", "the fate of volume %s of claim %s becomes %s after %s: %s", old.UID, old.Claim, now.Fate, old.Fate, wrong)
	}
}

// startsWithClaims judges, as a life is decided, that none of its claims is being deleted, or gone.
func (j *judge) startsWithClaims(v cache.View, m *records.Member) {
	for _, x := range m.Volumes {
		if !x.Object {
			continue
		}
		name, _ := x.Owner(m.ID).Ref().ClaimName()
		if c := v.World(x.Owner(m.ID).Ref()).Claim; c == nil || c.Record == nil || c.Record.Deleting {
			j.w.fail("claims", "%s %s begins with the claim %s, which is being deleted or is not there", m.ID, m.Token, name)
		}
	}
}
