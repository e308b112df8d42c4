package engine

import (
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// placement is what a term remembers of sets that share nodes. No transaction guards
// that a node is not promised twice: one leader decides, one set after the other, and
// evaluates only when the cache shows what it decided for the others.
type placement struct {
	lastStart store.Rev            // of the last commit that began a life
	waiting   map[spec.SetRef]bool // were evaluated before the cache showed that commit
	unplaced  map[spec.SetRef]bool // have a member that no node can take
}

// mustWait: the set's members would be placed before the lives are seen that began last.
func (p *placement) mustWait(ref spec.SetRef, rev store.Rev, w *plan.World) bool {
	if rev >= p.lastStart || !sharesNodes(w) {
		return false
	}
	p.waiting[ref] = true
	return true
}

// sharesNodes: it matters to the set what else runs on a node.
func sharesNodes(w *plan.World) bool {
	t := &w.Set.Spec.Template.Spec
	cpu, memory := t.Requests()
	return cpu > 0 || memory > 0 || t.Constrained() || len(w.Nodes) > 0 && w.Nodes[0].Residents != nil
}

// observe keeps whether a member of the set waits for a node.
func (p *placement) observe(ref spec.SetRef, blocked []plan.Blocked) {
	delete(p.unplaced, ref)
	for _, b := range blocked {
		switch b.Reason {
		case causes.BlockedNoNode, causes.BlockedNoRoom, causes.BlockedHostPort:
			p.unplaced[ref] = true
			return
		}
	}
}

// enqueueWaiting pushes the sets for which the change may be what they waited for.
func (p *placement) enqueueWaiting(ch cache.Changes, push func(spec.SetRef)) {
	for ref := range p.waiting {
		push(ref)
	}
	clear(p.waiting)
	if ch.Room {
		for ref := range p.unplaced {
			push(ref)
		}
	}
}

func (p *placement) forget(ref spec.SetRef) {
	delete(p.waiting, ref)
	delete(p.unplaced, ref)
}
