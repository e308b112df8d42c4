package plan

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// reporter writes the status: how the set is after the actions of a step.
type reporter struct {
	rollout
	blocked map[int]string // what each member that waits waits for, by ordinal; only with World.Table
}

func (s step) reporter() reporter {
	r := reporter{rollout: s.rollout}
	if s.world.Table {
		r.blocked = make(map[int]string, len(s.plan.Blocked))
		for i := range s.plan.Blocked {
			r.blocked[s.plan.Blocked[i].ID.Ordinal] = s.plan.Blocked[i].Text
		}
	}
	return r
}

// status counts what stands after the actions of this step (SEMANTICS, Status
// fields): a member that is told to stop counts only as terminating.
func (r reporter) status() records.SetStatus {
	st := records.SetStatus{
		ObservedGeneration: r.world.Set.Generation,
		CurrentRevision:    r.currentRevision(), CurrentCompleted: r.currentProven(), UpdateRevision: r.update,
		Bootstrapped: r.bootstrapped, ServiceName: r.service(),
	}
	if r.world.Status != nil {
		st.CollisionCount = r.world.Status.CollisionCount
	}
	if r.giveUp || r.rolledBack() {
		st.RolledBackFrom = r.update
	}
	current := r.currentRevision()
	for i := range r.members {
		count(&st, &r.members[i], current)
	}
	st.Conditions = r.conditions()
	if r.world.Table {
		for i := range r.members {
			if t := &r.members[i]; t.member != nil || t.wanted {
				st.Members = append(st.Members, r.row(t))
			}
		}
	}
	return st
}

// count adds a member. current and st.UpdateRevision are the revisions that are counted.
func count(st *records.SetStatus, t *memberState, current spec.RevisionHash) {
	if t.stopping() {
		st.TerminatingReplicas++
		return
	}
	if t.vacant() {
		return
	}
	st.Replicas++
	st.ReadyReplicas += one(t.Ready)
	st.AvailableReplicas += one(t.Available)
	st.CurrentReplicas += one(t.member.Revision == current)
	if t.member.Revision == st.UpdateRevision {
		st.UpdatedReplicas++
		st.UpdatedReadyReplicas += one(t.Ready)
		st.UpdatedAvailableReplicas += one(t.Available)
	}
}

// row is the member's line in the table.
func (r reporter) row(t *memberState) records.MemberStatus {
	m := records.MemberStatus{Name: t.id.MemberName(), Ordinal: t.id.Ordinal, Blocked: r.blocked[t.id.Ordinal]}
	if t.identity != nil {
		m.Address, m.Revision = t.identity.Address, t.identity.Due
	}
	if t.member == nil {
		return m
	}
	m.Node, m.Address, m.Revision = t.member.Node, t.member.Address, t.member.Revision
	m.Token, m.Goal, m.BeganAt = t.member.Token.String(), t.member.Goal, t.member.BeganAt
	m.Phase, m.Ready = records.PhaseAssigned, t.Ready
	if last := t.report; last != nil {
		m.Phase, m.Cause, m.Message = last.Phase, last.Cause, last.Message
		for _, c := range last.Containers {
			m.Restarts += c.Restarts
		}
	}
	return m
}
