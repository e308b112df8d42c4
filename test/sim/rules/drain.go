package rules

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// drains judges the stop of a member of a node that is drained, and tells whether the budget pays for it: the node
// lives, surplus members leave before, under OrderedReady nobody else is down, and one that is down already is one of
// no more than the budget allows.
func (c *planChecker) drains(o int) (paid bool) {
	m := c.Slot(o).Member
	d := c.drainOf(m.Node)
	if d == nil || !c.live(m) {
		c.fail("drain", "%s is ended for a drain, and its node is silent or not drained", c.Name(o))
		return false
	}
	if d.AtOnce {
		return false
	}
	down, limit := 0, c.budget()
	for _, other := range c.Wanted {
		down += one(!c.Available(other) && !c.obsolete(other) && !c.returnsBroken(other))
		down += one(other > o && c.Available(other) && c.stopped(other))
	}
	if c.Ordered() {
		limit = 1
		for other, s := range c.Slots {
			if s.Member != nil && !c.IsWanted(other) && !c.Vacant(other) {
				c.fail("order", "%s is drained before the surplus member %s is gone", c.Name(o), c.Name(other))
			}
		}
	}
	if c.Available(o) {
		down++
	}
	if down > limit {
		c.fail("budget", "%s is drained: %d members are down then, of at most %d", c.Name(o), down, limit)
	}
	return c.Available(o)
}

// drainOf is what a person wants of a node.
func (r *Reading) drainOf(name spec.NodeName) *records.Drain {
	for _, n := range r.x.Nodes {
		if n.Node.Name == name {
			return n.Node.Drain
		}
	}
	return nil
}

// awaitsNode: a member was stopped with its node, which is drained still, and the plan does not start it elsewhere.
func (c *planChecker) awaitsNode(o int) bool {
	s := c.Slot(o)
	if s.Member == nil || s.Member.StopReason != records.ReasonDrain || !c.Vacant(o) || c.drainOf(s.Member.Node) == nil {
		return false
	}
	for _, a := range c.p.Actions {
		if start, is := a.(plan.Start); is && start.Member.ID == s.ID {
			return false
		}
	}
	return true
}
