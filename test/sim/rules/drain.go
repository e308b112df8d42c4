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
	return c.absence(o, "drained")
}

// absence judges one member that is stopped of choice, and tells whether it was available: under OrderedReady nobody else is down, and one
// that is down already is one of no more than the budget allows.
func (c *planChecker) absence(o int, how string) (paid bool) {
	down, limit := 0, c.budget()
	for _, other := range c.Wanted {
		down += one(!c.Available(other) && !c.obsolete(other) && !c.returnsBroken(other))
		down += one(other > o && c.Available(other) && c.stopped(other))
	}
	if c.Ordered() {
		limit = 1
		for other, s := range c.Slots {
			if s.Member != nil && !c.IsWanted(other) && !c.Vacant(other) {
				c.fail("order", "%s is %s before the surplus member %s is gone", c.Name(o), how, c.Name(other))
			}
		}
	}
	if c.Available(o) {
		down++
	}
	if down > limit {
		c.fail("budget", "%s is %s: %d members are down then, of at most %d", c.Name(o), how, down, limit)
	}
	return c.Available(o)
}

// endsWithHost judges the stop of a member whose host is being shut down: the node says so and lives; in order those above it on that
// host are gone; and, unless its time is nearly over, no more of the members elsewhere are down than the budget allows.
func (c *planChecker) endsWithHost(o int) {
	m := c.Slot(o).Member
	ends := c.shutdownOf(m.Node)
	if ends == nil || !c.live(m) {
		c.fail("drain", "%s is ended with its host, which is silent or not being shut down", c.Name(o))
		return
	}
	if d := c.drainOf(m.Node); ends.AtOnce || d != nil && d.AtOnce {
		return
	}
	down, limit := 0, c.budget()
	if c.Ordered() {
		limit = 1
	}
	for _, other := range c.Wanted {
		s := c.Slot(other)
		here := s.Member != nil && s.Member.Node == m.Node
		if c.Ordered() && here && other > o && !c.Vacant(other) {
			c.fail("order", "%s is ended with its host before %s is gone", c.Name(o), c.Name(other))
		}
		goes := here && (!c.Vacant(other) || s.Member.StopReason == records.ReasonNodeShutdown || c.awaitsNode(other))
		down += one(!goes && !c.Available(other) && !c.obsolete(other) && !c.returnsBroken(other))
		down += one(!goes && other > o && c.Available(other) && c.stopped(other))
	}
	if down >= limit {
		c.fail("budget", "%s is ended with its host: %d members are down elsewhere, of at most %d", c.Name(o), down, limit)
	}
}

// shutdownOf is what a node says of its host's shutdown; nil: nothing.
func (r *Reading) shutdownOf(name spec.NodeName) *records.NodeCondition {
	for _, n := range r.x.Nodes {
		if n.Node.Name == name {
			return n.Facts.ShuttingDown()
		}
	}
	return nil
}

// connected: a node that is known has a session.
func (r *Reading) connected(name spec.NodeName) bool {
	for _, n := range r.x.Nodes {
		if n.Node.Name == name {
			return n.Session != nil
		}
	}
	return true
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

// awaitsNode: a member was stopped with its node, which is drained still or has not booted, and the plan does not start it elsewhere.
func (c *planChecker) awaitsNode(o int) bool {
	s := c.Slot(o)
	if s.Member == nil || !c.Vacant(o) {
		return false
	}
	switch s.Member.StopReason {
	case records.ReasonDrain:
		if c.drainOf(s.Member.Node) == nil {
			return false
		}
	case records.ReasonNodeShutdown:
		if c.shutdownOf(s.Member.Node) == nil && c.connected(s.Member.Node) {
			return false
		}
	default:
		return false
	}
	for _, a := range c.p.Actions {
		if start, is := a.(plan.Start); is && start.Member.ID == s.ID {
			return false
		}
	}
	return true
}
