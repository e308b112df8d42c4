package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// Busy members (SEMANTICS Part 3, Busy): neither a member that says so nor, under OrderedReady, one whose turn comes after it is stopped
// for an update, a restart, a drain, a move or a scale-down, for as long as the set's bound allows. The time is counted by the
// member's node, so that no leader begins it anew.

// says is what the member says of itself, while its node lives; nothing of one that is to stop.
func (m *memberFacts) says() (c records.Claim) {
	if m.Member != nil && m.Report != nil && m.Live && !m.Over && !m.stopping() {
		c = m.Report.Claim
	}
	return c
}

// busy: the member is to be waited for, also because a job of the set runs in it. One that is broken is never busy: what it says it may never take back.
func (r rollout) busy(t *memberState) bool {
	c := t.says()
	return runsJob(r, t) || c.Busy != "" && c.BusyFor < r.world.Set.Spec.BusyBound() && !r.ailing(t)
}

// busyTooLong: it says so still, and is not waited for any more.
func (r reporter) busyTooLong(t *memberState) bool {
	c := t.says()
	return c.Busy != "" && c.BusyFor >= r.world.Set.Spec.BusyBound()
}

// ailing: nothing says that the member becomes ready by itself, whatever it runs.
func (r rollout) ailing(t *memberState) bool {
	return causedByTemplate(t.Report) || !t.Ready && !t.wasReady() && (r.overdue(t) || t.wanted && r.broken(t) != "")
}

// findBusy finds the first member in turn that is busy, as the step found it; nil: none is.
func (r rollout) findBusy() *memberState {
	for t := range r.turns() {
		if r.busy(t) {
			return t
		}
	}
	return nil
}

// waitsForBusy is the busy member because of which a wanted one is not stopped now: itself, or under OrderedReady the first
// before it in turn; nil: there is none, or a person does not want to wait. One that is broken waits for nobody.
func (r rollout) waitsForBusy(t *memberState) *memberState {
	switch b := r.firstBusy; {
	case b == nil || t.Request != nil && t.Request.Now:
		return nil
	case r.busy(t):
		return t
	case r.ordered() && t.Report != nil && r.before(b, t) && !r.ailing(t):
		return b
	}
	return nil
}

// before: the turn of a comes before that of b.
func (d *draft) before(a, b *memberState) bool {
	switch d.leader {
	case a.ID.Ordinal:
		return false
	case b.ID.Ordinal:
		return true
	}
	return a.ID.Ordinal > b.ID.Ordinal
}

// busyText says with what a member is busy, and for how long that may hold up who waits.
func (f *facts) busyText(t *memberState) string {
	if h := t.Member.Hook; h != nil && h.Kind == hooks.RunJob && t.says().Busy == "" {
		return fmt.Sprintf("busy (job %s runs in it), for %s at most", h.Job.Name, scalar.Duration{Duration: h.Hook.Timeout()})
	}
	return fmt.Sprintf("busy (%s), for %s at most", t.Report.Claim.Busy, scalar.Duration{Duration: f.world.Set.Spec.BusyBound()})
}

// blockBusy says of a member that is to be stopped, or changed in place, that it waits for b, which is busy.
func (e explainer) blockBusy(t, b *memberState) {
	text := "it waits until it is not busy any more; it is " + e.busyText(t)
	if b != t {
		text = fmt.Sprintf("it waits for %s, which is %s", b.ID.MemberName(), e.busyText(b))
	}
	e.block(t, causes.BlockedBusy, text+"; without waiting: stead restart "+t.ID.MemberName()+" --now")
}

// busyRestartText says of a member that is not available why its restart, which a person asked for, waits.
func (e explainer) busyRestartText(t *memberState) string {
	if t.Request == nil || t.stopping() || e.waitsForBusy(t) == nil {
		return ""
	}
	b := e.waitsForBusy(t)
	return fmt.Sprintf("; its restart waits for %s, which is %s; to restart it all the same: stead restart %s --now", b.ID.MemberName(), e.busyText(b), t.ID.MemberName())
}

// busyCondition says which members are busy for too long; nil: none is.
func (r reporter) busyCondition() *records.Condition {
	for _, t := range r.members {
		if r.busyTooLong(t) {
			return &records.Condition{Type: ConditionBusyTooLong, Status: "True", Reason: ConditionBusyTooLong, Message: fmt.Sprintf(
				"%s has said for %s that it is busy (%s), and is not waited for any more", t.ID.MemberName(), scalar.Duration{Duration: t.Report.Claim.BusyFor}, t.Report.Claim.Busy)}
		}
	}
	return nil
}
