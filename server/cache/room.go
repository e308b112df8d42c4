package cache

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// weight is what a life asks of its node, as it was counted.
type weight struct {
	node                   spec.NodeName
	cpuMillis, memoryBytes int64
	hugePages              scalar.HugePages
	terms                  bool // it has terms about members
}

// weigh counts what the life in l asks of its node in place of what was counted before.
func (s *state) weigh(t *setState, l *slot) {
	var now weight
	if m := l.member.record; m != nil {
		now.node = m.Node
		if r := t.revisions[m.Revision].record; r != nil {
			of := func(h spec.RevisionHash) *spec.MemberSpec {
				if r := t.revisions[h].record; r != nil {
					return &r.TemplateOf(m.ID.Ordinal).Spec
				}
				return nil
			}
			now.cpuMillis, now.memoryBytes = m.Requests(of)
			t := of(m.Revision)
			now.hugePages = t.HugePages()
			now.terms = t.HasMemberTerms()
		}
	}
	if now == l.weight {
		return
	}
	s.roomFreed = s.roomFreed || l.weight.node != ""
	s.load(t.ref, l.weight, -1)
	s.load(t.ref, now, 1)
	s.movedNodes[l.weight.node], s.movedNodes[now.node] = true, true
	l.weight = now
}

func (s *state) load(ref spec.SetRef, w weight, sign int64) {
	if w.node == "" {
		return
	}
	if w.terms {
		s.withTerms[ref] += int(sign)
	}
	if s.withTerms[ref] == 0 {
		delete(s.withTerms, ref)
	}
	n := s.node(w.node)
	n.cpuMillis += sign * w.cpuMillis
	n.memoryBytes += sign * w.memoryBytes
	n.hugePages = n.hugePages.Plus(w.hugePages, sign)
	s.dropIdleNode(w.node)
}

// reweigh counts all lives of a set again, whose revision came or changed.
func (s *state) reweigh(t *setState) {
	for _, l := range t.slots {
		s.weigh(t, l)
	}
}

// nodesFor are the nodes as the planner of t sees them: with their residents where it
// matters to this set which they are.
func (s *state) nodesFor(t *setState) []plan.Node {
	if t.set.record == nil || !t.constrained() && !s.named(t.set.record) {
		return s.nodeList
	}
	return s.nodesWithResidents()
}

// named reports whether a life may have a term about members that names those of the set.
func (s *state) named(set *records.Set) bool {
	for ref := range s.withTerms {
		for _, r := range s.sets[ref].byNumber {
			if r.Template.Spec.MayName(ref.Namespace, set.Ref.Namespace, set.Spec.Template.Metadata.Labels) {
				return true
			}
		}
	}
	return false
}

func (s *state) nodesWithResidents() []plan.Node {
	list := make([]plan.Node, len(s.nodeList))
	for i, n := range s.nodeList {
		members := View{state: s}.MembersOn(n.Node.Name)
		n.Residents = make([]plan.Resident, 0, len(members))
		for _, id := range members {
			n.Residents = append(n.Residents, s.resident(id))
		}
		list[i] = n
	}
	return list
}

func (t *setState) constrained() bool {
	for _, r := range t.byNumber {
		if r.Template.Spec.Constrained() {
			return true
		}
	}
	return t.set.record.Spec.Template.Spec.Constrained()
}

// resident has the labels of its set's own spec, which hold at once; of a set that is
// gone, or of an older kind, those of the revision it runs.
func (s *state) resident(id spec.Identity) plan.Resident {
	r, t, l := plan.Resident{ID: id}, s.sets[id.Ref()], s.lookup(id)
	if t == nil || l.member.record == nil {
		return r
	}
	m := l.member.record
	r.Revision, r.Stopping = m.Revision, m.Goal == records.GoalStop
	rev := t.revisions[m.Revision].record
	if rev != nil {
		r.Labels = rev.Template.Metadata.Labels
	}
	if t.set.record != nil {
		r.Labels = t.set.record.Spec.Template.Metadata.Labels
	}
	if rev != nil {
		r = r.Running(&rev.Template.Spec)
	}
	return r
}
