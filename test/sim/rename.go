package sim

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// rename gives a set another governing service, as control does: not before the rename
// before it is complete, and with a restart of all.
func (w *Cluster) rename() bool {
	ref := w.someRef()
	old, rev := w.set(ref)
	if old == nil || old.Deleting || old.Orphaned {
		return false
	}
	busy := false
	w.view(func(v cache.View) {
		x := v.World(ref)
		busy = x.Status == nil || x.Status.ServiceName == "" || plan.Former(old, x.Status, x.Slots) != ""
	})
	if busy {
		return false
	}
	set := spec.Clone(*old)
	names := []string{"", "web", "data"}
	at := slices.Index(names, old.Spec.ServiceName)
	set.Spec.ServiceName, set.RestartedAt = names[(at+1+w.r.IntN(2))%3], fmt.Sprint(w.clock.UnixNano())
	set.Generation++
	w.note("the user renames the service %s to %s", old.Service(), set.Service())
	w.putSet(set, rev)
	return true
}

// names: every life that runs is found under the set's service or the one before it, which the status
// names until no life has it any more (SEMANTICS, serviceName).
func (c *planChecker) names() {
	set, shown := c.x.Set.Service(), c.p.Status.ServiceName
	for o, s := range c.slots {
		if s.Member == nil || c.w.judge.alive[s.ID].token != s.Member.Token || s.Member.Service == set || s.Member.Service == shown {
			continue
		}
		if !slices.ContainsFunc(c.p.Actions, func(a plan.Action) bool { return begins(a, s.ID) }) {
			c.fail("names", "%s has the service %q, and found are %q and %q", c.name(o), s.Member.Service, set, shown)
		}
	}
	for _, a := range c.p.Actions {
		if a, ok := a.(plan.Start); ok && a.Member.Service != set {
			c.fail("names", "%s begins with the service %q of a set with %q", a.Member.ID, a.Member.Service, set)
		}
	}
	if before := c.x.Status; before != nil && before.ServiceName != "" && before.ServiceName != set && shown == set {
		c.w.count("rename complete")
	}
}

func begins(a plan.Action, id spec.Identity) bool {
	switch a := a.(type) {
	case plan.Start:
		return a.Member.ID == id
	case plan.Forget:
		return a.ID == id
	}
	return false
}
