package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
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
func (r reporter) conditions() []records.Condition {
	return []records.Condition{r.availability(), r.progress(), r.standstill(), r.degraded()}
}

// availability: every member that is wanted is available.
func (r reporter) availability() records.Condition {
	want, have := len(r.inside), 0
	for _, i := range r.inside {
		have += one(r.members[i].Available)
	}
	c := records.Condition{Type: ConditionAvailable, Status: "True", Reason: reasonAll, Message: fmt.Sprintf("%d of %d members are available", have, want)}
	if have < want {
		c.Status, c.Reason = "False", reasonNotAll
	}
	if r.world.Set.Deleting {
		c.Status, c.Reason, c.Message = "False", reasonDeleting, "the set is being deleted"
	}
	return c
}

// progress: True while work is under way, False when it is complete or when the
// first member that waits does so for something that does not come by itself.
func (r reporter) progress() records.Condition {
	c := records.Condition{Type: ConditionProgressing, Status: "False", Reason: reasonComplete}
	if r.world.Set.Orphaned && !r.world.Set.Deleting {
		c.Reason, c.Message = string(causes.BlockedOrphaned), "members keep running, but are not managed: "+orphanedText
		return c
	}
	if r.world.Set.Deleting {
		c.Status, c.Reason = "True", reasonDeleting
	}
	if len(r.plan.Blocked) == 0 {
		r.halfway(&c)
		return c
	}
	say := r.plan.Blocked[0]
	if !r.world.Set.Deleting {
		c.Status, c.Reason = "True", reasonWorking
	}
	for _, b := range r.plan.Blocked {
		if !b.Reason.ComesByItself() {
			c.Status, c.Reason, say = "False", string(b.Reason), b
			break
		}
	}
	c.Message = say.ID.MemberName() + ": " + say.Text
	return c
}

// halfway says that nothing is under way though not all run the update revision.
func (r reporter) halfway(c *records.Condition) {
	if r.world.Set.Deleting || r.currentRevision() == r.update {
		return
	}
	switch {
	case r.rolledBack():
		c.Reason, c.Message = reasonRolledBack, r.backText()
	case r.onDelete():
		c.Reason, c.Message = reasonOnDelete, fmt.Sprintf("members go to revision %s when they are restarted", r.update)
	default:
		c.Reason, c.Message = reasonPart, fmt.Sprintf("members below ordinal %d keep the revision %s", r.partition(), r.currentRevision())
	}
}

func (f *facts) backText() string {
	return fmt.Sprintf("revision %s did not become available in time; the members go back to %s until the template changes", f.update, f.current)
}

// standstill: no member became available for too long (rule 9).
func (r reporter) standstill() records.Condition {
	if r.stalled == "" {
		return records.Condition{Type: ConditionStalled, Status: "False", Reason: reasonWell}
	}
	return records.Condition{Type: ConditionStalled, Status: "True", Reason: reasonDeadline, Message: r.stalled}
}

// degraded: a member that is wanted lacks something that does not come by itself, or
// was ready in this very life and is not. Who starts, or was taken down to be replaced,
// is as expected.
func (r reporter) degraded() records.Condition {
	c := records.Condition{Type: ConditionDegraded, Status: "False", Reason: reasonWell}
	for i := range r.plan.Blocked {
		b := &r.plan.Blocked[i]
		t := r.memberOf(b.ID.Ordinal)
		lost := !t.vacant() && !t.stopping() && !t.Stale && !t.Ready && t.identity != nil && t.identity.ReadyToken == t.member.Token
		if !t.wanted || t.Available || b.Reason.ComesByItself() && !lost {
			continue
		}
		c.Status, c.Reason, c.Message = "True", string(b.Reason), b.ID.MemberName()+": "+b.Text
		return c
	}
	return c
}
