package main

// upgradeFaults are faults of what one release owes the next (SAFETY S2, S3, S7, S16).
var upgradeFaults = []fault{
	{"S16", "store/format.go", "if now == nil || now.Lowest < want.Lowest {", "if now != nil {",
		suite{"store", "^TestTheFormatRisesWithTheFirstOfAKindThatIsNew$"}},
	{"S16", "store/format.go", "\t\tt.If = append(t.If[:len(t.If):len(t.If)], Seen(FormatKey, kvs[FormatKey].Mod))\n", "",
		suite{"store", "^TestTwoServersRaiseTheFormatOnce$"}},
	{"S16", "server/server.go", "store.CheckFormat(kvs, store.Format)", "store.CheckFormat(kvs, store.Format+9)",
		suite{"server", "^TestAServerOfAnEarlierFormatWritesNothing$"}},
	{"S16", "server/peers/peers.go", "max(int(r.GetKnowsFormat()), unsaidFormat)", "store.Format + 9",
		suite{"server/peers", "^TestAServerThatKnowsTooLittleOfTheStoreIsNotAdded$"}},
	{"S16", "server/format.go", "if why != \"\" {", "if false {",
		suite{"server", "^TestAServerEndsWhenAnotherOneRaisesTheFormat$"}},
	{"S7", "server/engine/evaluate.go", "v.Seen(store.FormatKey), ", "",
		suite{"server/engine", "^TestEachDecisionComparesAllItReliedOn$"}},
	{"S3", "agent/watchdog/loop.go", "if w.Displace != nil && w.able() {", "if w.Displace != nil {",
		suite{"agent/watchdog", "^TestAWatchdogOfAnotherReleaseIsReplacedByOneThatCanGuard$"}},
	{"S3", "agent/watchdog/start.go", " || but != \"\" && program.Runs(pid, but)", "",
		suite{"cmd/stead-node", "^TestAWatchdogGivesWayToOneOfAnotherRelease$"}},
	{"S2", "proto/protocol.go", "case theirs.oldest > mine.newest:", "case false:",
		suite{"proto", "^TestSidesThatShareNoProtocolAreRefused$"}},
	{"S2", "server/access/grpc.go", "ChainStreamInterceptor(streamFits, ", "ChainStreamInterceptor(",
		suite{"server", "^TestACallerOfAnotherProtocolIsRefused$"}},
	{"S2", "spec/hash.go", "[]byte(\"stead template 1\\n\")", "[]byte(\"stead template 3\\n\")",
		suite{"test/previous", "^TestAHealthyClusterOfThePreviousReleaseIsLeftAlone$"}},
}
