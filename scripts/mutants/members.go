package main

// differing are the guards of members that differ from the template (SEMANTICS Part 3), each taken out.
var differing = []fault{
	{"S2", "server/plan/factstemplate.go", "same = f.set.SameLife(*f.templateOf(a, ordinal), *f.templateOf(b, ordinal))", "same = true",
		suite{"server/plan", "^TestMembersThatRunTheSameReachARevisionAsTheyAre$"}},
	{"S2", "server/plan/promote.go", "r.paused() && r.target(t) != r.current || ", "",
		suite{"server/plan", "^TestMembersThatRunTheSameReachARevisionAsTheyAre$"}},
	{"S2", "server/plan/promote.go", "t.vacant() || t.stopping() || ", "t.Member == nil || ",
		suite{"server/plan", "^TestMembersThatRunTheSameReachARevisionAsTheyAre$"}},
	{"S2", "server/plan/apply.go", "return !is[Promote](a)", "return false",
		suite{"server/plan", "^TestMembersThatRunTheSameReachARevisionAsTheyAre$"}},
	{"S2", "server/plan/revision.go", "case r.sameFor(t.ID.Ordinal, t.Identity.Due, target):", "case false:",
		suite{"server/plan", "^TestAMemberThatIsDownReturnsOnWhatItRunsAnyway$"}},
	{"S7", "server/engine/hook.go", "d.seen(v, store.RevisionKey(a.ID.Ref(), a.Revision))", "_ = v",
		suite{"server/engine", "^TestEachDecisionComparesAllItReliedOn$"}},
	{"S2", "server/dispatch/sentstate.go", "template := r.TemplateOf(id.Ordinal)", "template := &r.Template",
		suite{"server/dispatch", "^TestANodeIsSentWhatItsMemberRuns$"}},
	{"S2", "server/dispatch/sentstate.go", "l.Member.Revision, l.Member.Began = cmp.Or(m.Began, m.Revision), \"\"", "l.Member.Began = \"\"",
		suite{"server/dispatch", "^TestALifeReadsTheRevisionThatItBeganWith$"}},
	{"S2", "server/cache/room.go", "return &r.TemplateOf(m.ID.Ordinal).Spec", "return &r.Template.Spec",
		suite{"server/cache", "^TestAMemberTakesOfItsNodeWhatItAsksForItself$"}},
	{"S2", "records/set.go", "if !r.Members.Same(s.Spec.Members) {", "if false {",
		suite{"records", "^TestMembersThatDifferArePartOfTheRevision$"}},
	{"S2", "records/set.go", "for _, ordinal := range r.Members.Samples() {", "for _, ordinal := range []int{-1} {",
		suite{"records", "^TestMembersThatDifferArePartOfTheRevision$"}},
	{"S16", "store/format.go", "kind == KindSet && bytes.Contains(op.Value, []byte(differing))", "kind == KindMember && bytes.Contains(op.Value, []byte(differing))",
		suite{"store", "^TestTheFormatRisesWithTheFirstSetOfAKindThatIsNew$"}},
}
