package rules

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/changes"
	"github.com/stead-project/stead/spec/scalar"
)

// result is what the life's node says of the newest change that it took; the zero one: nothing.
func (r *Reading) result(o int) inplace.ChangeResult {
	s := r.Slot(o)
	if s.Member == nil || s.Report == nil || s.Report.Token != s.Member.Token {
		return inplace.ChangeResult{}
	}
	return s.Report.Change
}

// known is the newest change of a life of which its record tells.
func known(m *records.Member) spec.Sequence {
	if m.Change != nil && m.Change.ID.Compare(m.Changed) > 0 {
		return m.Change.ID
	}
	return m.Changed
}

// unknownChange: the node took an order that is newer than what the record tells: of a history of the store that is lost.
func (r *Reading) unknownChange(o int) bool {
	m := r.Slot(o).Member
	return m != nil && r.result(o).ID.Compare(known(m)) > 0
}

// wasChanged is the revision which a life runs by the word of its node, after a change of which the record does not tell yet that it is
// done; "": there is none, or the set does not have that revision.
func (r *Reading) wasChanged(o int) spec.RevisionHash {
	m, said := r.Slot(o).Member, r.result(o)
	if m == nil || !said.Done {
		return ""
	}
	if of := m.Change != nil && said.ID == m.Change.ID; !of && !r.unknownChange(o) {
		return ""
	}
	if t, _ := r.ofRevision(said.Revision); t == nil && r.unknownChange(o) {
		return ""
	}
	return said.Revision
}

// changing: an order is under way: its node has not said that it is done, or why it cannot be.
func (r *Reading) changing(o int) bool {
	m := r.Slot(o).Member
	if m == nil || m.Change == nil || r.unknownChange(o) || r.tooOld(m) {
		return false
	}
	said := r.result(o)
	return said.ID != m.Change.ID || !said.Done && said.Refused == ""
}

// refused: the order cannot be done in the life, as its node says, or because its agent is too old by now.
func (r *Reading) refused(o int) bool {
	m, said := r.Slot(o).Member, r.result(o)
	if m == nil || m.Change == nil {
		return false
	}
	of := said.ID == m.Change.ID
	return of && said.Refused != "" || r.tooOld(m) && !(of && said.Done)
}

// tooOld: the agent of the life's node does not know such orders.
func (r *Reading) tooOld(m *records.Member) bool {
	f := r.factsOf(m.Node)
	return f != nil && !f.ChangesInPlace()
}

// heads is the revision that a life runs, or on whose way it is; "": neither is known.
func (r *Reading) heads(o int) spec.RevisionHash {
	switch m := r.Slot(o).Member; {
	case r.refused(o) || r.unknownChange(o):
		return ""
	case m.Change != nil:
		return m.Change.Revision
	default:
		return m.Revision
	}
}

// changes judges an order to change a life in place, and tells whether it takes down a member that is well: its turn has come as for an
// update, or an order before it is under way; nothing else differs; and the set allows it (SEMANTICS Part 3, In place).
func (c *planChecker) changes(a plan.ChangeInPlace) bool {
	o := a.ID.Ordinal
	s := c.Slot(o)
	if s.Member == nil || s.Member.Token != a.Token || s.Member.Goal == records.GoalStop || c.Vacant(o) {
		c.fail("in place", "%s %s is changed, and is not a life that runs", a.ID, a.Token)
		return false
	}
	switch said := c.result(o); {
	case a.Change.Revision != c.target(o) || c.heads(o) == a.Change.Revision || c.held(o):
		c.fail("in place", "%s is changed to %s from %s; its target is %s", a.ID, a.Change.Revision, c.heads(o), c.target(o))
	case a.Change.ID.Compare(known(s.Member)) <= 0 || a.Change.ID.Compare(said.ID) <= 0:
		c.fail("in place", "%s gets the order %v after %v, and its node took %v", a.ID, a.Change.ID, known(s.Member), said.ID)
	case !c.Available(o) && !c.changing(o):
		c.fail("in place", "%s is changed in place, and is not available", a.ID)
	case s.Request != nil || c.Recreates() || c.x.Set.Spec.UpdateStrategy.Type == spec.OnDeleteStrategy:
		c.fail("in place", "%s is changed in place, and a new life was asked for", a.ID)
	}
	if why := c.needsLife(o, a.Change.Revision); why != "" {
		c.fail("in place", "%s is changed in place to %s: %s", a.ID, a.Change.Revision, why)
	}
	if !c.Available(o) {
		return false
	}
	stop := plan.Stop{ID: a.ID, Token: a.Token, Reason: records.ReasonUpdate}
	c.leaderLast(stop)
	c.leavesTheBusy(stop)
	c.highestFirst(o)
	c.imagesFirst(o)
	return true
}

// needsLife is why a life cannot be changed in place to a revision; "": it can.
func (c *planChecker) needsLife(o int, to spec.RevisionHash) string {
	s := c.Slot(o)
	from, had := c.ofRevision(s.Member.Revision)
	now, has := c.ofRevision(to)
	if from == nil || now == nil {
		return "a revision is not known"
	}
	a, b := MemberTemplate(from, had, o), MemberTemplate(now, has, o)
	image, resources := false, false
	if m := s.Member; m.Change != nil { // what was begun is taken back
		if begun, its := c.ofRevision(m.Change.Revision); begun != nil {
			t := MemberTemplate(begun, its, o)
			i, r := alike(&a, &t)
			image, resources = i, r
		} else {
			image, resources = true, true
		}
	}
	class := memoryClass(&a.Spec) == memoryClass(&b.Spec)
	i, r := alike(&a, &b)
	image, resources = image || i || c.unknownChange(o), resources || r || c.unknownChange(o)
	allowed := c.x.Set.Spec.UpdateStrategy.InPlace
	switch {
	case string(encoded(a.Spec)) != string(encoded(b.Spec)) || string(encoded(a.Metadata.Annotations)) != string(encoded(b.Metadata.Annotations)):
		return "something else differs"
	case image && !slices.Contains(allowed, changes.Image), resources && !slices.Contains(allowed, changes.Resources):
		return "the set does not allow it"
	case r && !class:
		return "its class of memory changes"
	case s.Member.Service != c.x.Set.Service():
		return "its service is renamed"
	case c.refused(o) && s.Member.Change.Revision == to:
		return "its node refused it"
	}
	return ""
}

// alike has b be as a in what changes in place, and tells what that is.
func alike(a, b *spec.Template) (image, resources bool) {
	for c, role := range a.Spec.All() {
		for d, other := range b.Spec.All() {
			if d.Name != c.Name || role == spec.RoleInit || other != role {
				continue
			}
			image = image || c.Image != d.Image
			resources = resources || string(encoded(c.Resources)) != string(encoded(d.Resources))
			d.Image, d.Resources = c.Image, c.Resources
		}
	}
	return image, resources
}

// memoryClass is what the kernel takes a member for: one of which all containers have limits of cpu and memory that are their requests,
// one of which none has either, or one between.
func memoryClass(s *spec.MemberSpec) string {
	all, none := true, true
	for c := range s.All() {
		for _, name := range []string{"cpu", "memory"} {
			limit, limited := c.Resources.Limits[name]
			request, requested := c.Resources.Requests[name]
			all = all && limited && limit.Milli > 0 && (!requested || request == limit)
			none = none && limit == scalar.Quantity{} && request == scalar.Quantity{}
		}
	}
	switch {
	case none:
		return "none"
	case all:
		return "all"
	}
	return "some"
}

// mayChange: the update of a member that is well needs no new life, so that it gets none.
func (c *planChecker) mayChange(o int) bool {
	s := c.Slot(o)
	f := c.factsOf(s.Member.Node)
	return c.Available(o) && s.Request == nil && !c.Recreates() && s.Identity != nil && f != nil && f.ChangesInPlace() && c.drainOf(s.Member.Node) == nil &&
		c.shutdownOf(s.Member.Node) == nil && s.Move == nil && c.x.Set.Spec.UpdateStrategy.Type != spec.OnDeleteStrategy && c.needsLife(o, c.target(o)) == ""
}
