package plan

import "github.com/stead-project/stead/records"

// status counts what stands after the actions of this step (SEMANTICS, Status
// fields): a member that is told to stop counts only as terminating.
func (s *step) status() records.SetStatus {
	st := records.SetStatus{
		ObservedGeneration: s.w.Set.Generation,
		CurrentRevision:    s.current, CurrentCompleted: s.completed, UpdateRevision: s.update,
		Bootstrapped: s.w.Bootstrapped, ServiceName: s.service(),
	}
	if s.w.Status != nil {
		st.CollisionCount = s.w.Status.CollisionCount
	}
	if s.giveUp || s.rolledBack() {
		st.RolledBackFrom = s.update
	}
	for i := range s.seats {
		s.count(&st, &s.seats[i])
	}
	st.Conditions = s.conditions()
	if s.w.Table {
		for i := range s.seats {
			if t := &s.seats[i]; t.member != nil || s.inRange(t) {
				st.Members = append(st.Members, s.row(t))
			}
		}
	}
	return st
}

func (s *step) count(st *records.SetStatus, t *seat) {
	if t.stopping() {
		st.TerminatingReplicas++
		return
	}
	if t.vacant() {
		return
	}
	st.Replicas++
	st.ReadyReplicas += one(t.ready)
	st.AvailableReplicas += one(t.available)
	st.CurrentReplicas += one(t.member.Revision == s.current)
	if t.member.Revision == s.update {
		st.UpdatedReplicas++
		st.UpdatedReadyReplicas += one(t.ready)
		st.UpdatedAvailableReplicas += one(t.available)
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// row is the member's line in the table.
func (s *step) row(t *seat) records.MemberStatus {
	m := records.MemberStatus{Name: t.id.MemberName(), Ordinal: t.id.Ordinal, Blocked: s.blocked[t.id.Ordinal]}
	if t.identity != nil {
		m.Address, m.Revision = t.identity.Address, t.identity.Due
	}
	if t.member == nil {
		return m
	}
	m.Node, m.Address, m.Revision = t.member.Node, t.member.Address, t.member.Revision
	m.Token, m.Goal, m.BeganAt = t.member.Token.String(), t.member.Goal, t.member.BeganAt
	m.Phase, m.Ready = records.PhaseAssigned, t.ready
	if r := t.report; r != nil {
		m.Phase, m.Cause, m.Message = r.Phase, r.Cause, r.Message
		for _, c := range r.Containers {
			m.Restarts += c.Restarts
		}
	}
	return m
}
