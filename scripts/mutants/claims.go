package main

// claimFaults are faults of volumes that several members may have (SAFETY S22).
var claimFaults = []fault{
	{"S22", "server/engine/volume.go", "if !proof.Ended(u.Member, u.Report) {", "if false {",
		suite{"server/engine", "^TestAVolumeOfAClaimThatIsUsedIsNotGivenUp$"}},
	{"S22", "server/engine/volume.go", "if len(c.Strays) > 0 || c.Record != nil && !c.Record.Deleting && !asked {", "if c.Record != nil && !c.Record.Deleting && !asked {",
		suite{"server/engine", "^TestAVolumeOfAClaimThatIsUsedIsNotGivenUp$"}},
	{"S22", "server/engine/volume.go", "d.seen(v, store.ClaimKey(volume.ID.Namespace, name))", "",
		suite{"server/engine", "^TestDecisionsCompareTheClaimTheyReliedOn$"}},
	{"S22", "server/engine/decision.go", "d.seen(v, store.ClaimKey(m.ID.Namespace, string(mount.Claim)), store.VolumeRequestKey(owner, mount.Claim))", "",
		suite{"server/engine", "^TestDecisionsCompareTheClaimTheyReliedOn$"}},
	{"S22", "server/plan/claim.go", "case s.claimed[name]:", "case false:",
		suite{"server/plan", "^TestMembersStartWithAClaimsVolume$"}},
	{"S22", "server/plan/claim.go", "case c.Record.Deleting:", "case false:",
		suite{"server/plan", "^TestMembersStartWithAClaimsVolume$"}},
	{"S22", "server/plan/claim.go", "case len(c.Slot.Asked) > 0:", "case false:",
		suite{"server/plan", "^TestMembersStartWithAClaimsVolume$"}},
	{"S22", "server/plan/claim.go", "!v.Fate.Ordered() && c.User(spec.Identity{}) == \"\"", "!v.Fate.Ordered()",
		suite{"server/plan", "^TestAClaimsVolumeGoesOnlyWithItsClaimAndWhenNothingUsesIt$"}},
	{"S22", "server/place/place.go", "case home != \"\" && o.Volume.Node != home:", "case false:",
		suite{"server/plan", "^TestMembersStartWithAClaimsVolume$"}},
	{"S22", "agent/reclaim/work.go", "err = r.withoutUsers(ctx, o)", "err = nil",
		suite{"agent", "^TestTheVolumeOfAClaimIsGivenUpOnlyWhenNoLifeHasIt$"}},
	{"S22", "agent/volume/user.go", "return v.records.write(usersDir, userName(volume, life.ID), life)", "return nil",
		suite{"agent/volume", "^TestWhoHasAVolumeIsKnownToTheNextAgentUntilItIsErased$"}},
}
