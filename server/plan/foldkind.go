package plan

import (
	"iter"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// kind is how a step sees a member.
type kind int

const (
	listed  kind = iota // it matters by itself
	up                  // wanted, and available
	surplus             // not wanted, and available
	vacant              // wanted, and without a life
	gone                // not wanted, and without a life
)

// foldedMember is a member as a Fold keeps it.
type foldedMember struct {
	kind         kind
	revision     spec.RevisionHash // as of Folded
	node         spec.NodeName     // of its life; "": it has none
	volumes      []spec.NodeName   // nodes beside that one which have volumes of it
	token        spec.Token
	initialReady bool
}

// classifier finds the kind of a member by the facts and rules of a step.
type classifier struct{ volumes }

func newClassifier(w World) classifier {
	w.Slots = nil
	return classifier{volumes{explainer{rollout{&draft{facts: newSetFacts(w)}}}}}
}

// classify folds a member of which no rule would do or say anything but what it does or says of
// others of its kind.
func (c classifier) classify(slot Slot) foldedMember {
	m := c.seen(slot)
	t := &memberState{memberFacts: &m}
	out := foldedMember{kind: c.kindOf(t), initialReady: c.initial().Has(m.ID.Ordinal) && m.readyUnder(c.world.Set)}
	if m.Member != nil {
		out.node, out.token, out.revision = m.Member.Node, m.Member.Token, m.Member.Revision
	} else if m.Identity != nil {
		out.revision = m.Identity.AvailableOn
	}
	for _, v := range slot.Volumes {
		if !v.Shared && v.Node != out.node {
			out.volumes = append(out.volumes, v.Node)
		}
	}
	return out
}

func (c classifier) kindOf(t *memberState) kind {
	if len(t.Asked)+len(t.Unknown) > 0 || t.Request != nil || t.Move != nil || t.MoveAsked != nil || t.owed() || t.Member != nil && (t.Member.Hook != nil || t.Member.Change != nil || t.lost || t.done != nil) || t.lastToken().Epoch > c.world.Epoch {
		return listed
	}
	if t.Report != nil && (t.Report.Claim.Leads && c.leaderLast() || t.Report.Claim.Busy != "") {
		return listed
	}
	for _, v := range t.Volumes {
		if v.Fate.Ordered() || !t.wanted && t.Member == nil && v.Fate != records.FateKeep {
			return listed
		}
	}
	switch {
	case len(t.Volumes) > 0 && t.Member == nil && !c.world.Bootstrapped: // it may be of an earlier set
	case t.wanted && len(c.toKeep(t)) > 0, len(c.fatesToRecord(t)) > 0:
	case t.Member == nil && !t.wanted:
		return gone
	case t.Member == nil && c.ordered():
		return vacant
	case t.Member == nil:
	case !t.Available || c.leaving(t) != nil || c.drainMovesVolumes(t) || t.Identity == nil || c.firstReady(t) || Service(c.world.Set, "", t.Member) != c.world.Set.Service():
	case t.wanted:
		return up
	case c.ordered():
		return surplus
	}
	return listed
}

// readyUnder: the member was ready under the set.
func (m *memberFacts) readyUnder(set *records.Set) bool {
	return m.Identity != nil && m.Identity.ReadyOnce == set.UID
}

// empty: nothing is stored of the identity.
func (slot *Slot) empty() bool {
	return slot.Identity == nil && slot.Member == nil && slot.Move == nil && slot.MoveAsked == nil && len(slot.Volumes)+len(slot.Said)+len(slot.Left)+len(slot.Asked)+len(slot.Strays)+len(slot.Unknown) == 0
}

// slotsOf are the slots of a set, and in their order those without any record of ordinals in reach.
func slotsOf(reach spec.OrdinalRange, ref spec.SetRef, slots []Slot) iter.Seq[Slot] {
	return func(yield func(Slot) bool) {
		next := reach.Next(0)
		fill := func(until int) bool {
			for ; next < min(until, reach.End); next = reach.Next(next + 1) {
				if !yield(Slot{ID: spec.Identity{Namespace: ref.Namespace, Set: ref.Name, Ordinal: next}}) {
					return false
				}
			}
			return true
		}
		for _, slot := range slots {
			if !fill(slot.ID.Ordinal) {
				return
			}
			if slot.ID.Ordinal == next {
				next = reach.Next(next + 1)
			}
			if !yield(slot) {
				return
			}
		}
		fill(reach.End)
	}
}

// total adds up counts; none of nil.
func total[K comparable](counts map[K]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// foldedVacant is how many members without a life are left out of the world.
func (f *facts) foldedVacant() int {
	if f.world.Folded == nil {
		return 0
	}
	return total(f.world.Folded.vacant)
}

// countOthers says of each kind how many wait as its listed member does. A kind whose member does not wait, or waits for what
// may need a person, is looked at one by one.
func (s step) countOthers() {
	c := s.world.Folded
	if c == nil {
		return
	}
	if s.firstBusy != nil { // it may hold members that are left out
		s.plan.Unfold = true
		return
	}
	for _, kind := range []struct{ like, others int }{
		{c.likeVacant, total(c.vacant)}, {c.likeSurplus, total(c.surplus)}, {c.likeQueued, c.queued},
	} {
		if kind.others == 0 {
			continue
		}
		i := slices.IndexFunc(s.plan.Blocked, func(b Blocked) bool { return b.ID.Ordinal == kind.like })
		if i < 0 || !s.plan.Blocked[i].Reason.ComesByItself() {
			s.plan.Unfold = true
			return
		}
		s.plan.Blocked[i].Others = kind.others
	}
}

// countFolded adds the members that are left out of the world.
func (r reporter) countFolded(st *records.SetStatus, current spec.RevisionHash) {
	for _, lives := range []map[spec.RevisionHash]int{r.world.Folded.up, r.world.Folded.surplus} {
		for revision, n := range lives {
			st.Replicas, st.ReadyReplicas, st.AvailableReplicas = st.Replicas+n, st.ReadyReplicas+n, st.AvailableReplicas+n
			if revision == current {
				st.CurrentReplicas += n
			}
			if revision == st.UpdateRevision {
				st.UpdatedReplicas, st.UpdatedReadyReplicas, st.UpdatedAvailableReplicas = st.UpdatedReplicas+n, st.UpdatedReadyReplicas+n, st.UpdatedAvailableReplicas+n
			}
		}
	}
}
