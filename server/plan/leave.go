package plan

import (
	"fmt"
	"reflect"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Members that leave for good (SEMANTICS Part 3, Leaving): one after the other, each after its hook decommission has succeeded,
// and after the others were told of the one before (forget.go).

// OrderHook has a life run a hook, in place of what it was ordered before; without a Hook: nothing more.
type OrderHook struct {
	ID    spec.Identity
	Token spec.Token
	Hook  *hooks.HookOrder
	// StopReason is why the life is to end when its hook has succeeded; "": it is not.
	StopReason records.Reason
	Text       string // for the event; "": there is none
}

func (OrderHook) action() {}

// Record is what an order makes of the member's record.
func (a *OrderHook) Record(m records.Member) records.Member {
	m.Hook, m.StopReason = a.Hook, a.StopReason
	return m
}

// leaver has the rules of members that leave for good, and of what the others are told.
type leaver struct{ volumes }

// takesLeave: members that the range does not have any more leave the others, and these are to know.
func (f *facts) takesLeave() bool {
	set := f.world.Set
	return (set.Spec.Decommission != nil || set.Spec.Forget != nil) && !set.Deleting && !set.Orphaned && set.Replicas() > 0
}

// runsHooks: the node's agent runs hooks that are ordered.
func (l leaver) runsHooks(name spec.NodeName) bool {
	n := l.node(name)
	return n != nil && n.Facts != nil && n.Facts.Hooks
}

// hookIn is a hook as the life of a member is to run it.
func (l leaver) hookIn(t *memberState, h spec.MemberHook) spec.MemberHook {
	if h.Container == "" {
		h.Container = l.runs(t.Member.Revision, t.ID.Ordinal).FirstContainer()
	}
	return h
}

// isToRun reports whether the life is to run just this.
func (t *memberState) isToRun(kind hooks.HookKind, h spec.MemberHook) bool {
	o := t.Member.Hook
	return o != nil && o.Kind == kind && reflect.DeepEqual(o.Hook, h)
}

// order has a life run a hook; its result so far is void.
func (l leaver) order(t *memberState, kind hooks.HookKind, h spec.MemberHook, gone *hooks.GoneMember, reason records.Reason, text string) {
	l.orderHook(t, &hooks.HookOrder{ID: spec.Sequence{Epoch: l.world.Epoch, Rev: l.world.Rev}, Kind: kind, Hook: h, Gone: gone}, reason, text)
}

func (l leaver) orderHook(t *memberState, o *hooks.HookOrder, reason records.Reason, text string) {
	a := OrderHook{ID: t.ID, Token: t.Member.Token, Hook: o, StopReason: reason, Text: text}
	l.act(a)
	t.become(t.afterOrder(&a))
}

// takeLeave has a member that is to leave for good run its hook; true: it may stop now. Nothing is ordered of one on a silent node, and
// its stop, which is final, waits, too: it may come back.
func (l leaver) takeLeave(t *memberState) bool {
	d := l.world.Set.Spec.Decommission
	switch {
	case d == nil || l.world.Set.SkipDecommission:
		return true
	case !t.Live:
		l.blockWaiting(t)
		return false
	case !l.runsHooks(t.Member.Node):
		l.block(t, causes.BlockedAgentTooOld, fmt.Sprintf("the agent of node %s is too old to run its decommission hook; upgrade it; %s", t.Member.Node, l.skipText()))
		return false
	}
	result := t.Member.HookResult(t.Report)
	if o := t.Member.Hook; o != nil && o.Kind == hooks.Decommission && (result.Done || result.Overdue && d.OnTimeout == hooks.OnTimeoutProceed) {
		return true
	}
	if h := l.hookIn(t, d.Hook()); !t.isToRun(hooks.Decommission, h) {
		l.order(t, hooks.Decommission, h, nil, records.ReasonScaleDown,
			fmt.Sprintf("%s is to leave for good: it stops on node %s when its decommission hook has succeeded", t.ID.MemberName(), t.Member.Node))
	}
	l.blockLeaver(t)
	return false
}

// blockLeaver says what a member waits for whose hook has not succeeded.
func (l leaver) blockLeaver(t *memberState) {
	result := t.Member.HookResult(t.Report)
	if result.Failures == 0 && !result.Overdue && t.Ready {
		l.block(t, causes.BlockedLeaving, "its decommission hook runs; it stops when that has succeeded")
		return
	}
	text := "its decommission hook has not succeeded yet"
	if result.Message != "" {
		text = fmt.Sprintf("its decommission hook failed (%d in a row, and is run again): %s", result.Failures, result.Message)
	}
	if !t.Available {
		text += "; " + l.stateText(t)
	}
	l.block(t, causes.BlockedDecommission, text+"; "+l.skipText())
}

// goingText says how far a member is that goes before others.
func (e explainer) goingText(t *memberState) string {
	if t.Member.Leaving() {
		return "its decommission hook has not succeeded yet"
	}
	return e.stateText(t)
}

// skipText tells a person how a member leaves whose hook does not succeed.
func (l leaver) skipText() string {
	set := l.world.Set
	return fmt.Sprintf("to stop it without that: stead scale %s --replicas %d --skip-decommission", set.Ref.Name, set.Replicas())
}

// takeBack keeps members that were to leave and are wanted again, after the hook abort. One whose hook has succeeded has left: it
// stops, and returns as one that was scaled up.
func (l leaver) takeBack() {
	var abort *spec.MemberHook
	if d := l.world.Set.Spec.Decommission; d != nil {
		abort = d.Abort
	}
	for _, t := range l.inside {
		if t.vacant() || t.stopping() {
			continue
		}
		o, done := t.Member.Hook, t.Member.HookResult(t.Report).Done
		aborts := o != nil && o.Kind == hooks.Abort
		switch {
		case t.Member.Leaving() && done && o.Kind == hooks.Decommission:
			l.stop(t, records.ReasonScaleDown, "it has left, though it is wanted again: it returns as a new member")
		case abort != nil && (t.Member.Leaving() || aborts && !done && !t.isToRun(hooks.Abort, l.hookIn(t, *abort))):
			l.order(t, hooks.Abort, l.hookIn(t, *abort), nil, "", t.ID.MemberName()+" is wanted again, and stays: its abort hook runs")
		case t.Member.Leaving():
			l.orderHook(t, nil, "", t.ID.MemberName()+" is wanted again, and stays")
		case aborts && (done || abort == nil):
			l.orderHook(t, nil, "", "")
		}
	}
}

// Name tells the order from others of the life.
func (a *OrderHook) Name() string {
	if a.Hook == nil {
		return "none"
	}
	return fmt.Sprintf("%d.%d", a.Hook.ID.Epoch, a.Hook.ID.Rev)
}
