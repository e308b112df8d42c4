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

// takesLeave: members that the range does not have any more leave the others, and these are to know.
func (f *facts) takesLeave() bool {
	set := f.world.Set
	return (set.Spec.Decommission != nil || set.Spec.Forget != nil) && !set.Deleting && !set.Orphaned && set.Replicas() > 0
}

// runsHooks: the node's agent runs hooks that are ordered.
func (f *facts) runsHooks(name spec.NodeName) bool {
	n := f.node(name)
	return n != nil && n.Facts != nil && n.Facts.Hooks
}

// hookIn is a hook as the life of a member is to run it.
func (f *facts) hookIn(t *memberState, h spec.MemberHook) spec.MemberHook {
	if h.Container == "" {
		h.Container = spec.FirstContainer(f.runs(t.Member.Revision))
	}
	return h
}

// isToRun reports whether the life is to run just this.
func (t *memberState) isToRun(kind hooks.HookKind, h spec.MemberHook) bool {
	o := t.Member.Hook
	return o != nil && o.Kind == kind && reflect.DeepEqual(o.Hook, h)
}

// order has a life run a hook; its result so far is void.
func (s step) order(t *memberState, kind hooks.HookKind, h spec.MemberHook, gone *hooks.GoneMember, reason records.Reason, text string) {
	s.orderHook(t, &hooks.HookOrder{ID: spec.Sequence{Epoch: s.world.Epoch, Rev: s.world.Rev}, Kind: kind, Hook: h, Gone: gone}, reason, text)
}

func (s step) orderHook(t *memberState, o *hooks.HookOrder, reason records.Reason, text string) {
	a := OrderHook{ID: t.ID, Token: t.Member.Token, Hook: o, StopReason: reason, Text: text}
	s.act(a)
	t.become(t.afterOrder(&a))
}

// takeLeave has a member that is to leave for good run its hook; true: it may stop now. Nothing is ordered of one on a silent node, and
// its stop, which is final, waits, too: it may come back.
func (s step) takeLeave(t *memberState) bool {
	d := s.world.Set.Spec.Decommission
	switch {
	case d == nil || s.world.Set.SkipDecommission:
		return true
	case !t.Live:
		s.blockWaiting(t)
		return false
	case !s.runsHooks(t.Member.Node):
		s.block(t, causes.BlockedAgentTooOld, fmt.Sprintf("the agent of node %s is too old to run its decommission hook; upgrade it; %s", t.Member.Node, s.skipText()))
		return false
	}
	result := t.Member.HookResult(t.Report)
	if o := t.Member.Hook; o != nil && o.Kind == hooks.Decommission && (result.Done || result.Overdue && d.OnTimeout == spec.OnTimeoutProceed) {
		return true
	}
	if h := s.hookIn(t, d.Hook()); !t.isToRun(hooks.Decommission, h) {
		s.order(t, hooks.Decommission, h, nil, records.ReasonScaleDown,
			fmt.Sprintf("%s is to leave for good: it stops on node %s when its decommission hook has succeeded", t.ID.MemberName(), t.Member.Node))
	}
	s.blockLeaver(t)
	return false
}

// blockLeaver says what a member waits for whose hook has not succeeded.
func (e explainer) blockLeaver(t *memberState) {
	result := t.Member.HookResult(t.Report)
	if result.Failures == 0 && !result.Overdue && t.Ready {
		e.block(t, causes.BlockedLeaving, "its decommission hook runs; it stops when that has succeeded")
		return
	}
	text := "its decommission hook has not succeeded yet"
	if result.Message != "" {
		text = fmt.Sprintf("its decommission hook failed (%d in a row, and is run again): %s", result.Failures, result.Message)
	}
	if !t.Available {
		text += "; " + e.stateText(t)
	}
	e.block(t, causes.BlockedDecommission, text+"; "+e.skipText())
}

// goingText says how far a member is that goes before others.
func (e explainer) goingText(t *memberState) string {
	if t.Member.Leaving() {
		return "its decommission hook has not succeeded yet"
	}
	return e.stateText(t)
}

// skipText tells a person how a member leaves whose hook does not succeed.
func (f *facts) skipText() string {
	set := f.world.Set
	return fmt.Sprintf("to stop it without that: stead scale %s --replicas %d --skip-decommission", set.Ref.Name, set.Replicas())
}

// takeBack keeps members that were to leave and are wanted again, after the hook abort. One whose hook has succeeded has left: it
// stops, and returns as one that was scaled up.
func (s step) takeBack() {
	var abort *spec.MemberHook
	if d := s.world.Set.Spec.Decommission; d != nil {
		abort = d.Abort
	}
	for _, t := range s.inside {
		if t.vacant() || t.stopping() {
			continue
		}
		o, done := t.Member.Hook, t.Member.HookResult(t.Report).Done
		aborts := o != nil && o.Kind == hooks.Abort
		switch {
		case t.Member.Leaving() && done && o.Kind == hooks.Decommission:
			s.stop(t, records.ReasonScaleDown, "it has left, though it is wanted again: it returns as a new member")
		case abort != nil && (t.Member.Leaving() || aborts && !done && !t.isToRun(hooks.Abort, s.hookIn(t, *abort))):
			s.order(t, hooks.Abort, s.hookIn(t, *abort), nil, "", t.ID.MemberName()+" is wanted again, and stays: its abort hook runs")
		case t.Member.Leaving():
			s.orderHook(t, nil, "", t.ID.MemberName()+" is wanted again, and stays")
		case aborts && (done || abort == nil):
			s.orderHook(t, nil, "", "")
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
