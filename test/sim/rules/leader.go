package rules

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// leader is the ordinal that leads and goes down last, where the set says so: of the ready members that say so the one with the
// highest term, if no other has it; -1: there is none. unsure: a member of which its node has not told now may lead.
func (r *Reading) leader() (o int, unsure bool) {
	u := r.x.Set.Spec.UpdateStrategy.RollingUpdate
	if u == nil || u.Order != spec.OrderLeaderLast {
		return -1, false
	}
	best, most := -1, int64(-1)
	for ordinal, s := range r.Slots {
		m, said := s.Member, s.Report
		if m == nil || said == nil || said.Token != m.Token || !said.Claim.Leads || !said.Ready || said.Phase.Over() || m.Goal != records.GoalRun {
			continue
		}
		if !r.live(m) || !r.told(said) {
			return -1, true
		}
		switch term := int64(said.Claim.Term); {
		case term > most:
			best, most = ordinal, term
		case term == most:
			best = -1
		}
	}
	return best, false
}

// leaderLast: of the members that are well and that a plan may take down for the same reason, the one that leads is the last, but for
// those that are busy while members do not wait for each other.
func (c *planChecker) leaderLast(a plan.Stop) {
	leader, _ := c.leader()
	if a.ID.Ordinal != leader || !c.Available(leader) {
		return
	}
	for _, o := range c.Wanted {
		if o == leader || !c.Available(o) || c.stopped(o) || !c.Ordered() && c.busy(o) {
			continue
		}
		asked := c.Slot(o).Request != nil
		switch {
		case a.Reason == records.ReasonRestart && asked, a.Reason == records.ReasonUpdate && !asked && c.obsolete(o) && !c.held(o):
			c.fail("leader last", "%s, which leads, is ended before %s", c.Name(leader), c.Name(o))
		}
	}
	c.Count("leader goes last")
}

// passedOver: the member above is left because it leads, or may.
func (c *planChecker) passedOver(above int) bool {
	leader, unsure := c.leader()
	if above == leader {
		c.Count("leader passed over")
	}
	return unsure || above == leader
}
