package main

// serverFaults are faults of several servers with the embedded store (SAFETY S8).
var serverFaults = []fault{
	{"S8", "server/quorum/quorum.go", "if known != nil && known.UID != self.UID {", "if false {",
		suite{"server/quorum", "^TestTheNextStepOfAJoin$"}},
	{"S8", "server/quorum/quorum.go", "case m.Name == self.Name:", "case m.Name == self.Name && !m.Learner && m.Peer != self.Peer:",
		suite{"server/quorum", "^TestTheNextStepOfAJoin$"}},
	{"S8", "server/quorum/quorum.go", "if have.Term >= was.Term && have.Index >= was.Index {", "if have.Index >= was.Index {",
		suite{"server/quorum", "^TestDataThatWentBackIsRefused$"}},
	{"S8", "server/quorum/quorum.go", "if have.Term >= was.Term && have.Index >= was.Index {", "if have.Term >= was.Term {",
		suite{"server/quorum", "^TestDataThatWentBackIsRefused$"}},
	{"S8", "server/peers/marks.go", "was = was.Or(stores.Mark{Term: seen.GetTerm(), Index: seen.GetIndex()})", "_ = seen",
		suite{"server/peers", "^TestDataThatWentBackIsNoticed$"}},
	{"S8", "server/peers/marks.go", "was := kept.Marks[member]", "was := kept.Marks[\"\"]",
		suite{"server/peers", "^TestDataThatWentBackIsNoticed$"}},
	{"S8", "store/etcdembed/backup.go", "err = durable.Put(filepath.Join(dir, markFile), []byte(name), 0o600)", "_ = markFile",
		suite{"store/etcdembed", "^TestOneOfThreeGoesOnAlone$"}},
	{"S8", "cmd/stead/serverrecover.go", "if answers(ctx, a, m.Peer) {", "if false {",
		suite{"cmd/stead", "^TestNoServerIsRecoveredWhileALostOneAnswers$"}},
	{"S8", "cmd/stead/serverrecover.go", "wrong = wrong || name != \"\" && !slices.Contains(lost, name)", "_ = name",
		suite{"cmd/stead", "^TestEveryLostServerIsNamed$"}},
}
