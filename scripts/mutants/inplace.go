package main

// inPlace are the guards of changes in place (SEMANTICS Part 3), each taken out: of the servers.
var inPlace = []fault{
	{"S2", "spec/inplace.go", "if a, b := from.QOS(), to.QOS(); a != b {", "if a, b := from.QOS(), to.QOS(); false {", suite{"spec", "^TestWhatChangesInPlace$"}},
	{"S2", "spec/inplace.go", "old.Role() == RoleSidecar && now.Role() == RoleSidecar", "true || old == now", suite{"spec", "^TestWhatChangesInPlace$"}},
	{"S2", "spec/inplace.go", "v.EmptyDir.boundBytes(from) != v.EmptyDir.boundBytes(to)", "false", suite{"spec", "^TestWhatChangesInPlace$"}},
	{"S2", "records/changing.go", "!spec.SameTemplate(was, is)", "false", changedInTurn},
	{"S2", "records/changing.go", "kind != \"\" && len(s.Spec.UpdateStrategy.InPlace) > 0", "kind == \"none\"", changedInTurn},
	{"S20", "server/plan/facts.go", "m.Available = m.Available && !m.changing", "m.Available = m.Available || false", changedInTurn},
	{"S20", "server/plan/factschange.go", "m.Member, m.Identity, m.Available = &member, &a.Identity, false", "m.Member, m.Identity = &member, &a.Identity", changedInTurn},
	{"S2", "server/plan/roll.go", "changer(s).bring(t)", "changer(s).bring(s.inside[0])", changedInTurn},
	{"S7", "records/changing.go", " || r.Change.ID != m.Change.ID || r.Change.Revision != m.Change.Revision", "", changedInTurn},
	{"S7", "records/changing.go", " || r.Change.Revision != m.Change.Revision", "", changedInTurn},
	{"S8", "server/plan/factschange.go", "c.lost = !r.Change.Done || f.revision(r.Change.Revision) == nil", "c.lost = !r.Change.Done", changedInTurn},
	{"S8", "server/plan/factschange.go", "if m.lost || m.refused != \"\" {", "if m.refused != \"\" {", changedInTurn},
	{"S8", "server/plan/factschange.go", "if r.Change.ID.Compare(known) > 0 {", "if r.Change.ID.Compare(known) > 0 && false {", changedInTurn},
	{"S8", "server/plan/changeinplace.go", "known = append(known, t.Report.Change.ID)", "_ = known", changedInTurn},
	{"S7", "server/plan/changeinplace.go", "case !s.takesChanges(t.Member.Node):", "case false:", changedInTurn},
	{"S2", "server/plan/factschange.go", "f.node(m.Node).Facts != nil && !f.takesChanges(m.Node)", "false", changedInTurn},
	{"S20", "server/plan/changeinplace.go", "case t.refused != \"\" && t.Member.Change.Revision == target:", "case false:", changesInScenario},
	{"S20", "server/plan/changeinplace.go", "case c.Image && t.says().Leads && s.stepsDown(t):", "case c.Image && false:", changedInTurn},
	{"S2", "server/plan/changeinplace.go", "if no := s.growBy(t, target); no != \"\" {", "if no := s.growBy(t, target); false {", changedInTurn},
	{"S2", "server/place/grow.go", "p.used[node] = used", "_ = used", changedInTurn},
	{"S2", "server/plan/changeinplace.go", "s.held(t) || !s.obsolete(t)", "!s.obsolete(t)", changedInTurn},
	{"S20", "server/plan/changeinplace.go", "t.unseen() || !t.Ready || ", "t.unseen() || ", changedInTurn},
	{"S2", "server/plan/apply.go", "m.StopReason, m.Hook, m.Change = records.GoalStop, a.Reason, nil, nil", "m.StopReason, m.Hook = records.GoalStop, a.Reason, nil", suite{"server/plan", "^TestWhatAnOrderAndAStopMakeOfTheRecord$"}},
	{"S2", "server/plan/promote.go", "m.Change, m.Changed = nil, a.Changed", "m.Change = nil", suite{"server/plan", "^TestWhatAnOrderAndAStopMakeOfTheRecord$"}},
	{"S20", "server/plan/jobrun.go", "return !t.Ready || t.stopping() || t.changing", "return !t.Ready || t.stopping()", suite{"server/plan", "^TestNoJobIsOrderedWhileAMemberChanges$"}},
	{"S2", "server/cache/room.go", "now.cpuMillis, now.memoryBytes = m.Requests(of)", "now.cpuMillis, now.memoryBytes = of(m.Revision).Requests()", suite{"server/cache", "^TestAMemberThatIsChangedTakesTheMoreOfItsNode$"}},
	{"S2", "server/engine/commit.go", "grows || len(starts) > 0 {", "grows && false || len(starts) > 0 {", suite{"server/engine", "^TestANodeIsPromisedOnceToLivesThatGrow$"}},
	{"S7", "server/engine/hook.go", "store.ReportKey(a.ID), store.FactsKey(m.Node))", "store.ReportKey(a.ID))", decisionsCompare},
	{"S7", "server/engine/hook.go", "d.absent(store.RequestKey(a.ID))", "_ = d", decisionsCompare},
	{"S7", "server/engine/hook.go", "if a.Changed != (spec.Sequence{}) { // the report says so", "if a.Changed == (spec.Sequence{Epoch: 7}) {", decisionsCompare},
	{"S2", "server/dispatch/sentstate.go", "n == nil || !n.Facts.ChangesInPlace()", "n == nil", suite{"server/dispatch", "^TestANodeIsSentWhatItsMemberIsChangedTo$"}},
	{"S2", "server/dispatch/sentstate.go", "return m.Runs()", "return m.Revision", suite{"server/dispatch", "^TestANodeIsSentWhatItsMemberIsChangedTo$"}},
	{"S16", "store/format.go", "kind == KindSet && bytes.Contains(op.Value, []byte(inPlace))", "kind == KindMember && bytes.Contains(op.Value, []byte(inPlace))",
		suite{"store", "^TestTheFormatRisesWithTheFirstSetOfAKindThatIsNew$"}},
}

var (
	changedInTurn     = suite{"server/plan", "^TestAMemberIsChangedInPlaceInItsTurn$"}
	changesInScenario = suite{"server/plan", "^TestScenarios$"}
	decisionsCompare  = suite{"server/engine", "^TestEachDecisionComparesAllItReliedOn$"}
)
