package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
)

// The hooks of the word leaves, as lives run them.
var leaveHooks = map[hooks.HookKind]spec.MemberHook{
	hooks.Decommission: commandHook("leave"), hooks.Abort: commandHook("stay"), hooks.Forget: commandHook("forget"),
}

func commandHook(word string) spec.MemberHook {
	return spec.MemberHook{Container: "main", Exec: &spec.ExecAction{Command: []string{word}}, TimeoutSeconds: 60}
}

// hasHooks gives the set its hooks, and agents that run them.
func hasHooks(w *World) {
	leave, stay, forget := leaveHooks[hooks.Decommission], leaveHooks[hooks.Abort], leaveHooks[hooks.Forget]
	w.Set.Spec.Decommission = &spec.Decommission{
		Container: leave.Container, Exec: leave.Exec, TimeoutSeconds: leave.TimeoutSeconds, OnTimeout: hooks.OnTimeoutWait, Abort: &stay,
	}
	w.Set.Spec.Forget = &forget
	for i := range w.Nodes {
		facts := records.NodeFacts{Name: w.Nodes[i].Node.Name, Guards: true}
		if old := w.Nodes[i].Facts; old != nil {
			facts = *old
		}
		facts.Hooks = true
		w.Nodes[i].Facts = &facts
	}
}

// runs has a life of the world run a hook, with this result so far. Of forget it is about the member gone.
func runs(ordinal int, kind hooks.HookKind, result hooks.HookResult, gone ...int) func(*World) {
	return func(w *World) {
		slot := w.slotOf(spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal})
		m, r := *slot.Member, *slot.Report
		m.Hook = &hooks.HookOrder{ID: spec.Sequence{Epoch: 1, Rev: 50}, Kind: kind, Hook: leaveHooks[kind]}
		if kind == hooks.Decommission {
			m.StopReason = records.ReasonScaleDown
		}
		if len(gone) > 0 {
			m.Hook.Gone = w.slotOf(spec.Identity{Namespace: "default", Set: "db", Ordinal: gone[0]}).Identity.Gone
		}
		result.ID = m.Hook.ID
		r.Hook = result
		slot.Member, slot.Report = &m, &r
	}
}

func allOf(changes ...func(*World)) func(*World) {
	return func(w *World) {
		for _, change := range changes {
			change(w)
		}
	}
}

var (
	doneHook    = hooks.HookResult{Done: true}
	failedHook  = hooks.HookResult{Failures: 2, Message: "exit code 1: two shards are left"}
	overdueHook = hooks.HookResult{Overdue: true}
	proceeds    = func(w *World) { w.Set.Spec.Decommission.OnTimeout = hooks.OnTimeoutProceed }
	skips       = func(w *World) { w.Set.SkipDecommission = true }
	tooOld      = func(w *World) {
		for i := range w.Nodes {
			w.Nodes[i].Facts = &records.NodeFacts{Name: w.Nodes[i].Node.Name}
		}
	}
	justDecommission = func(w *World) { w.Set.Spec.Forget = nil }
	justForget       = func(w *World) { w.Set.Spec.Decommission = nil }
)

// A member that leaves for good stops when its hook has succeeded, one after the other under either policy (SEMANTICS Part 3).
func TestAMemberTakesLeave(t *testing.T) {
	check(t, []rule{
		{name: "its hook runs first", world: "ordered 1 leaves n1 0:ready 1:ready 2:ready",
			want: "hook=2/decommission | 2:Leaving 1:WaitingForSuccessor", says: "it stops when that has succeeded"},
		{name: "one at a time also under Parallel", world: "parallel 1 leaves n1 0:ready 1:ready 2:ready",
			want: "hook=2/decommission | 2:Leaving 1:WaitingForSuccessor"},
		{name: "it runs until it succeeds", world: "ordered 1 leaves n1 0:ready 1:ready", change: runs(1, hooks.Decommission, hooks.HookResult{}),
			want: "| 1:Leaving"},
		{name: "that it fails is said", world: "ordered 1 leaves n1 0:ready 1:ready", change: runs(1, hooks.Decommission, failedHook),
			want: "| 1:Decommission", says: "failed (2 in a row, and is run again): exit code 1: two shards are left; to stop it without that: stead scale db --replicas 1 --skip-decommission"},
		{name: "its time being over changes nothing by itself", world: "ordered 1 leaves n1 0:ready 1:ready", change: runs(1, hooks.Decommission, overdueHook),
			want: "| 1:Decommission"},
		{name: "but with Proceed", world: "ordered 1 leaves n1 0:ready 1:ready", change: allOf(runs(1, hooks.Decommission, overdueHook), proceeds),
			want: "stop=1/ScaleDown | 1:Stopping"},
		{name: "Proceed before its time changes nothing", world: "ordered 1 leaves n1 0:ready 1:ready", change: allOf(runs(1, hooks.Decommission, failedHook), proceeds),
			want: "| 1:Decommission"},
		{name: "then it stops", world: "ordered 1 leaves n1 0:ready 1:ready 2:ready", change: runs(2, hooks.Decommission, doneHook),
			want: "stop=2/ScaleDown | 2:Stopping 1:WaitingForSuccessor"},
		{name: "what another order said does not count", world: "ordered 1 leaves n1 0:ready 1:ready",
			change: allOf(runs(1, hooks.Decommission, doneHook), func(w *World) {
				w.Slots[1].Report.Hook.ID.Rev = 49
			}), want: "| 1:Leaving"},
		{name: "an edit of the hook is another order", world: "ordered 1 leaves n1 0:ready 1:ready",
			change: allOf(runs(1, hooks.Decommission, failedHook), func(w *World) { w.Set.Spec.Decommission.TimeoutSeconds = 90 }),
			want:   "hook=1/decommission | 1:Leaving"},
		{name: "a user skips it", world: "ordered 1 leaves n1 0:ready 1:ready", change: allOf(runs(1, hooks.Decommission, failedHook), skips),
			want: "stop=1/ScaleDown | 1:Stopping"},
		{name: "one that is not well says so, too", world: "ordered 1 leaves n1 0:ready 1:loop", change: runs(1, hooks.Decommission, hooks.HookResult{}),
			want: "| 1:Decommission", says: "has not succeeded yet; it reports CrashLoop: exited with code 1"},
		{name: "survivors that are not well hold it", world: "ordered 1 leaves n1 0:running 1:ready",
			want: "| 0:NotReady 1:WaitingForSurvivors"},
		{name: "one on a silent node waits for it", world: "ordered 1 leaves n1 n2~ 0:ready 1:ready@n2", want: "| 1:NodeSilent"},
		{name: "one without a life is skipped", world: "ordered 1 leaves n1 0:ready 1:over", want: "forget=1+address+gone | 1:Leaving"},
		{name: "an agent may be too old", world: "ordered 1 leaves n1 0:ready 1:ready", change: tooOld, want: "| 1:AgentTooOld", says: "the agent of node n1 is too old to run its decommission hook; upgrade it"},
		{name: "of a scale to zero nobody takes leave", world: "parallel 0 leaves n1 0:ready 1:ready", change: runs(1, hooks.Decommission, failedHook),
			want: "stop=1/ScaleToZero stop=0/ScaleToZero | 1:Stopping 0:Stopping"},
		{name: "nor of a set that is deleted", world: "ordered 2 leaves deleting n1 0:ready 1:ready", change: runs(1, hooks.Decommission, failedHook),
			want: "stop=1/Delete | 1:Stopping 0:WaitingForSuccessor"},
		{name: "an orphaned set has nothing done", world: "ordered 1 leaves orphaned n1 0:ready 1:ready", change: runs(1, hooks.Decommission, doneHook), want: "|"},
		{name: "a restart and an update run no hook", world: "ordered 2 leaves update=h2 current=h1 n1 0:ready 1:ready",
			want: "stop=1/Update | 1:Stopping 0:WaitingForTurn"},
		{name: "nor does a drain", world: "ordered 2 leaves n1 n2% 0:ready 1:ready@n2", want: "stop=1/Drain | 1:Stopping"},
		{name: "all do not go down at once while one leaves", world: "ordered 1 leaves Recreate update=h2 current=h1 n1 0:ready 1:ready",
			change: runs(1, hooks.Decommission, failedHook), want: "| 1:Decommission 0:WaitingForTurn"},
		{name: "what becomes of volumes is recorded before", world: "ordered 1 leaves volumes whenScaled=Delete n1 0:ready 1:ready",
			want: "hook=1/decommission set=1/Delete | 1:Leaving"},
	})
}

// A member that is wanted again stays, unless its hook has succeeded.
func TestAMemberThatIsWantedAgainStays(t *testing.T) {
	noAbort := func(w *World) { w.Set.Spec.Decommission.Abort = nil }
	check(t, []rule{
		{name: "its abort hook runs", world: "ordered 2 leaves n1 0:ready 1:ready", change: runs(1, hooks.Decommission, failedHook), want: "hook=1/abort |"},
		{name: "without one it just stays", world: "ordered 2 leaves n1 0:ready 1:ready", change: allOf(runs(1, hooks.Decommission, failedHook), noAbort), want: "hook=1/none |"},
		{name: "the abort hook runs until it succeeds", world: "ordered 2 leaves n1 0:ready 1:ready", change: runs(1, hooks.Abort, failedHook), want: "|"},
		{name: "and then no more", world: "ordered 2 leaves n1 0:ready 1:ready", change: runs(1, hooks.Abort, doneHook), want: "hook=1/none |"},
		{name: "an abort hook that the set lost is not run", world: "ordered 2 leaves n1 0:ready 1:ready", change: allOf(runs(1, hooks.Abort, failedHook), noAbort), want: "hook=1/none |"},
		{name: "who has left has left", world: "ordered 2 leaves n1 0:ready 1:ready", change: runs(1, hooks.Decommission, doneHook),
			want: "stop=1/ScaleDown | 1:Stopping", says: "it has left, though it is wanted again"},
		{name: "and is forgotten before it returns", world: "ordered 2 leaves n1 0:ready 1:stopped", want: "forget=1+gone | 1:Leaving"},
		{name: "it leaves once more", world: "ordered 1 leaves n1 0:ready 1:ready", change: runs(1, hooks.Abort, failedHook), want: "hook=1/decommission | 1:Leaving"},
	})
}

// The others forget one that has left before the next leaves, before it returns, and before its volume is given up.
func TestTheOthersForgetOneThatHasLeft(t *testing.T) {
	check(t, []rule{
		{name: "its end is recorded with what is owed", world: "ordered 1 leaves n1 0:ready 1:ready 2:stopped",
			want: "forget=2+address+gone | 1:WaitingForSuccessor 2:Leaving"},
		{name: "the lowest that is ready is told", world: "parallel 2 leaves n1 0:running 1:ready 2:ready 3:left",
			want: "hook=1/forget | 0:NotReady 2:WaitingForSuccessor 3:Leaving", says: "db-1 is to forget db-3"},
		{name: "one that ran the hook before keeps it", world: "parallel 2 leaves n1 0:ready 1:ready 3:left", change: runs(1, hooks.Forget, failedHook, 3),
			want: "| 3:Forget", says: "the forget hook failed in db-1 (2 in a row, and is run again): exit code 1: two shards are left"},
		{name: "unless it is not ready any more", world: "parallel 2 leaves n1 0:ready 1:running 3:left", change: runs(1, hooks.Forget, failedHook, 3),
			want: "hook=1/none hook=0/forget | 1:NotReady 3:Leaving"},
		{name: "and no other is", world: "parallel 2 leaves n1 0:running 1:running 3:left", change: runs(1, hooks.Forget, failedHook, 3),
			want: "| 0:NotReady 1:NotReady 3:Forget"},
		{name: "it is done", world: "ordered 2 leaves n1 0:ready 1:ready 3:left", change: runs(0, hooks.Forget, doneHook, 3), want: "told=3/0 |"},
		{name: "of several one after the other", world: "ordered 2 leaves n1 0:ready 1:left 2:ready 3:left", change: runs(0, hooks.Forget, doneHook, 3),
			want: "told=3/0 | 1:Leaving 2:WaitingForSurvivors"},
		{name: "then the next leaves", world: "ordered 2 leaves n1 0:ready 1:ready 2:ready 3:left", change: runs(0, hooks.Forget, doneHook, 3),
			want: "told=3/0 hook=2/decommission | 2:Leaving"},
		{name: "what was said of another does not count", world: "ordered 2 leaves n1 0:ready 1:ready 3:left",
			change: allOf(runs(0, hooks.Forget, doneHook, 3), func(w *World) {
				gone := *w.slotOf(spec.Identity{Namespace: "default", Set: "db", Ordinal: 3}).Identity.Gone
				gone.Token.Number--
				w.Slots[0].Member.Hook.Gone = &gone
			}), want: "hook=0/none hook=0/forget | 3:Leaving"},
		{name: "an order that nobody is owed is taken back", world: "ordered 2 leaves n1 0:ready 1:ready 3:left",
			change: allOf(runs(0, hooks.Forget, failedHook, 3), func(w *World) {
				slot := w.slotOf(spec.Identity{Namespace: "default", Set: "db", Ordinal: 3})
				rec := *slot.Identity
				rec.Gone, slot.Identity = nil, &rec
			}), want: "hook=0/none |"},
		{name: "nobody is ready", world: "ordered 1 leaves n1 0:running 1:left", want: "| 0:NotReady 1:Forget", says: "no other member is ready"},
		{name: "nobody's agent can", world: "ordered 1 leaves n1 0:ready 1:left", change: tooOld, want: "| 1:Forget", says: "their agents are too old"},
		{name: "it does not return before", world: "ordered 2 leaves n1 0:ready 1:left", change: runs(0, hooks.Forget, failedHook, 1), want: "| 1:Forget"},
		{name: "and does then", world: "ordered 2 leaves n1 0:ready 1:none", want: "start=1/Create@n1 | 1:Starting"},
		{name: "where nobody has a life there is nobody to be told", world: "parallel 2 leaves n1 0:left 1:none",
			want: "start=0/Create@n1 start=1/Create@n1 | 0:Starting 1:Starting"},
		{name: "its volume stays until then", world: "ordered 1 leaves volumes whenScaled=Delete n1 0:ready 1:volume=Delete",
			change: owes(1), want: "hook=0/forget | 1:Leaving"},
		{name: "and goes then", world: "ordered 1 leaves volumes whenScaled=Delete n1 0:ready 1:volume=Delete", want: "set=1/Reclaiming |"},
		{name: "a set that is deleted waits for nobody", world: "ordered 1 leaves volumes deleting whenDeleted=Delete n1 1:volume=Delete",
			change: owes(1), want: "set=1/Reclaiming |"},
		{name: "a set without members does not either", world: "ordered 0 leaves volumes whenScaled=Delete n1 1:volume=Delete",
			change: owes(1), want: "set=1/Reclaiming |"},
		{name: "nothing is owed where the set has no hook any more", world: "ordered 1 leaves n1 0:ready 1:left",
			change: func(w *World) { w.Set.Spec.Forget = nil }, want: "told=1 |"},
		{name: "nor to a set that goes on with nothing of the earlier one", world: "ordered 2 leaves fresh uid=u2 n1 0:starting 1:left",
			want: "told=1 | 0:Starting 1:WaitingForPredecessor"},
		{name: "a set with its data is owed it", world: "ordered 1 leaves uid=u2 n1 0:ready 1:left",
			change: func(w *World) { w.Slots[0].Identity.ReadyOnce = "u2" }, want: "hook=0/forget | 1:Leaving"},
		{name: "without decommission it stops at once", world: "parallel 1 leaves n1 0:ready 1:ready 2:ready", change: justForget,
			want: "stop=2/ScaleDown | 2:Stopping 1:WaitingForSuccessor"},
		{name: "without forget nothing is owed", world: "ordered 1 leaves n1 0:ready 1:ready 2:stopped", change: justDecommission,
			want: "forget=2+address hook=1/decommission | 1:Leaving"},
		{name: "of a scale to zero nothing is owed", world: "ordered 0 leaves n1 0:ready 1:over", want: "forget=1+address stop=0/ScaleToZero | 0:Stopping"},
	})
}

// owes has the others be told of a member.
func owes(ordinal int) func(*World) {
	return func(w *World) {
		slot := w.slotOf(spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal})
		slot.Identity.Gone = &hooks.GoneMember{SetUID: "u1", ID: slot.ID, Token: slot.Identity.LastToken, Service: "db"}
	}
}

// hookEnds is what a host says of a hook: it succeeds unless it is told to fail.
func (s *stage) hookEnds(o *hooks.HookOrder) hooks.HookResult {
	if o.Job != nil {
		return s.jobEnds(o)
	}
	if s.bad[o.Hook.Exec.Command[0]] == "fails" {
		return hooks.HookResult{ID: o.ID, Failures: 2, Message: "exit code 1"}
	}
	return hooks.HookResult{ID: o.ID, Done: true}
}
