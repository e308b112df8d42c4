package rules

import (
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
)

// outageKey is a life that is not available, told to run or to end, as one term of a server
// saw it first.
type outageKey struct {
	term standKey
	plan.Outage
}

// cures judges the stops of members that may serve, for they were ready in their lives
// (SAFETY S20): within the budget on an abandoned revision, as the only one that is not
// available, or after the deadline while no other is on its way, and no two at once.
func (c *planChecker) cures(key standKey) {
	seen := c.outages
	since := func(o int) time.Duration {
		m := c.Slot(o).Member
		k := outageKey{key, plan.Outage{ID: m.ID, Token: m.Token, Goal: m.Goal}}
		if c.Available(o) {
			delete(seen, k)
			return 0
		}
		if _, known := seen[k]; !known {
			seen[k] = c.now
		}
		return c.now.Sub(seen[k])
	}
	deadline := c.deadline()
	down, unavailable, coming := 0, 0, false
	for _, o := range c.Wanted {
		m := c.Slot(o).Member
		if m != nil && since(o) < deadline && !c.Available(o) && (m.Goal == records.GoalStop && m.StopReason == records.ReasonUpdate || m.Goal == records.GoalRun && c.heads(o) == c.target(o)) {
			coming = true
		}
		unavailable += one(!c.Available(o))
		down += one(!c.Available(o) && (!c.obsolete(o) || c.serves(o)))
	}
	lapsed := 0
	for _, a := range c.p.Actions {
		stop, is := a.(plan.Stop)
		if !is || stop.Reason != records.ReasonUpdate || c.Recreates() || c.Slot(stop.ID.Ordinal).Request != nil {
			continue
		}
		o := stop.ID.Ordinal
		if c.Available(o) || !c.serves(o) || c.changing(o) {
			continue
		}
		lapsed++
		s := c.Slot(o)
		never := s.Identity.AvailableOn != s.Member.Revision && (s.Member.Revision != c.current() || !c.x.Status.CurrentCompleted)
		switch out := since(o); {
		case lapsed == 1 && never && down <= c.budget():
		case lapsed == 1 && unavailable == 1 && out >= 30*time.Second:
			c.Count("lapsed member replaced alone")
		case lapsed == 1 && !coming && out >= deadline:
			c.Count("lapsed member replaced after the deadline")
		default:
			c.fail("cure", "%s was ready in this life, may serve, and is ended after %s of %s; %d are not available", s.Member.ID, out, deadline, unavailable)
		}
	}
}

// serves: the node's word is that the member runs, was ready in this life, and nothing that
// its template could be blamed for.
func (c *planChecker) serves(o int) bool {
	s := c.Slot(o)
	return s.Report != nil && s.Member != nil && c.live(s.Member) && c.told(s.Report) && s.Report.Phase == records.PhaseRunning && s.Report.Cause == "" &&
		(s.Report.ReadyOnce || s.Identity.ReadyToken == s.Member.Token)
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// deadline is the set's progress deadline.
func (c *planChecker) deadline() time.Duration {
	x := c.x.Set
	if x.Spec.ProgressDeadlineSeconds != nil {
		return time.Duration(*x.Spec.ProgressDeadlineSeconds) * time.Second
	}
	return time.Duration(max(600, x.Spec.MinReadySeconds+600)) * time.Second
}
