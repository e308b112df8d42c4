package plan

import (
	"fmt"

	"github.com/stead-project/stead/spec"
)

// The conditions and the reasons of theirs that are not those of Blocked.
const (
	ConditionAvailable   = "Available"
	ConditionProgressing = "Progressing"

	reasonAll      = "AllAvailable"
	reasonNotAll   = "NotAllAvailable"
	reasonComplete = "Complete"
	reasonWorking  = "Working"
	reasonDeleting = "Deleting"
	reasonPart     = "Partitioned" // what is at or above the partition is done
	reasonOnDelete = "OnDelete"    // members move on when they are restarted
)

// status counts what stands after the actions of this step (SEMANTICS, Status
// fields): a member that is told to stop counts only as terminating.
func (s *step) status() spec.SetStatus {
	st := spec.SetStatus{
		ObservedGeneration: s.w.Set.Generation,
		CurrentRevision:    s.current, CurrentCompleted: s.completed, UpdateRevision: s.update,
		Bootstrapped: s.w.Bootstrapped,
	}
	if s.w.Status != nil {
		st.CollisionCount = s.w.Status.CollisionCount
	}
	for i := range s.seats {
		s.count(&st, &s.seats[i])
	}
	st.Conditions = []spec.Condition{s.availability(), s.progress()}
	if s.w.Table {
		for i := range s.seats {
			if t := &s.seats[i]; t.member != nil || s.inRange(t) {
				st.Members = append(st.Members, s.row(t))
			}
		}
	}
	return st
}

func (s *step) count(st *spec.SetStatus, t *seat) {
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

// availability: every member that is wanted is available.
func (s *step) availability() spec.Condition {
	want, have := s.hi-s.lo, 0
	for _, i := range s.wanted {
		have += one(s.seats[i].available)
	}
	c := spec.Condition{Type: ConditionAvailable, Status: "True", Reason: reasonAll, Message: fmt.Sprintf("%d of %d members are available", have, want)}
	if have < want {
		c.Status, c.Reason = "False", reasonNotAll
	}
	if s.w.Set.Deleting {
		c.Status, c.Reason, c.Message = "False", reasonDeleting, "the set is being deleted"
	}
	return c
}

// progress: True while work is under way, False when it is complete or when the
// first member that waits does so for something that does not come by itself.
func (s *step) progress() spec.Condition {
	c := spec.Condition{Type: ConditionProgressing, Status: "False", Reason: reasonComplete}
	if s.w.Set.Deleting {
		c.Status, c.Reason = "True", reasonDeleting
	}
	if len(s.plan.Blocked) == 0 {
		s.halfway(&c)
		return c
	}
	say := s.plan.Blocked[0]
	if !s.w.Set.Deleting {
		c.Status, c.Reason = "True", reasonWorking
	}
	for _, b := range s.plan.Blocked {
		if !UnderWay(b.Reason) {
			c.Status, c.Reason, say = "False", b.Reason, b
			break
		}
	}
	c.Message = say.ID.MemberName() + ": " + say.Text
	return c
}

// halfway says that nothing is under way though not all run the update revision.
func (s *step) halfway(c *spec.Condition) {
	if s.w.Set.Deleting || s.current == s.update {
		return
	}
	if c.Reason, c.Message = reasonPart, fmt.Sprintf("members below ordinal %d keep the revision %s", s.lo+s.partition(), s.current); s.onDelete() {
		c.Reason, c.Message = reasonOnDelete, fmt.Sprintf("members go to revision %s when they are restarted", s.update)
	}
}

// UnderWay reports whether what a Blocked reason waits for comes by itself; anything
// else may need a person.
func UnderWay(reason string) bool {
	switch reason {
	case BlockedTurn, BlockedPredecessor, BlockedSuccessor, BlockedSurvivors, BlockedStarting, BlockedNotReady, BlockedNotYet, BlockedStopping, BlockedReclaiming:
		return true
	}
	return false
}

// row is the member's line in the table.
func (s *step) row(t *seat) spec.MemberStatus {
	m := spec.MemberStatus{Name: t.id.MemberName(), Ordinal: t.id.Ordinal, Blocked: s.blocked[t.id.Ordinal]}
	if t.identity != nil {
		m.Address, m.Revision = t.identity.Address, t.identity.Due
	}
	if t.member == nil {
		return m
	}
	m.Node, m.Address, m.Revision = t.member.Node, t.member.Address, t.member.Revision
	m.Token, m.Goal, m.BeganAt = t.member.Token.String(), t.member.Goal, t.member.BeganAt
	m.Phase, m.Ready = spec.PhaseAssigned, t.ready
	if r := t.report; r != nil {
		m.Phase, m.Cause, m.Message = r.Phase, r.Cause, r.Message
		for _, c := range r.Containers {
			m.Restarts += c.Restarts
		}
	}
	return m
}
