package plan

import (
	"cmp"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// Tell is what became of the set since told: the changes that its history is to be
// given next, without number and time. They are facts that stand in the store, not
// what this step will do; whoever writes them does so before, or together with, what
// takes such a fact away. The order is that of one look: who left, what is wanted of
// the set, who began, is ready or is not, and last that an update ended. told then
// includes them; its members must not be shared.
func Tell(w World, told *records.Recorded) []records.Change {
	if w.Set == nil || len(w.Broken) > 0 {
		return nil // a record that cannot be read is no proof that somebody left
	}
	t := teller{w: w, told: told, judge: proof.NewJudge(w.Nodes, w.Epoch)}
	t.left()
	t.wanted()
	for i := range w.Slots {
		if w.Slots[i].Member != nil {
			t.life(&w.Slots[i])
		}
	}
	if told.Updating && t.updated() {
		t.add(records.Change{Kind: records.ChangeUpdateEnded, Ordinal: records.NoOrdinal, Revision: t.aim()})
	}
	return t.changes
}

// Quiet is what a history begins with: that a set has its first template and number
// of members is no change.
func Quiet(w World) records.Recorded {
	return records.Recorded{Replicas: w.Set.Replicas(), Update: w.TemplateHash}
}

// Forgotten drops from told the members that are gone, also from the store: nothing
// of them can be told again.
func Forgotten(w World, told *records.Recorded) {
	t := teller{w: w}
	told.Members = slices.DeleteFunc(told.Members, func(m records.RecordedMember) bool {
		return m.Gone && t.slot(m.Ordinal).Member == nil
	})
}

// teller is one run of Tell.
type teller struct {
	w       World
	told    *records.Recorded
	judge   *proof.Judge
	changes []records.Change
}

func (t *teller) add(c records.Change) {
	c.Replicas = t.w.Set.Replicas()
	t.told.Add(&c)
	t.changes = append(t.changes, c)
}

// left tells of the lives that are over.
func (t *teller) left() {
	for _, m := range slices.Clone(t.told.Members) {
		if m.Left {
			continue
		}
		s := t.slot(m.Ordinal)
		switch {
		case s.Member == nil: // forgotten, which only a surplus member is
			t.addLeft(s.ID, m, t.surplus())
		case s.Member.Token.String() != m.Token:
			t.addLeft(s.ID, m, begunFor(s.Member.Reason))
		case t.over(s):
			t.addLeft(s.ID, m, s.endReason())
		}
	}
}

// over: the life is proven over, by a report or by its deadline.
func (t *teller) over(s *Slot) bool { return t.judge.Over(s.Member, s.Report) }

// surplus is why a member that is not wanted any more was ended.
func (t *teller) surplus() records.Reason {
	if t.w.Set.Deleting {
		return records.ReasonDelete
	}
	return records.ReasonScaleDown
}

func (t *teller) addLeft(id spec.Identity, m records.RecordedMember, reason records.Reason) {
	t.add(records.Change{
		Kind: records.ChangeLeft, Member: id.MemberName(), Ordinal: id.Ordinal,
		Token: m.Token, Reason: string(reason), Revision: m.Revision,
	})
}

// begunFor is why a life ended after which another was begun for this reason.
func begunFor(r records.Reason) records.Reason {
	if r == records.ReasonUpdate || r == records.ReasonRestart {
		return r
	}
	return records.ReasonFailed
}

// slot is that of an ordinal, without any record if there is none.
func (t *teller) slot(ordinal int) *Slot {
	i, ok := slices.BinarySearchFunc(t.w.Slots, ordinal, func(s Slot, o int) int { return cmp.Compare(s.ID.Ordinal, o) })
	if !ok {
		return &Slot{ID: spec.Identity{Namespace: t.w.Set.Ref.Namespace, Set: t.w.Set.Ref.Name, Ordinal: ordinal}}
	}
	return &t.w.Slots[i]
}

// endReason is why a life that is over ended: as it was told to, or by itself.
func (s *Slot) endReason() records.Reason {
	return cmp.Or(s.Member.StopReason, records.ReasonFailed)
}

// wanted tells what a person changed of the set.
func (t *teller) wanted() {
	if t.told.Replicas != t.w.Set.Replicas() && !t.w.Set.Deleting {
		t.add(records.Change{Kind: records.ChangeReplicas, Ordinal: records.NoOrdinal})
	}
	if aim := t.aim(); t.told.Update != aim {
		c := records.Change{Kind: records.ChangeUpdateBegan, Ordinal: records.NoOrdinal, Revision: aim}
		if aim != t.w.TemplateHash {
			c.Reason = spec.OnFailureRollback
		}
		t.add(c)
	}
}

// aim is the revision where members go: the template's, or the one completed last when
// that was given up.
func (t *teller) aim() spec.RevisionHash {
	if st := t.w.Status; st != nil && st.RolledBackFrom == t.w.TemplateHash {
		return st.CurrentRevision
	}
	return t.w.TemplateHash
}

// updated: every member was available on aim, as the stored status says.
func (t *teller) updated() bool {
	st, n := t.w.Status, t.w.Set.Replicas()
	if st == nil || !st.CurrentCompleted || st.CurrentRevision != t.aim() {
		return false
	}
	return t.aim() == t.w.TemplateHash || st.CurrentReplicas == n && st.AvailableReplicas == n
}

// life tells of a life's begin, and whether the member is ready.
func (t *teller) life(s *Slot) {
	m := s.Member
	c := records.Change{
		Kind: records.ChangeJoined, Member: s.ID.MemberName(), Ordinal: s.ID.Ordinal,
		Token: m.Token.String(), Reason: string(m.Reason), Revision: m.Revision,
	}
	i, known := t.told.Find(s.ID.Ordinal)
	begun := !known || t.told.Members[i].Token != c.Token
	if begun {
		if known && !t.told.Members[i].Gone {
			c.Kind = records.ChangeReturned
		}
		t.add(c)
		i, _ = t.told.Find(s.ID.Ordinal)
	}
	now := t.told.Members[i]
	switch {
	case t.over(s):
		if begun {
			t.addLeft(s.ID, now, s.endReason())
		}
	case now.Left: // by its deadline; its node is back, and says so itself soon
	case t.judge.EffectiveReady(s.Member, s.Report) == now.Ready:
	case now.Ready:
		c.Kind, c.Reason = records.ChangeNotReady, t.unready(s)
		t.add(c)
	default:
		c.Kind, c.Reason = records.ChangeReady, ""
		t.add(c)
	}
}

// unready is the word for why a member that was ready is not.
func (t *teller) unready(s *Slot) string {
	switch {
	case s.Member.Goal == records.GoalStop:
		return string(s.Member.StopReason)
	case s.Report != nil && !s.Report.Ready:
		return string(cmp.Or(s.Report.Cause, spec.CauseNotReady))
	}
	return string(spec.BlockedNodeSilent)
}
