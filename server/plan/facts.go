package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// facts is what is known of the set before anything is decided: the world, and what follows
// from it alone. newFacts derives all of it; nothing outside the files facts*.go assigns any of
// it (test/arch keeps that). What a step changes of it is in its draft.
type facts struct {
	world World
	judge *proof.Judge
	// asSeen holds every ordinal in range and every other one that has a record, ascending.
	asSeen []memberFacts
	size   int               // how many are wanted
	reach  spec.OrdinalRange // the ordinals wanted
	update spec.RevisionHash // the template's revision
	// current is the revision completed last; while none was, the first that is known.
	current spec.RevisionHash
	proven  bool // every member ran current and was available, once
	// targetRevision is where members go: the update revision, or after a rollback the current one.
	targetRevision spec.RevisionHash
	former         string            // the service before a rename that is not complete
	fresh          *records.Revision // the update revision, when it is not stored yet
	// apart: under Recreate, members of two revisions do not run beside each other. A member
	// keeps what it ran while others of another revision live, and, while the rollout is
	// paused, until one runs the update revision.
	apart bool
}

func newFacts(w World) *facts {
	f := &facts{world: w, judge: proof.NewJudge(w.Nodes, w.Epoch), reach: w.Set.Range(), update: w.TemplateHash}
	if w.Set.Deleting {
		f.reach = w.Set.Spec.Ordinals.Range(0)
	}
	f.current = f.update
	if w.Status != nil && f.template(w.Status.CurrentRevision) != nil {
		f.current, f.proven = w.Status.CurrentRevision, w.Status.CurrentCompleted
	}
	f.targetRevision = f.update
	if w.Status != nil && w.Status.RolledBackFrom == f.update {
		f.targetRevision = f.current
	}
	if f.stored(f.update) == nil && !w.Set.Deleting && !w.Set.Orphaned {
		f.fresh = newRevision(&w)
	}
	f.former = Former(w.Set, w.Status, w.Slots)
	f.see()
	f.apart = f.recreates() && f.mixed()
	return f
}

// see makes the members.
func (f *facts) see() {
	ref, next := f.world.Set.Ref, f.reach.Next(0)
	f.asSeen = make([]memberFacts, 0, max(f.world.Set.Replicas(), len(f.world.Slots)))
	fill := func(until int) { // those in range of which nothing is stored
		for ; next < min(until, f.reach.End); next = f.reach.Next(next + 1) {
			f.asSeen = append(f.asSeen, f.seen(Slot{ID: spec.Identity{Namespace: ref.Namespace, Set: ref.Name, Ordinal: next}}))
		}
	}
	for _, slot := range f.world.Slots {
		fill(slot.ID.Ordinal)
		if slot.ID.Ordinal == next {
			next = f.reach.Next(next + 1)
		}
		f.asSeen = append(f.asSeen, f.seen(slot))
	}
	fill(f.reach.End)
	var unread []spec.NodeName
	for i := range f.world.Nodes {
		if n := &f.world.Nodes[i]; n.Unread {
			unread = append(unread, n.Node.Name)
		}
	}
	for i := range f.asSeen {
		m := &f.asSeen[i]
		f.size += one(m.wanted)
		for _, node := range unread {
			m.Strays = append(m.Strays, NodeStray{Node: node, Stray: spec.LifeID{ID: m.ID}})
		}
	}
}

// mixed: a life of another revision than the one where members go is there; or the rollout is
// paused, and nobody is up.
func (f *facts) mixed() bool {
	up := false
	for i := range f.asSeen {
		m := &f.asSeen[i]
		if m.vacant() {
			continue
		}
		if m.Member.Revision != f.targetRevision {
			return true
		}
		up = up || m.wanted
	}
	return f.paused() && !up
}

// node finds a node of the world; nil: no such record.
func (f *facts) node(name spec.NodeName) *Node { return f.judge.Node(name) }

// ordered: members start and stop one at a time.
func (f *facts) ordered() bool { return f.world.Set.Spec.PodManagementPolicy != spec.Parallel }

// unreadable says why the records do not allow any decision; "": they do. One of the set
// cannot be read, or the store is of an older epoch than a life it knows.
func (f *facts) unreadable() string {
	switch {
	case len(f.world.Broken) > 0:
		return fmt.Sprintf("the stored record %s cannot be read; nothing is done for the set until it is repaired", f.world.Broken[0])
	case f.world.Epoch < 1:
		return "the store has no epoch; nothing is done until it has one"
	}
	for i := range f.asSeen {
		m := &f.asSeen[i]
		if last := m.lastToken(); last.Epoch > f.world.Epoch {
			return fmt.Sprintf("%s had a life of epoch %d, but the store is at epoch %d", m.ID.MemberName(), last.Epoch, f.world.Epoch)
		}
	}
	return ""
}
