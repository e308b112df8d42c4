package plan

import (
	"fmt"
	"maps"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// ClaimState is what the store has of one PersistentVolumeClaim.
type ClaimState struct {
	Record *records.ClaimRecord // nil: there is no such claim, or it is Unread
	Unread bool                 // a record of it cannot be read
	Slot   Slot                 // of its identity: its volume, and what is said and asked of that
	// Users are the members that have its volume, by identity: also those whose life is over and
	// was not replaced, and in a set's world without those of the set.
	Users []ClaimUser
	// Strays are all unknown lives of its namespace: any of them may use the volume.
	Strays []NodeStray
}

// ClaimUser is a member that has the volume of a claim, and what was reported of its life; nil: nothing.
type ClaimUser struct {
	Member *records.Member
	Report *records.Report
}

// What a member needs of the PersistentVolumeClaims that it mounts. Their volumes belong to no
// member: see planClaim.

// objects are the claims that a template mounts, as the placer needs them, or why no life may have
// them now. What is asked of a volume, and the end of its claim, keep new lives away first and are
// done when the last one is over (SAFETY S22).
func (s volumes) objects(t *memberState, m *spec.MemberSpec) ([]place.Object, *place.Refusal) {
	var out []place.Object
	for _, name := range m.ClaimNames() {
		c := s.world.Claims[name]
		if no := s.noClaim(name, c); no != nil {
			return nil, no
		}
		v := c.Volume()
		if no := s.notFree(t, name, c, v); no != nil {
			return nil, no
		}
		out = append(out, c.object(name))
	}
	return out, nil
}

// object is the claim of that name, which has a record, as a life mounts it.
func (c *ClaimState) object(name string) place.Object {
	return place.Object{Name: name, Class: c.Record.Spec.Class(), Volume: c.Volume(), Many: c.Record.Spec.OnManyNodes(), LeftOn: c.Slot.Left}
}

// noClaim says why there is no claim to mount; nil: there is.
func (s volumes) noClaim(name string, c *ClaimState) *place.Refusal {
	switch {
	case c == nil || c.Record == nil && !c.Unread:
		return &place.Refusal{Reason: causes.BlockedNoClaim, Text: fmt.Sprintf("PersistentVolumeClaim %s not found; apply it", name)}
	case c.Unread:
		return &place.Refusal{Reason: causes.BlockedUnreadable, Text: fmt.Sprintf("a stored record of PersistentVolumeClaim %s cannot be read", name)}
	case c.Record.Deleting:
		return &place.Refusal{Reason: causes.BlockedNoClaim, Text: fmt.Sprintf("PersistentVolumeClaim %s is being deleted; apply it again when it is gone", name)}
	}
	return nil
}

// notFree says why the volume of a claim cannot be had now; nil: it can.
func (s volumes) notFree(t *memberState, name string, c *ClaimState, v *records.Volume) *place.Refusal {
	switch class := c.Record.Spec.Class(); {
	case v != nil && v.Fate.Ordered():
		return s.givenUp(v, c.Slot.Said[v.Claim])
	case len(c.Slot.Asked) > 0:
		return &place.Refusal{Reason: causes.BlockedTurn, Text: fmt.Sprintf("waiting until what was requested of the volume of PersistentVolumeClaim %s is done", name)}
	case v != nil && v.Class != class:
		return &place.Refusal{Reason: causes.BlockedVolume, Text: fmt.Sprintf(
			"the volume of PersistentVolumeClaim %s is of class %s, but %s is asked for; delete the claim to give the volume up, or change the claim back", name, v.Class, class)}
	case s.claimed[name]:
		return &place.Refusal{Reason: causes.BlockedTurn, Text: fmt.Sprintf("waiting until it is recorded who has the volume of PersistentVolumeClaim %s", name)}
	case c.Record.Spec.OnePod():
		if user := s.otherUser(t.ID, name, c); user != "" {
			return &place.Refusal{Reason: causes.BlockedClaimInUse, Text: fmt.Sprintf("PersistentVolumeClaim %s is ReadWriteOncePod, and %s uses it", name, user)}
		}
	}
	return nil
}

// Volume is the claim's volume; nil: there is none.
func (c *ClaimState) Volume() *records.Volume {
	claim, _ := c.Slot.ID.Ref().ClaimName()
	return c.Slot.Volumes[spec.ClaimName(claim)]
}

// User is a member whose life may use the claim's volume, but for one identity, or an unknown life
// that may be one; "": there is none.
func (c *ClaimState) User(but spec.Identity) string {
	for _, u := range c.Users {
		if u.Member.ID != but && !proof.Ended(u.Member, u.Report) {
			return fmt.Sprintf("token %s of %s on node %s", u.Member.Token, u.Member.ID.MemberName(), u.Member.Node)
		}
	}
	for _, x := range c.Strays {
		if x.Stray.ID != but {
			return fmt.Sprintf("token %s of %s, which the store does not know, on node %s", x.Stray.Token, x.Stray.ID.MemberName(), x.Node)
		}
	}
	return ""
}

// otherUser is User, with the members of the set itself.
func (s volumes) otherUser(id spec.Identity, name string, c *ClaimState) string {
	for _, t := range s.members {
		if t.ID == id || t.Member == nil || proof.Ended(t.Member, t.Report) {
			continue
		}
		for i := range t.Member.Volumes {
			if v := &t.Member.Volumes[i]; v.Object && string(v.Claim) == name {
				return fmt.Sprintf("token %s of %s on node %s", t.Member.Token, t.ID.MemberName(), t.Member.Node)
			}
		}
	}
	return c.User(id)
}

// giveObjects gives the life that a starts the volumes of claims, and makes those that were
// never made. They stay on the node where they are made, unless several nodes may have them.
func (s volumes) giveObjects(objects []place.Object, rec *records.IdentityRecord, node *Node, a *Start) {
	life := spec.LifeID{ID: rec.ID, Token: rec.LastToken}
	for _, o := range objects {
		c := s.world.Claims[o.Name]
		v := o.Volume
		switch {
		case v == nil:
			made := records.IdentityRecord{ID: c.Record.Identity()}
			if c.Slot.Identity != nil {
				made = *c.Slot.Identity
			}
			v = newClaimVolume(c.Record, &made, node)
			v.UID, v.CreatedAt = s.world.VolumeID(), s.world.Now
			if c.Record.Spec.OnePod() {
				v.HeldBy = &life
			}
			a.Volumes, a.Claimed = append(a.Volumes, *v), append(a.Claimed, made)
		case c.Record.Spec.OnePod():
			held := *v
			held.HeldBy = &life
			a.Moved = append(a.Moved, held)
		}
		shared := o.Many && v.Shared
		a.Member.Volumes = append(a.Member.Volumes, records.MemberVolume{
			Claim: v.Claim, ID: v.UID, Number: v.Number, Class: v.Class, SizeBytes: v.SizeBytes, Object: true,
			Shared: shared, Fenced: shared && node.Facts.FencesClass(v.Class),
		})
	}
}

// newClaimVolume is a claim's next volume; rec gets its number.
func newClaimVolume(r *records.ClaimRecord, rec *records.IdentityRecord, node *Node) *records.Volume {
	claim := spec.ClaimName(r.Name)
	rec.VolumeNumbers = with(rec.VolumeNumbers, claim, rec.VolumeNumbers[claim]+1)
	return &records.Volume{
		ID: rec.ID, Claim: claim, Number: rec.VolumeNumbers[claim], Class: r.Spec.Class(), Node: node.Node.Name,
		Shared:    r.Spec.OnManyNodes() && node.Facts.SharesClass(r.Spec.Class()),
		SizeBytes: r.Spec.SizeBytes(), Fate: records.FateKeep, Labels: r.Labels,
	}
}

// keeper is the node that gives up the volume of a claim: the one that made it; if that is not connected, and
// the volume is on others as well, one of these.
func (s volumes) keeper(v *records.Volume) spec.NodeName {
	if n := s.node(v.Node); s.world.Claim == nil || !v.Shared || n != nil && n.Connected() {
		return v.Node
	}
	for i := range s.world.Nodes {
		if n := &s.world.Nodes[i]; n.Connected() && n.Facts.SharesClass(v.Class) {
			return n.Node.Name
		}
	}
	return v.Node
}

// claim notes the claims whose volumes a start writes: what another start of this step relied on is
// not true any more.
func (d *draft) claim(a *Start) {
	for _, list := range [][]records.Volume{a.Volumes, a.Moved} {
		for i := range list {
			if name, is := list[i].ID.Ref().ClaimName(); is {
				d.claimed[name] = true
			}
		}
	}
}

// markClaims records, once each, that a life was ready on the volume of a claim.
func (s step) markClaims() {
	marked := map[spec.ClaimName]bool{}
	for _, t := range s.members {
		if !t.Ready {
			continue
		}
		for _, v := range t.Member.Volumes {
			c := s.world.Claims[string(v.Claim)]
			if !v.Object || marked[v.Claim] || c == nil || c.Slot.Identity == nil || c.Slot.Identity.VolumeReady[v.Claim] >= v.Number {
				continue
			}
			marked[v.Claim] = true
			rec := *c.Slot.Identity
			rec.VolumeReady = with(rec.VolumeReady, v.Claim, v.Number)
			s.act(MarkReady{Identity: rec})
		}
	}
}

// planClaim plans for one claim of a namespace: its volume is given up when the claim is deleted and
// nothing uses it any more, which is when the claim's record goes, too; and what a user requests of
// the volume is done. No life is started or stopped for it.
func planClaim(w World) Plan {
	claim := *w.Claim
	if len(w.Slots) > 0 {
		claim.Slot = w.Slots[0]
	}
	claim.Slot.Strays = claim.Strays
	w.Claim, w.Slots = &claim, []Slot{claim.Slot}
	s := newStep(withoutSet(w, w.Claim.Slot.ID.Ref()))
	if w.Claim.Unread || s.blockUnreadable() || s.blockHalted() {
		return s.plan
	}
	t := s.members[0]
	s.applyRequests()
	s.growClaim(t)
	s.reclaim(t)
	s.keepFound(t)
	s.voidRequests(t)
	s.dropVolumes(t)
	s.blockGivenUp(t)
	s.removeClaim(t)
	return s.plan
}

// growClaim records the size that the claim has now.
func (s volumes) growClaim(t *memberState) {
	r, v := s.world.Claim.Record, s.world.Claim.Volume()
	if r == nil || r.Deleting || v == nil || v.Fate != records.FateKeep || t.Volumes[v.Claim] != v || r.Spec.SizeBytes() <= v.SizeBytes {
		return
	}
	grown := *v
	grown.SizeBytes, grown.Grown = r.Spec.SizeBytes(), true
	s.act(SetVolumes{Volumes: []records.Volume{grown}, Text: "it has the size that its claim asks for"})
	t.become(t.withVolume(&grown))
}

// claimGoes reports whether the volume of a claim that is deleted is to be given up now: no life may
// use it, and none can start with it, for each start compares that the claim is not being deleted.
func (s volumes) claimGoes(v *records.Volume) bool {
	c := s.world.Claim
	return c != nil && c.Record != nil && c.Record.Deleting && !v.Fate.Ordered() && c.User(spec.Identity{}) == ""
}

// removeClaim removes the record of a claim that is deleted, when its volume is being given up or was
// never made; else it says who uses it.
func (s volumes) removeClaim(t *memberState) {
	c := s.world.Claim
	if c.Record == nil || !c.Record.Deleting {
		return
	}
	switch v, user := c.Volume(), c.User(spec.Identity{}); {
	case user != "":
		s.block(t, causes.BlockedClaimInUse, fmt.Sprintf("the claim is deleted when nothing uses its volume any more: %s may", user))
	case v == nil || v.Fate == records.FateReclaiming:
		s.act(RemoveClaim{Namespace: c.Record.Namespace, Name: c.Record.Name})
	}
}

// claimInUse says why what is asked of the volume of a claim is not done, beside what is said of any
// volume; "": it is done.
func (s volumes) claimInUse(q *records.VolumeRequest) string {
	c := s.world.Claim
	switch {
	case c == nil || q.Verb == records.VerbRestore:
		return ""
	case c.User(spec.Identity{}) != "":
		return fmt.Sprintf("%s may use it; scale its set to 0, or delete it, and wait until that has ended", c.User(spec.Identity{}))
	case q.Verb == records.VerbReclaim && c.Record != nil:
		return fmt.Sprintf("the claim exists; 'stead delete pvc %s' gives it up together with its volume", c.Record.Name)
	}
	return ""
}

// holder is the slot of an identity, or that of a claim.
func (w *World) holder(id spec.Identity) *Slot {
	if name, is := id.Ref().ClaimName(); is && w.Claim == nil {
		return &w.Claims[name].Slot
	}
	return w.slotOf(id)
}

// putIdentity replaces the record of an identity.
func (w *World) putIdentity(rec *records.IdentityRecord) { w.holder(rec.ID).Identity = rec }

// cloneClaims copies what World.apply changes.
func cloneClaims(claims map[string]*ClaimState) map[string]*ClaimState {
	out := maps.Clone(claims)
	for name, c := range out {
		own := *c
		out[name] = &own
	}
	return out
}
