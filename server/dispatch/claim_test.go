package dispatch

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

var files = spec.ClaimIdentity("default", "files")

func TestALifeIsToldOnWhichClaimsNoLifeWasReady(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	m := testMember(0, 10, "n1", "uid1")
	m.Volumes = []records.MemberVolume{{Claim: "files", Number: 2, Object: true}, {Claim: "old", Number: 1, Object: true}}
	r.Put(store.IdentityKey(ident(0)), store.Encode(records.IdentityRecord{ID: ident(0), LastToken: token(10), Address: addr(0)}))
	r.Put(store.IdentityKey(files), store.Encode(records.IdentityRecord{ID: files, VolumeReady: map[spec.ClaimName]int{"files": 1}}))
	old := spec.ClaimIdentity("default", "old")
	r.Put(store.IdentityKey(old), store.Encode(records.IdentityRecord{ID: old, VolumeReady: map[spec.ClaimName]int{"old": 1}}))
	r.Put(store.MemberKey(ident(0)), store.Encode(m))
	l := n.lives(n.wanted())[0]
	if !slices.Equal(l.UnusedClaims, []spec.ClaimName{"files"}) || len(l.FreshVolumes) != 0 {
		t.Errorf("unused %v, fresh %v", l.UnusedClaims, l.FreshVolumes)
	}
}

func TestAReportAboutTheVolumeOfAClaimNamesTheClaim(t *testing.T) {
	const volume = "0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		report records.VolumeReport
		want   bool
	}{
		"a claim's":                {records.VolumeReport{ID: files, Claim: "files", Volume: volume}, true},
		"of a claim with a dot":    {records.VolumeReport{ID: spec.ClaimIdentity("default", "a.b"), Claim: "a.b", Volume: volume}, true},
		"another claim's":          {records.VolumeReport{ID: files, Claim: "other", Volume: volume}, false},
		"a claim of no name":       {records.VolumeReport{ID: spec.ClaimIdentity("default", ""), Volume: volume}, false},
		"a claim that is no name":  {records.VolumeReport{ID: spec.ClaimIdentity("default", "a/b"), Claim: "a/b", Volume: volume}, false},
		"a claim in no namespace":  {records.VolumeReport{ID: spec.ClaimIdentity("a/b", "files"), Claim: "files", Volume: volume}, false},
		"an ordinal":               {records.VolumeReport{ID: spec.Identity{Namespace: "default", Set: files.Set, Ordinal: 1}, Claim: "files", Volume: volume}, false},
		"a volume that is no name": {records.VolumeReport{ID: files, Claim: "files", Volume: "../x"}, false},
	} {
		if got := wellFormed(c.report); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if canBeMember(files) {
		t.Error("a claim can be a member")
	}
}
