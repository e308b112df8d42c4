package main

// contract are what members are told and say of themselves (docs/MEMBERS.md), each taken out.
var contract = []fault{
	{"S21", "agent/files/setenv.go", "strings.ReplaceAll(s, \"'\", `'\\''`)", "s",
		suite{"agent/files", "^TestAQuotedWordIsReadAsItIsAndNotRun$"}},
	{"S18", "agent/files/followedset.go", "!(disk.IsShown(set.key, SetFile, m.place) && disk.IsShown(set.key, SetEnvFile, m.place))", "!disk.IsShown(set.key, SetFile, m.place)",
		suite{"agent/files", "^TestEveryMemberIsShownWhatItWouldBeShownAlone$"}},
	{"S21", "agent/self/read.go", "|| !st.Mode().IsRegular() || st.Size() > most {", "|| st == nil {",
		suite{"agent/self", "^TestWhatIsNoSmallFileIsNotRead$"}},
	{"S21", "agent/self/read.go", "unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,\n\t\tResolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,",
		"unix.O_NONBLOCK | unix.O_CLOEXEC,",
		suite{"agent/self", "^TestWhatIsNoSmallFileIsNotRead$"}},
	{"S21", "agent/self/pace.go", "since < leastNote {", "false {",
		suite{"agent/self", "^TestReportsHaveTheirPace$"}},
	{"S21", "agent/self/pace.go", "over > 0 {", "false && over > 0 {",
		suite{"agent/self", "^TestReportsHaveTheirPace$"}},
	{"S21", "records/claim.go", "case p.Term == best.Term:\n\t\t\tleads = false", "case false:\n\t\t\tleads = false",
		suite{"records", "^TestWhoLeads$"}},
	{"S21", "records/claim.go", "!p.Leads || !p.Ready:", "!p.Leads:",
		suite{"records", "^TestWhoLeads$"}},
	{"S2", "server/plan/shrink.go", "if set.Replicas() == 0 {", "if false {",
		suite{"server/plan", "^TestScenarios$"}},
}
