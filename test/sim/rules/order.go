package rules

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// order judges a plan under OrderedReady: at most one member begins, all before it
// available; at most one surplus member stops, all above it gone and the survivors
// available.
func (c *planChecker) order() {
	if !c.Ordered() {
		return
	}
	starts, stops := 0, 0
	for _, a := range c.p.Actions {
		switch a := a.(type) {
		case plan.Start:
			starts++
			c.begins(a.Member)
		case plan.Stop:
			if a.Reason == records.ReasonDelete || a.Reason.IsUnwanted() && !c.Recreates() && !c.hasLeft(a.ID.Ordinal) {
				stops++
				c.leaves(a)
			}
		}
	}
	if starts > 1 || stops > 1 || starts > 0 && stops > 0 {
		c.fail("order", "%d members begin and %d leave at once", starts, stops)
	}
}

// begins: all before it are available; but one whose turn in an update came may begin
// on its target, or while the rollout is paused on what it ran, before those that are broken off theirs or have no life.
func (c *planChecker) begins(m records.Member) {
	for _, o := range c.Wanted {
		if o >= m.ID.Ordinal || c.Available(o) {
			continue
		}
		if (m.Revision == c.target(m.ID.Ordinal) || c.returns(m.ID.Ordinal)) && (c.obsolete(o) || c.Vacant(o)) {
			continue
		}
		c.fail("order", "%s begins while %s is not available", m.ID, c.Name(o))
	}
}

// returns: its life was ended for the update, which a pause holds back: it returns on what
// it ran, as it would on its target.
func (c *planChecker) returns(o int) bool {
	m := c.Slot(o).Member
	return c.held(o) && m != nil && m.StopReason == records.ReasonUpdate
}

func (c *planChecker) leaves(a plan.Stop) {
	for o, s := range c.Slots {
		if o > a.ID.Ordinal && s.Member != nil && !c.Vacant(o) && !c.IsWanted(o) {
			c.fail("order", "%s stops while %s is not gone", a.ID, c.Name(o))
		}
	}
	for _, o := range c.Wanted {
		if !c.Available(o) {
			c.fail("order", "%s leaves while %s, which stays, is not available", a.ID, c.Name(o))
		}
	}
}

// updates judges what is ended and with what it returns: nobody that is well and
// right is ended, the budget is kept, the highest go first, and each new life runs
// the revision that is due.
func (c *planChecker) updates() {
	down, ended, well := 0, 0, 0
	for _, o := range c.Wanted {
		if c.Available(o) {
			well++
		} else if !c.obsolete(o) && !c.returnsBroken(o) {
			down++
		}
	}
	for _, a := range c.p.Actions {
		switch a := a.(type) {
		case plan.Stop:
			if c.disturbs(a) {
				ended++
			}
		case plan.ChangeInPlace:
			if c.changes(a) {
				ended++
			}
		case plan.Start:
			c.due(a.Member)
		}
	}
	if ended > 0 && well-ended < c.floor() {
		c.fail("floor", "%d members are available and %d of them are ended; %d must stay", well, ended, c.floor())
	}
	if ended > 0 && ended+down > c.budget() && !c.Recreates() {
		c.fail("budget", "%d members are down and %d more are ended, of at most %d", down, ended, c.budget())
	}
}

// returnsBroken: it begins anew on an abandoned revision on which it was never available: broken
// by SEMANTICS rule 2 as soon as it runs, and not of the budget (rule 7).
func (c *planChecker) returnsBroken(o int) bool {
	for _, a := range c.p.Actions {
		if a, is := a.(plan.Start); is && a.Member.ID.Ordinal == o {
			m := a.Member
			abandoned := m.Revision != c.target(o) && (m.Revision != c.current() || !c.x.Status.CurrentCompleted)
			return abandoned && a.Identity.AvailableOn != m.Revision
		}
	}
	return false
}

// disturbs judges one stop, and tells whether it takes down a member that is well.
func (c *planChecker) disturbs(a plan.Stop) bool {
	o := a.ID.Ordinal
	s := c.Slot(o)
	if s.Member == nil || s.Member.Token != a.Token || s.Member.Goal == records.GoalStop || c.Vacant(o) {
		c.fail("churn", "%s %s is ended, and is not a life that runs", a.ID, a.Token)
		return false
	}
	c.leaderLast(a)
	c.leavesTheBusy(a)
	u := c.x.Set.Spec.UpdateStrategy
	switch a.Reason {
	case records.ReasonDelete:
		if !c.x.Set.Deleting {
			c.fail("churn", "%s is ended for a deletion that nobody asked for", a.ID)
		}
		return false
	case records.ReasonScaleDown, records.ReasonScaleToZero:
		if (a.Reason == records.ReasonScaleToZero) != (c.x.Set.Replicas() == 0) {
			c.fail("churn", "%s is ended with the reason %s in a set of %d", a.ID, a.Reason, c.x.Set.Replicas())
		}
		if c.IsWanted(o) && !c.hasLeft(o) {
			c.fail("churn", "%s is wanted, and leaves", a.ID)
		}
		return false
	case records.ReasonRestart:
		if s.Request == nil {
			c.fail("churn", "%s is restarted, and nobody asked for it", a.ID)
		}
	case records.ReasonUpdate:
		if c.heads(o) == c.target(o) || c.held(o) || u.Type == spec.OnDeleteStrategy && s.Request == nil {
			c.fail("churn", "%s is ended for an update on revision %s", a.ID, s.Member.Revision)
		}
		if s.Request == nil && c.Available(o) && !c.Recreates() {
			c.highestFirst(o)
		}
		if s.Request == nil && c.Available(o) {
			c.imagesFirst(o)
		}
		if c.mayChange(o) {
			c.fail("in place", "%s gets a new life for the update to %s, and can be changed", a.ID, c.target(o))
		}
	case records.ReasonReplace:
		if !saidLost(s) {
			c.fail("churn", "%s is ended, and nobody says that a volume which it waits for is lost", a.ID)
		}
	case records.ReasonNodeShutdown:
		c.endsWithHost(o)
		return false // whatever the budget is
	case records.ReasonMove:
		return c.moves(o)
	case records.ReasonDrain:
		return c.drains(o)
	default:
		c.fail("churn", "%s is ended for %q", a.ID, a.Reason)
	}
	return c.Available(o)
}

// hasLeft: the member is wanted again, and had taken leave already: it stops all the same.
func (c *planChecker) hasLeft(o int) bool {
	s := c.Slot(o)
	return c.IsWanted(o) && s.Member != nil && s.Member.Leaving() && s.Member.HookResult(s.Report).Done
}

// saidLost: the life never had its volumes, and a person says that one of them is lost.
func saidLost(s *plan.Slot) bool {
	if s.Report == nil || s.Report.Cause != causes.VolumeMissing || s.Report.Phase.Rank() > records.PhasePreparing.Rank() {
		return false
	}
	for claim, q := range s.Asked {
		if v := s.Volumes[claim]; v != nil && q.Verb == records.VerbLost && q.Volume == v.UID {
			return true
		}
	}
	return false
}

// highestFirst: no member above is well and left on an old revision, but for one that leads and goes last, or that is busy while members
// do not wait for each other.
func (c *planChecker) highestFirst(o int) {
	for _, above := range c.Wanted {
		if above <= o || !c.Available(above) || !c.obsolete(above) || c.stopped(above) || c.Slot(above).Request != nil || c.passedOver(above) ||
			!c.Ordered() && c.busy(above) {
			continue
		}
		c.fail("order", "%s is updated before %s", c.Name(o), c.Name(above))
	}
}

func (c *planChecker) stopped(o int) bool {
	return slices.ContainsFunc(c.p.Actions, func(a plan.Action) bool {
		switch a := a.(type) {
		case plan.Stop:
			return a.ID.Ordinal == o
		case plan.ChangeInPlace:
			return a.ID.Ordinal == o
		}
		return false
	})
}

// due: the life before and how it ended say on which revision the next one is. One
// that dies before its turn returns on what it ran, unless that never worked.
func (c *planChecker) due(m records.Member) {
	s, target := c.Slot(m.ID.Ordinal), c.target(m.ID.Ordinal)
	if c.Recreates() {
		c.apart(m)
		return
	}
	if c.held(m.ID.Ordinal) {
		if m.Revision != c.current() && (s.Identity == nil || m.Revision != s.Identity.Due) {
			c.fail("due", "%s begins on %s while the rollout is paused", m.ID, m.Revision)
		}
		return
	}
	if s.Member == nil || s.Member.StopReason == records.ReasonUpdate || c.x.Set.Spec.UpdateStrategy.Type == spec.OnDeleteStrategy {
		if m.Revision != target {
			c.fail("due", "%s begins on %s; its target is %s", m.ID, m.Revision, target)
		}
		return
	}
	ran := c.ran(s)
	if c.sameFor(m.ID.Ordinal, ran, target) && m.Revision != target {
		c.fail("differences", "%s begins on %s, and runs the same by its target %s", m.ID, m.Revision, target)
	}
	failed := s.Report != nil && s.Report.Phase == records.PhaseFailed
	never := s.Identity == nil || s.Identity.AvailableOn != ran
	forgotten := c.x.Revisions == nil || !c.stored(ran)
	if m.Revision != ran && !(m.Revision == target && (failed || never || forgotten || c.lacksClaim(ran) || c.boundToTwo(m.ID.Ordinal, ran) || c.sameFor(m.ID.Ordinal, ran, target))) {
		c.fail("due", "%s begins on %s, though it ran %s and its turn did not come", m.ID, m.Revision, ran)
	}
}

// ran is what the life before ran, or what it was being changed to in place when it ended: its turn had come.
func (c *planChecker) ran(s *plan.Slot) spec.RevisionHash {
	if s.Identity != nil && s.Identity.Due != "" && c.Changed(s.ID, s.Member.Token, s.Identity.Due) {
		return s.Identity.Due
	}
	return s.Member.Revision
}

// apart: under Recreate members of two revisions do not run beside each other, but for
// those that did before.
func (c *planChecker) apart(m records.Member) {
	others, same := 0, 0
	for o, s := range c.Slots {
		switch {
		case c.Vacant(o):
		case s.Member.Revision != m.Revision:
			others++
		default:
			same++
		}
	}
	ran := c.Slot(m.ID.Ordinal).Identity != nil && c.Slot(m.ID.Ordinal).Identity.Due == m.Revision
	if others > 0 && same == 0 && !ran && m.Revision == c.aim() && c.current() != m.Revision {
		c.fail("due", "%s begins on %s while %d members of other revisions live", m.ID, m.Revision, others)
	}
	if others == 0 && same == 0 && m.Revision != c.aim() && !c.x.Set.Paused {
		c.fail("due", "%s begins on %s, though no other runs it", m.ID, m.Revision)
	}
}
