package main

// quotaFaults are faults of what ResourceQuotas refuse: two changes at once must not both fit (SAFETY S7: a transaction compares all that
// its decision relied on).
var quotaFaults = []fault{
	{"S7", "server/control/quota.go", "\tt.If = append(t.If, b.seen)\n", "",
		suite{"server/control", "^TestTwoAtOnceDoNotBothFit$"}},
	{"S7", "server/control/quota.go", "\t\tt.Then = append(t.Then, store.Put(b.seen.Key, []byte(\"changed\")))\n", "",
		suite{"server/control", "^TestTwoAtOnceDoNotBothFit$"}},
	{"S7", "server/control/quota.go", "\tif b.none() && !brings && !again {\n", "\tif b.none() && !brings {\n",
		suite{"server/control", "^TestAQuotaThatTheViewDoesNotShowYetIsWaitedFor$"}},
	{"S7", "server/control/reclaim.go", "\tif q.Verb == records.VerbRestore {\n\t\tif err := s.restores", "\tif false {\n\t\tif err := s.restores",
		suite{"server/control", "^TestVolumesThatStayCount$"}},
	{"S7", "server/cache/quota.go", "e.record.Verb != records.VerbRestore || l.volumes", "true || l.volumes",
		suite{"server/control", "^TestVolumesThatStayCount$"}},
	{"S7", "server/tally/excess.go", "case now > used && now > e.Hard:", "case now > e.Hard:",
		suite{"server/tally", "^TestWhatAQuotaRefuses$"}},
	{"S7", "server/control/rollout.go", "\t\tedit = s.editCounted\n", "",
		suite{"server/control", "^TestAnUndoCountsAsAnApply$"}},
	{"S7", "server/control/within.go", "if e.applied.GetKind() == proto.KindQuota && e.value != nil {", "if false {",
		suite{"server/control", "^TestOperatorsWriteNoQuotas$"}},
	{"S7", "server/access/authorizer.go", "\t\tmd.Set(proto.RoleKey, string(c.subject.Role))\n", "",
		suite{"server/access", "^TestARoleEndsAtItsNamespaces$"}},
}
