package main

// rotations are guards of the rotation of the key and of the authority (SAFETY S23), and of who let in whom (S9), each taken out.
var rotations = []fault{
	{"S23", "server/rotation/keys.go", "len(lacking) > 0 {", "len(lacking) > len(k.Servers) {",
		suite{"server/rotation", "^TestTheNextStepOfAKeysRotation$"}},
	{"S23", "server/rotation/keys.go", "case k.Under[id] > 0:", "case k.Under[id] < 0:",
		suite{"server/keyring", "^TestAKeyUnderWhichSomethingIsStays$"}},
	{"S23", "server/rotation/keys.go", "if o.Ring == nil || !slices.Contains(o.Has, o.Ring.Sealing) {", "if o.Ring == nil {",
		suite{"server/rotation", "^TestWhatAServerDoesAboutItsOwnKeys$"}},
	{"S23", "server/keyring/lead.go", "If:   []store.Compare{store.Seen(key, mod)},", "",
		suite{"server/keyring", "^TestWhatIsSealedAnewIsComparedWithWhatWasRead$"}},
	{"S23", "server/keyring/own.go", "if s.cfg.Moved != nil {", "if false {",
		suite{"server/keyring", "^TestAKeyIsRotatedWhileServersRun$"}},
	{"S23", "server/control/edit.go", "store.Seen(store.KeyringKey, kvs[store.KeyringKey].Mod)", "store.NotHeld()",
		suite{"server/control", "^TestASecretIsNotSealedWithAKeyThatWasReplacedMeanwhile$"}},
	{"S23", "server/access/key.go", "return key.Use(id)", "return nil",
		suite{"server/access", "^TestARestoredStoreIsSealedWithItsOwnKey$"}},
	{"S23", "server/seal/ring.go", "if more, err := ringOf(there); err == nil {", "if more, err := ringOf(there); err == nil && false {",
		suite{"server/seal", "^TestWhatSomebodyPutIntoTheFileStays$"}},
	{"S9", "server/access/letin.go", "txn.If = append(txn.If, store.Seen(key, kvs[key].Mod))", "",
		suite{"server/access", "^TestWhatAClientLetInIsKnown$"}},
	{"S9", "server/access/letin.go", "if !also || n.Revoked {", "if n != (Admitted{}) {",
		suite{"server/access", "^TestWhatAClientLetInIsKnown$"}},
}
