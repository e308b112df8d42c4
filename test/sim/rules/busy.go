package rules

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec/causes"
)

// busy: a member that is well says that it should not be stopped, and the set waits for it still.
func (c *planChecker) busy(o int) bool {
	s := c.Slot(o)
	bound := int32(3600)
	if b := c.x.Set.Spec.Busy; b != nil && b.MaxSeconds != nil {
		bound = *b.MaxSeconds
	}
	return c.Available(o) && (s.Report.Claim.Busy != "" && s.Report.Claim.BusyFor.Seconds() < float64(bound) || c.runsJob(s))
}

// runsJob: the run of a job that is recorded is ordered in the life, whose node does not say that it is over, or that its time is.
func (c *planChecker) runsJob(s *plan.Slot) bool {
	h, r, jobs := s.Member.Hook, s.Report.Hook, c.x.Jobs
	if jobs == nil || jobs.Run == nil || jobs.Run.Unknown || c.x.Set.Spec.FindJob(jobs.Run.Job) == nil {
		return false
	}
	return h != nil && h.Kind == hooks.RunJob && h.ID == jobs.Run.ID && (r.ID != h.ID || !r.Done && !r.Unknown && r.Failures == 0 && !r.Overdue)
}

// leavesTheBusy judges the stop of a member that is well: it is not busy, and in order neither is one whose turn comes before it,
// unless a person does not want to wait. A deletion, and a host that goes down, wait for nobody.
func (c *planChecker) leavesTheBusy(a plan.Stop) {
	o := a.ID.Ordinal
	s := c.Slot(o)
	switch a.Reason {
	case records.ReasonUpdate, records.ReasonRestart, records.ReasonScaleDown, records.ReasonScaleToZero:
	case records.ReasonMove:
		if m := s.Move; m != nil && m.Epoch != c.x.Epoch {
			return
		}
	case records.ReasonDrain:
		if d := c.drainOf(s.Member.Node); d != nil && d.AtOnce {
			return
		}
	default:
		return
	}
	if !c.Available(o) || s.Request != nil && s.Request.Now {
		return
	}
	if c.busy(o) {
		c.fail("busy", "%s is ended (%s) while it is busy", c.Name(o), a.Reason)
	}
	leader, unsure := c.leader()
	if !c.Ordered() || !c.IsWanted(o) || c.Recreates() || unsure {
		return
	}
	for _, other := range c.Wanted {
		before := other > o && other != leader || o == leader && other != leader
		if before && c.busy(other) {
			c.fail("busy", "%s is ended (%s) while %s, whose turn comes before, is busy", c.Name(o), a.Reason, c.Name(other))
		}
	}
}

// tooLong: the condition BusyTooLong is there when a member that is well is busy for too long, and only while one says that it is busy.
func (c *planChecker) tooLong() {
	said := condition(c.p.Status, plan.ConditionBusyTooLong).Status == "True"
	is, may := false, false
	for o, s := range c.Slots {
		if s.Report == nil || s.Report.Claim.Busy == "" {
			continue
		}
		may = true
		is = is || c.Available(o) && !c.stopped(o) && !c.busy(o)
	}
	if is && !said || said && !may {
		c.fail("busy", "BusyTooLong is said: %v, and a member is: %v", said, is)
	}
	if said {
		c.Count("BusyTooLong")
	}
}

// awaitsBusy: the member for whom the rollout waits is busy, or stops after one that is. It is one whose turn came, else one
// that waits for something else than other members.
func (c *planChecker) awaitsBusy() bool {
	var first causes.BlockedReason
	for i := range c.p.Blocked {
		b := &c.p.Blocked[i]
		o := b.ID.Ordinal
		if !slices.Contains(c.Wanted, o) || b.Reason == causes.BlockedTurn || b.Reason == causes.BlockedPredecessor {
			continue
		}
		m := c.Slot(o).Member
		if m != nil && (m.Goal != records.GoalStop && !c.stopped(o) && !c.obsolete(o) || m.StopReason == records.ReasonUpdate) {
			first = b.Reason
			break
		}
		if first == "" {
			first = b.Reason
		}
	}
	return first == causes.BlockedBusy
}
