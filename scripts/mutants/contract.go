package main

// contract are what members are told and say of themselves (docs/MEMBERS.md), each taken out.
var contract = []fault{
	{"S21", "agent/files/setenv.go", "strings.ReplaceAll(s, \"'\", `'\\''`)", "s",
		suite{"agent/files", "^TestAQuotedWordIsReadAsItIsAndNotRun$"}},
	{"S18", "agent/files/followedset.go", "!(disk.IsShown(set.key, SetFile, m.place) && disk.IsShown(set.key, SetEnvFile, m.place))", "!disk.IsShown(set.key, SetFile, m.place)",
		suite{"agent/files", "^TestEveryMemberIsShownWhatItWouldBeShownAlone$"}},
	{"S2", "server/plan/shrink.go", "if set.Replicas() == 0 {", "if false {",
		suite{"server/plan", "^TestScenarios$"}},
}
