package plan

import (
	"cmp"
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/changes"
)

// changeFacts is what is known of changes in place of a life (SEMANTICS Part 3, In place).
type changeFacts struct {
	// changing: one was ordered, and the node has not said yet that it is done. Until then the member does not count as available.
	changing bool
	// done is what the node says that the containers run, of which the record does not tell yet; nil: nothing.
	done *inplace.ChangeResult
	// refused is why the order cannot be done in this life; "": nobody said so. The member is as it was, or partly as ordered.
	refused string
	// lost: the newest order is of a history of the store that is lost, and the node has not said that it is done.
	lost bool
}

// changeOf is what the records of a life tell of its changes.
func (f *facts) changeOf(m *records.Member, r *records.Report) (c changeFacts) {
	if r != nil && r.Token == m.Token {
		known := m.Changed
		if m.Change != nil && m.Change.ID.Compare(known) > 0 {
			known = m.Change.ID
		}
		if r.Change.ID.Compare(known) > 0 {
			c.lost = !r.Change.Done || f.revision(r.Change.Revision) == nil
			if !c.lost {
				c.done = &r.Change
			}
			return c
		}
	}
	if m.Change == nil {
		return c
	}
	switch result := m.ChangeResult(r); {
	case result.Done:
		c.done = &result
	case result.Refused != "":
		c.refused = fmt.Sprintf("node %s refused that: %s", m.Node, result.Refused)
	case f.node(m.Node) != nil && f.node(m.Node).Facts != nil && !f.takesChanges(m.Node):
		c.refused = fmt.Sprintf("the agent of node %s is too old for that now", m.Node)
	default:
		c.changing = true
	}
	return c
}

// takesChanges: the node's agent carries such orders out.
func (f *facts) takesChanges(name spec.NodeName) bool {
	n := f.node(name)
	return n != nil && n.Facts != nil && n.Facts.ChangesInPlace()
}

// heads is the revision that the life runs, or on whose way it is; "": what its containers run is of no revision that is known.
func (m *memberFacts) heads() spec.RevisionHash {
	if m.lost || m.refused != "" {
		return ""
	}
	return m.Member.Runs()
}

// afterChange: the life is to be changed in place.
func (m memberFacts) afterChange(a *ChangeInPlace) *memberFacts {
	member := a.Record(*m.Member)
	m.Member, m.Identity, m.Available = &member, &a.Identity, false
	m.changeFacts = changeFacts{changing: true}
	return &m
}

// afterPromotion: the life counts as one of another revision.
func (m memberFacts) afterPromotion(a *Promote) *memberFacts {
	member := a.Record(*m.Member)
	m.Member, m.Identity, m.changeFacts = &member, &a.Identity, changeFacts{}
	return &m
}

// changeTo is what a life changes in place to run a revision, and why it needs a new one instead; "": it does not.
func (f *facts) changeTo(m *memberFacts, to spec.RevisionHash) (c changes.InPlace, why string) {
	from := f.templateOf(m.Member.Revision, m.ID.Ordinal)
	target := f.templateOf(to, m.ID.Ordinal)
	if from == nil || target == nil {
		return c, fmt.Sprintf("revision %s is not known", cmp.Or(m.Member.Revision, to))
	}
	switch { // what was begun is taken back, too
	case m.lost:
		c = changes.InPlace{Resources: true, Image: true}
	case m.Member.Change != nil:
		if begun := f.templateOf(m.Member.Change.Revision, m.ID.Ordinal); begun != nil {
			c, _, _ = from.ChangeInPlace(begun)
		} else {
			c = changes.InPlace{Resources: true, Image: true}
		}
	}
	return f.world.Set.ChangeInPlace(from, target, c)
}
