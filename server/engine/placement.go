package engine

import (
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// placement is what a term remembers of sets that share nodes. No transaction guards
// that a node is not promised twice: one leader decides, one set after the other, and
// looks only when it sees what it decided for the others.
type placement struct {
	begunAt  store.Rev            // of the last commit that began a life
	early    map[spec.SetRef]bool // looked at before the cache showed that commit
	homeless map[spec.SetRef]bool // have a member that no node can take
}

// waits: the set's members would be placed before the lives are seen that began last.
func (p *placement) waits(ref spec.SetRef, rev store.Rev, w *plan.World) bool {
	if rev >= p.begunAt || !minds(w) {
		return false
	}
	p.early[ref] = true
	return true
}

// minds: it matters to the set what else runs on a node.
func minds(w *plan.World) bool {
	t := &w.Set.Spec.Template.Spec
	cpu, memory := t.Requests()
	return cpu > 0 || memory > 0 || t.Constrained() || len(w.Nodes) > 0 && w.Nodes[0].Residents != nil
}

// note keeps whether a member of the set waits for a node.
func (p *placement) note(ref spec.SetRef, blocked []plan.Blocked) {
	delete(p.homeless, ref)
	for _, b := range blocked {
		switch b.Reason {
		case plan.BlockedNoNode, plan.BlockedNoRoom, plan.BlockedHostPort:
			p.homeless[ref] = true
			return
		}
	}
}

// wake pushes the sets for which the change may be what they waited for.
func (p *placement) wake(ch cache.Changes, push func(spec.SetRef)) {
	for ref := range p.early {
		push(ref)
	}
	clear(p.early)
	if ch.Room {
		for ref := range p.homeless {
			push(ref)
		}
	}
}

func (p *placement) forget(ref spec.SetRef) {
	delete(p.early, ref)
	delete(p.homeless, ref)
}
