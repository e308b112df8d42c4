package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
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

// status counts the members after the actions of this step (SEMANTICS, Status fields): one that
// is to stop counts only as terminating.
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
	for _, t := range r.members {
		count(&st, t, current)
	}
	if r.world.Folded != nil {
		r.countFolded(&st, current)
	}
	st.Conditions = r.conditions()
	if r.world.Table {
		for _, t := range r.members {
			if t.Member != nil || t.wanted {
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
	st.CurrentReplicas += one(t.Member.Revision == current)
	if t.Member.Revision == st.UpdateRevision {
		st.UpdatedReplicas++
		st.UpdatedReadyReplicas += one(t.Ready)
		st.UpdatedAvailableReplicas += one(t.Available)
	}
}

// row is the member's line in the table.
func (r reporter) row(t *memberState) records.MemberStatus {
	m := records.MemberStatus{Name: t.ID.MemberName(), Ordinal: t.ID.Ordinal, Blocked: r.blocked[t.ID.Ordinal]}
	if t.Identity != nil {
		m.Address, m.Revision = t.Identity.Address, t.Identity.Due
	}
	if t.Member == nil {
		return m
	}
	m.Node, m.Address, m.Revision = t.Member.Node, t.Member.Address, t.Member.Revision
	m.Token, m.Goal, m.BeganAt = t.Member.Token.String(), t.Member.Goal, t.Member.BeganAt
	m.Phase, m.Ready = records.PhaseAssigned, t.Ready
	if last := t.Report; last != nil {
		m.Phase, m.Cause, m.Message = last.Phase, last.Cause, last.Message
		for _, c := range last.Containers {
			m.Restarts += c.Restarts
		}
	}
	return m
}

// The types of conditions.
const (
	ConditionAvailable   = "Available"
	ConditionProgressing = "Progressing"
	ConditionStalled     = "Stalled"
	ConditionDegraded    = "Degraded"
	// ConditionBusyTooLong is there only while it is True.
	ConditionBusyTooLong = "BusyTooLong"
	// ConditionJobsDone is there for sets with jobs.
	ConditionJobsDone = "JobsDone"
)

// conditions are Available, Progressing, Stalled and Degraded, in this order, BusyTooLong if a member is, and JobsDone of a set with jobs.
func (r reporter) conditions() []records.Condition {
	list := []records.Condition{r.availability(), r.progress(), r.standstill(), r.degraded()}
	for _, c := range []*records.Condition{r.busyCondition(), r.jobsCondition()} {
		if c != nil {
			list = append(list, *c)
		}
	}
	return list
}

// availability: every member that is wanted is available.
func (r reporter) availability() records.Condition {
	want, have := r.size, r.size-r.unavailable()
	c := records.Condition{Type: ConditionAvailable, Status: "True", Reason: "AllAvailable", Message: fmt.Sprintf("%d of %d members are available", have, want)}
	if have < want {
		c.Status, c.Reason = "False", "NotAllAvailable"
	}
	if r.world.Set.Deleting {
		c.Status, c.Reason, c.Message = "False", "Deleting", "the set is being deleted"
	}
	return c
}

// progress: True while work is under way, False when it is complete or when the
// first member that waits does so for something that does not come by itself.
func (r reporter) progress() records.Condition {
	c := records.Condition{Type: ConditionProgressing, Status: "False", Reason: "Complete"}
	switch {
	case r.world.Set.Deleting:
		c.Status, c.Reason = "True", "Deleting"
	case r.world.Set.Orphaned:
		c.Reason, c.Message = string(causes.BlockedOrphaned), "members keep running, but are not managed: "+orphanedText
		return c
	case len(r.plan.Blocked) > 0:
		c.Status, c.Reason = "True", "Working"
	case r.currentRevision() != r.update:
		r.halfway(&c)
	}
	if len(r.plan.Blocked) == 0 {
		return c
	}
	say := &r.plan.Blocked[0]
	if i := slices.IndexFunc(r.plan.Blocked, func(b Blocked) bool { return !b.Reason.ComesByItself() }); i >= 0 {
		say = &r.plan.Blocked[i]
		c.Status, c.Reason = "False", string(say.Reason)
	}
	c.Message = say.ID.MemberName() + ": " + say.Text
	return c
}

// halfway says that nothing is under way though not all run the update revision.
func (r reporter) halfway(c *records.Condition) {
	switch {
	case r.rolledBack():
		c.Reason, c.Message = "RolledBack", r.backText()
	case r.onDelete():
		c.Reason, c.Message = "OnDelete", fmt.Sprintf("members go to revision %s when they are restarted", r.update)
	default:
		c.Reason, c.Message = "Partitioned", fmt.Sprintf("members below ordinal %d keep the revision %s", r.partition(), r.currentRevision())
	}
}

func (f *facts) backText() string {
	return fmt.Sprintf("revision %s did not become available in time; the members go back to %s until the template changes", f.update, f.current)
}

// standstill: no member became available for too long (rule 9).
func (r reporter) standstill() records.Condition {
	if r.stalled == "" {
		return records.Condition{Type: ConditionStalled, Status: "False", Reason: "AsExpected"}
	}
	return records.Condition{Type: ConditionStalled, Status: "True", Reason: "ProgressDeadlineExceeded", Message: r.stalled}
}

// degraded: a member that is wanted lacks something that does not come by itself, or
// was ready in this very life and is not. Who starts, or was taken down to be replaced,
// is as expected.
func (r reporter) degraded() records.Condition {
	c := records.Condition{Type: ConditionDegraded, Status: "False", Reason: "AsExpected"}
	for i := range r.plan.Blocked {
		b := &r.plan.Blocked[i]
		t := r.memberOf(b.ID.Ordinal)
		lost := !t.vacant() && !t.stopping() && !t.Stale && !t.Ready && t.Identity != nil && t.Identity.ReadyToken == t.Member.Token
		if !t.wanted || t.Available || b.Reason.ComesByItself() && !lost {
			continue
		}
		c.Status, c.Reason, c.Message = "True", string(b.Reason), b.ID.MemberName()+": "+b.Text
		return c
	}
	return c
}

// Former is the service under which members are found beside the set's own, because a rename
// (apply --rename-service) is not complete; "": none. A life keeps the name that it was started
// with. The rename restarts the members as an update does, and is complete with it, when
// every life has the new name; until then the status holds the former one.
func Former(set *records.Set, st *records.SetStatus, slots []Slot) string {
	now := set.Service()
	if st != nil && st.ServiceName != "" {
		if st.ServiceName == now {
			return ""
		}
		return st.ServiceName
	}
	for i := range slots { // the status is lost, or of an earlier version
		if m := slots[i].Member; m != nil && m.Service != "" && m.Service != now {
			return m.Service
		}
	}
	return ""
}

// Service is the governing service that a life was started with. former is that of Former.
func Service(set *records.Set, former string, m *records.Member) string {
	return cmp.Or(m.Service, former, set.Service())
}

// service is what the status is to say: the former name until the rename is complete, when every
// life, also a surplus one, was started with the new one.
func (r reporter) service() string {
	now := r.world.Set.Service()
	former := func(t *memberState) bool { return t.Member != nil && Service(r.world.Set, r.former, t.Member) != now }
	if r.finished && !slices.ContainsFunc(r.members, former) {
		return now
	}
	return cmp.Or(r.former, now)
}
