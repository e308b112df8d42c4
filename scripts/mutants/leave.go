package main

// leave are the guards of members that leave for good (SEMANTICS Part 3), and of hooks that servers order, each taken out.
var leave = []fault{
	{"S7", "server/plan/leave.go", "return true\n\t}\n\tif h := l.hookIn", "return false\n\t}\n\tif h := l.hookIn",
		suite{"server/plan", "^TestAMemberTakesLeave$"}},
	{"S7", "server/plan/shrink.go", "case s.takesLeave() && !leaver(s).takeLeave(t):", "case false:",
		suite{"server/plan", "^TestAMemberTakesLeave$"}},
	{"S11", "server/plan/fate.go", "fate == records.FateDelete && s.awaitsForgetting(t) == nil", "fate == records.FateDelete",
		suite{"server/plan", "^TestTheOthersForgetOneThatHasLeft$"}},
	{"S7", "records/member.go", "r.Token != m.Token || r.Hook.ID != m.Hook.ID", "r.Token != m.Token",
		suite{"server/plan", "^TestAMemberTakesLeave$"}},
	{"S7", "server/plan/forget.go", "fits := gone != nil && *t.Member.Hook.Gone == *gone &&", "fits := gone != nil &&",
		suite{"server/plan", "^TestTheOthersForgetOneThatHasLeft$"}},
	{"S7", "server/engine/decision.go", "a.Reason == records.ReasonScaleDown && m.Leaving()", "false",
		suite{"server/engine", "^TestEachDecisionComparesAllItReliedOn$"}},
	{"S7", "server/engine/hook.go", "d.seen(v, store.IdentityKey(a.Hook.Gone.ID), store.MemberKey(a.Hook.Gone.ID))", "_ = v",
		suite{"server/engine", "^TestEachDecisionComparesAllItReliedOn$"}},
	{"S19", "server/plan/forget.go", "void := !l.bootstrapped && t.Identity.Gone.SetUID != l.world.Set.UID", "void := false",
		suite{"server/plan", "^TestTheOthersForgetOneThatHasLeft$"}},
	{"S7", "server/dispatch/reportcommit.go", "r.Message, r.Claim, r.Hook, r.Change}", "r.Message, r.Claim, hooks.HookResult{}, r.Change}",
		suite{"server/dispatch", "^TestJudge$"}},
	{"S1", "agent/worker/ordered.go", "case w.ordered != nil:", "case false:",
		suite{"agent/worker", "^TestOneOrderedHookRunsAtATime$"}},
	{"S1", "agent/worker/ordered.go", "if err := w.saveLife(); err != nil {", "if err := error(nil); err != nil {",
		suite{"agent/worker", "^TestAnOrderedHookOutlastsTheAgent$"}},
	{"S1", "agent/step/order.go", "case s.Ordered.Untold && s.anyRunning():", "case false:",
		suite{"agent/step", "^TestAnOrderedHook$"}},
}
