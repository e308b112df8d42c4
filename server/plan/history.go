package plan

import (
	"cmp"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// DiffHistory is what became of the set since recorded: the changes that its history is to be given
// next, without number and time. They are facts that are in the store, not what this step will do;
// they are written before, or together with, what takes such a fact away. The order: who left,
// what is wanted of the set, who started, is ready or is not, and last that an update ended.
// recorded then includes them; its members must not be shared. Of members only those of these
// ordinals, ascending, are compared: of the others the caller knows that nothing is new. nil: all.
func DiffHistory(w World, recorded *records.Recorded, only []int) []records.Change {
	if w.Set == nil || len(w.Broken) > 0 {
		return nil // a record that cannot be read is no proof that somebody left
	}
	d := historyDiff{w: w, recorded: recorded, judge: proof.NewJudge(w.Nodes, w.Epoch)}
	if only == nil {
		for i := range w.Slots {
			only = append(only, w.Slots[i].ID.Ordinal)
		}
		for _, m := range recorded.Members {
			only = append(only, m.Ordinal)
		}
		slices.Sort(only)
		only = slices.Compact(only)
	}
	d.left(only)
	d.wanted()
	for _, ordinal := range only {
		if s := d.slot(ordinal); s.Member != nil {
			d.life(s)
		}
	}
	if recorded.Updating && d.updated() {
		d.add(records.Change{Kind: records.ChangeUpdateEnded, Ordinal: records.NoOrdinal, Revision: d.targetRevision()})
	}
	return d.changes
}

// InitialHistory is what a history begins with: that a set has its first template and number
// of members is no change.
func InitialHistory(w World) records.Recorded {
	return records.Recorded{Replicas: w.Set.Replicas(), Update: w.TemplateHash}
}

// CompactHistory drops from recorded the members that are gone, also from the store: nothing
// of them can be recorded again.
func CompactHistory(w World, recorded *records.Recorded) {
	d := historyDiff{w: w}
	recorded.Members = slices.DeleteFunc(recorded.Members, func(m records.RecordedMember) bool {
		return m.Gone && d.slot(m.Ordinal).Member == nil
	})
}

// historyDiff is one run of DiffHistory.
type historyDiff struct {
	w        World
	recorded *records.Recorded
	judge    *proof.Judge
	changes  []records.Change
}

func (d *historyDiff) add(c records.Change) {
	c.Replicas = d.w.Set.Replicas()
	d.recorded.Add(&c)
	d.changes = append(d.changes, c)
}

// left tells of the lives that are over.
func (d *historyDiff) left(ordinals []int) {
	for _, ordinal := range ordinals {
		i, known := d.recorded.Find(ordinal)
		if !known || d.recorded.Members[i].Left {
			continue
		}
		m, s := d.recorded.Members[i], d.slot(ordinal)
		switch {
		case s.Member == nil: // forgotten, which only a surplus member is
			d.addLeft(s.ID, m, d.surplus())
		case s.Member.Token.String() != m.Token:
			d.addLeft(s.ID, m, startedFor(s.Member.Reason))
		case d.judge.Over(s.Member, s.Report):
			d.addLeft(s.ID, m, s.endReason())
		}
	}
}

// surplus is why a member that is not wanted any more was ended.
func (d *historyDiff) surplus() records.Reason {
	if d.w.Set.Deleting {
		return records.ReasonDelete
	}
	return scaleDown(d.w.Set)
}

func (d *historyDiff) addLeft(id spec.Identity, m records.RecordedMember, reason records.Reason) {
	d.add(records.Change{
		Kind: records.ChangeLeft, Member: id.MemberName(), Ordinal: id.Ordinal,
		Token: m.Token, Reason: string(reason), Revision: m.Revision,
	})
}

// startedFor is why a life ended after which another was started for this reason.
func startedFor(r records.Reason) records.Reason {
	if r == records.ReasonUpdate || r == records.ReasonRestart {
		return r
	}
	return records.ReasonFailed
}

// slot is that of an ordinal, without any record if there is none.
func (d *historyDiff) slot(ordinal int) *Slot {
	if i, known := d.w.find(ordinal); known {
		return &d.w.Slots[i]
	}
	return &Slot{ID: spec.Identity{Namespace: d.w.Set.Ref.Namespace, Set: d.w.Set.Ref.Name, Ordinal: ordinal}}
}

// endReason is why a life that is over ended: as it was told to, or by itself.
func (slot *Slot) endReason() records.Reason {
	return cmp.Or(slot.Member.StopReason, records.ReasonFailed)
}

// wanted tells what a person changed of the set.
func (d *historyDiff) wanted() {
	if d.recorded.Replicas != d.w.Set.Replicas() && !d.w.Set.Deleting {
		d.add(records.Change{Kind: records.ChangeReplicas, Ordinal: records.NoOrdinal})
	}
	if aim := d.targetRevision(); d.recorded.Update != aim {
		c := records.Change{Kind: records.ChangeUpdateBegan, Ordinal: records.NoOrdinal, Revision: aim}
		if aim != d.w.TemplateHash {
			c.Reason = spec.OnFailureRollback
		}
		d.add(c)
	}
}

// targetRevision is the revision where members go: the template's, or the one completed last when
// that was given up.
func (d *historyDiff) targetRevision() spec.RevisionHash {
	if st := d.w.Status; st != nil && st.RolledBackFrom == d.w.TemplateHash {
		return st.CurrentRevision
	}
	return d.w.TemplateHash
}

// updated: every member was available on aim, as the stored status says.
func (d *historyDiff) updated() bool {
	st, n := d.w.Status, d.w.Set.Replicas()
	if st == nil || !st.CurrentCompleted || st.CurrentRevision != d.targetRevision() {
		return false
	}
	return d.targetRevision() == d.w.TemplateHash || st.CurrentReplicas == n && st.AvailableReplicas == n
}

// life tells of a life's begin, and whether the member is ready.
func (d *historyDiff) life(s *Slot) {
	m := s.Member
	c := records.Change{
		Kind: records.ChangeJoined, Member: s.ID.MemberName(), Ordinal: s.ID.Ordinal,
		Token: m.Token.String(), Reason: string(m.Reason), Revision: m.Revision,
	}
	i, known := d.recorded.Find(s.ID.Ordinal)
	started := !known || d.recorded.Members[i].Token != c.Token
	if started {
		if known && !d.recorded.Members[i].Gone {
			c.Kind = records.ChangeReturned
		}
		d.add(c)
		i, _ = d.recorded.Find(s.ID.Ordinal)
	}
	now := d.recorded.Members[i]
	switch {
	case d.judge.Over(s.Member, s.Report):
		if started {
			d.addLeft(s.ID, now, s.endReason())
		}
	case now.Left: // by its deadline; its node is back, and says so itself soon
	case d.judge.EffectiveReady(s.Member, s.Report) == now.Ready:
	case now.Ready:
		c.Kind, c.Reason = records.ChangeNotReady, d.unready(s)
		d.add(c)
	default:
		c.Kind, c.Reason = records.ChangeReady, ""
		d.add(c)
	}
}

// unready is the word for why a member that was ready is not.
func (d *historyDiff) unready(s *Slot) string {
	switch {
	case s.Member.Goal == records.GoalStop:
		return string(s.Member.StopReason)
	case s.Report != nil && !s.Report.Ready:
		return string(cmp.Or(s.Report.Cause, causes.NotReady))
	}
	return string(causes.BlockedNodeSilent)
}
