package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// The conditions and the reasons of theirs that are not those of Blocked.
const (
	ConditionAvailable   = "Available"
	ConditionProgressing = "Progressing"
	ConditionStalled     = "Stalled"
	ConditionDegraded    = "Degraded"

	reasonAll        = "AllAvailable"
	reasonNotAll     = "NotAllAvailable"
	reasonComplete   = "Complete"
	reasonWorking    = "Working"
	reasonDeleting   = "Deleting"
	reasonPart       = "Partitioned" // what is at or above the partition is done
	reasonOnDelete   = "OnDelete"    // members move on when they are restarted
	reasonDeadline   = "ProgressDeadlineExceeded"
	reasonRolledBack = "RolledBack" // the template was given up after the deadline
	reasonWell       = "AsExpected"
)

// conditions are Available, Progressing, Stalled and Degraded, in this order.
func (s *step) conditions() []records.Condition {
	return []records.Condition{s.availability(), s.progress(), s.standstill(), s.degraded()}
}

// availability: every member that is wanted is available.
func (s *step) availability() records.Condition {
	want, have := len(s.wanted), 0
	for _, i := range s.wanted {
		have += one(s.seats[i].available)
	}
	c := records.Condition{Type: ConditionAvailable, Status: "True", Reason: reasonAll, Message: fmt.Sprintf("%d of %d members are available", have, want)}
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
func (s *step) progress() records.Condition {
	c := records.Condition{Type: ConditionProgressing, Status: "False", Reason: reasonComplete}
	if s.w.Set.Orphaned && !s.w.Set.Deleting {
		c.Reason, c.Message = string(spec.BlockedOrphaned), "the members run on, and nothing is done for them: "+orphanedText
		return c
	}
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
		if !b.Reason.ComesByItself() {
			c.Status, c.Reason, say = "False", string(b.Reason), b
			break
		}
	}
	c.Message = say.ID.MemberName() + ": " + say.Text
	return c
}

// halfway says that nothing is under way though not all run the update revision.
func (s *step) halfway(c *records.Condition) {
	if s.w.Set.Deleting || s.current == s.update {
		return
	}
	switch {
	case s.rolledBack():
		c.Reason, c.Message = reasonRolledBack, s.backText()
	case s.onDelete():
		c.Reason, c.Message = reasonOnDelete, fmt.Sprintf("members go to revision %s when they are restarted", s.update)
	default:
		c.Reason, c.Message = reasonPart, fmt.Sprintf("members below ordinal %d keep the revision %s", s.partition(), s.current)
	}
}

func (s *step) backText() string {
	return fmt.Sprintf("revision %s did not become available in time; the members go back to %s until the template changes", s.update, s.current)
}

// standstill: no member became available for too long (rule 9).
func (s *step) standstill() records.Condition {
	if s.stalled == "" {
		return records.Condition{Type: ConditionStalled, Status: "False", Reason: reasonWell}
	}
	return records.Condition{Type: ConditionStalled, Status: "True", Reason: reasonDeadline, Message: s.stalled}
}

// degraded: a member that is wanted lacks something that does not come by itself, or
// was ready in this very life and is not. Who starts, or was taken down to be replaced,
// is as expected.
func (s *step) degraded() records.Condition {
	c := records.Condition{Type: ConditionDegraded, Status: "False", Reason: reasonWell}
	for i := range s.plan.Blocked {
		b := &s.plan.Blocked[i]
		t := s.seatOf(b.ID.Ordinal)
		lost := !t.vacant() && !t.stopping() && !t.stale && !t.ready && t.identity != nil && t.identity.ReadyToken == t.member.Token
		if !s.inRange(t) || t.available || b.Reason.ComesByItself() && !lost {
			continue
		}
		c.Status, c.Reason, c.Message = "True", string(b.Reason), b.ID.MemberName()+": "+b.Text
		return c
	}
	return c
}
