package rules

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// claimOf judges that a life begins with the volume of a claim that is not being deleted, where that
// volume is, while nothing is asked of it; and alone, if a single life may have it (SAFETY S22).
func (c *planChecker) claimOf(a plan.Start, v records.MemberVolume, fresh bool) {
	m := a.Member
	x := c.x.Claims[string(v.Claim)]
	if x == nil || x.Record == nil || x.Record.Deleting {
		c.fail("claims", "%s begins with the claim %s, which is being deleted or is not there", m.ID, v.Claim)
		return
	}
	old := x.Slot.Volumes[v.Claim]
	switch {
	case len(x.Slot.Asked) > 0:
		c.fail("claims", "%s begins with the claim %s, and something is asked of its volume", m.ID, v.Claim)
	case fresh && old != nil:
		c.fail("claims", "%s gets another volume for the claim %s", m.ID, v.Claim)
	case !fresh && (old == nil || old.UID != v.ID || old.Node != m.Node || old.Fate != records.FateKeep):
		c.fail("claims", "%s begins on %s with volume %s of the claim %s, which is not there", m.ID, m.Node, v.ID, v.Claim)
	}
	others := 0 // that begin with it in this step
	for _, b := range c.p.Actions {
		if b, is := b.(plan.Start); is && b.Member.ID != m.ID && has(&b.Member, v) {
			others++
		}
	}
	if others > 0 && (fresh || x.Record.Spec.OnePod()) {
		c.fail("claims", "%s begins with the claim %s beside another", m.ID, v.Claim)
	}
	if !x.Record.Spec.OnePod() {
		return
	}
	for _, s := range c.Slots {
		if s.ID != m.ID && s.Member != nil && has(s.Member, v) && !over(s.Member, s.Report) {
			c.fail("claims", "%s begins with the claim %s, which %s has", m.ID, v.Claim, s.ID)
		}
	}
	for _, u := range x.Users {
		if u.Member.ID != m.ID && !over(u.Member, u.Report) {
			c.fail("claims", "%s begins with the claim %s, which %s has", m.ID, v.Claim, u.Member.ID)
		}
	}
	for _, u := range x.Strays {
		if u.Stray.ID != m.ID {
			c.fail("claims", "%s begins with the claim %s, which %s may have", m.ID, v.Claim, u.Stray.ID)
		}
	}
}

// lacksClaim: members of a revision mount a claim that is gone or being deleted: none of them can return
// on it.
func (c *planChecker) lacksClaim(h spec.RevisionHash) bool {
	for _, r := range c.x.Revisions {
		if r.Hash != h {
			continue
		}
		for _, name := range r.Template.Spec.ClaimNames() {
			if x := c.x.Claims[name]; x == nil || x.Record == nil || x.Record.Deleting {
				return true
			}
		}
	}
	return false
}

// boundToTwo: the volumes that a member has, and those of claims that it mounts by a revision, are on two nodes: it cannot run it.
func (c *planChecker) boundToTwo(o int, h spec.RevisionHash) bool {
	home, two := spec.NodeName(""), false
	binds := func(v *records.Volume) {
		if v == nil || v.Node == "" || v.Shared {
			return
		}
		two = two || home != "" && home != v.Node
		home = v.Node
	}
	for _, v := range c.Slot(o).Volumes {
		binds(v)
	}
	t, _ := c.ofRevision(h)
	if t == nil {
		return false
	}
	for _, name := range t.Spec.ClaimNames() {
		if x := c.x.Claims[name]; x != nil {
			binds(x.Volume())
		}
	}
	return two
}

// has: the life has the volume of the same claim.
func has(m *records.Member, v records.MemberVolume) bool {
	for _, x := range m.Volumes {
		if x.Object && x.Claim == v.Claim {
			return true
		}
	}
	return false
}

// over: the life's own report says so.
func over(m *records.Member, r *records.Report) bool {
	return r != nil && r.Token == m.Token && r.Phase.Over()
}
