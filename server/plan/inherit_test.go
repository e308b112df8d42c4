package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// unused makes the kept volume of an ordinal one on which no life was ever ready.
func unused(ordinals ...int) func(*World) {
	return func(w *World) {
		for _, o := range ordinals {
			id := slotOf(w, spec.Identity{Ordinal: o}).Identity
			id.ReadyOnce, id.VolumeReady = "", nil
		}
	}
}

// SAFETY S19: bootstrapped belongs to the data.
func TestASetThatTakesBackDataIsBornBootstrapped(t *testing.T) {
	check(t, []rule{
		{name: "used volumes of an earlier set: marked before any member starts", world: "parallel 2 uid=u2 fresh volumes n1 0:volume 1:volume",
			want: "inherited start=0/Create@n1 start=1/Create@n1 | 0:Starting 1:Starting"},
		{name: "one of them is enough", world: "ordered 3 uid=u2 fresh volumes n1 2:volume", want: "inherited start=0/Create@n1 | 0:Starting 1:WaitingForPredecessor 2:WaitingForPredecessor"},
		{name: "also that of a member which is not wanted", world: "ordered 1 uid=u2 fresh volumes n1 7:volume", want: "inherited start=0/Create@n1 | 0:Starting"},
		{name: "also that of a claim which the set does not have", world: "ordered 1 uid=u2 fresh n1 0:volume", want: "inherited start=0/Create@n1 | 0:Starting"},
		{name: "one that is being looked for may be there", world: "ordered 1 uid=u2 fresh volumes n1 7:volume=Lost", want: "inherited start=0/Create@n1 | 0:Starting 7:VolumeReclaiming"},
		{name: "so may one that is being brought back", world: "ordered 1 uid=u2 fresh volumes n1 7:volume=Restoring", want: "inherited start=0/Create@n1 | 0:Starting 7:VolumeRestoring"},
		{name: "one that is being given up is not taken back", world: "ordered 1 uid=u2 fresh volumes n1 7:volume=Reclaiming", want: "start=0/Create@n1 | 0:Starting 7:VolumeReclaiming"},
		{name: "one on which nobody was ready holds no data", world: "ordered 1 uid=u2 fresh volumes n1 7:volume", change: unused(7), want: "start=0/Create@n1 | 0:Starting"},
		{name: "but it does when its set was bootstrapped", world: "ordered 1 uid=u2 was volumes n1 7:volume", change: unused(7), want: "inherited start=0/Create@n1 | 0:Starting"},
		{name: "nothing is kept of a set that was bootstrapped", world: "ordered 1 uid=u2 was volumes n1 7:none", want: "forgotten start=0/Create@n1 | 0:Starting"},
		{name: "nor is what is being given up", world: "ordered 1 uid=u2 was volumes n1 7:volume=Reclaiming", want: "forgotten start=0/Create@n1 | 0:Starting 7:VolumeReclaiming"},
		{name: "a volume used by this set while it forms is not taken back", world: "ordered fresh 2 volumes n1 0:ready", want: "start=1/Create@n1 | 1:Starting"},
		{name: "a bootstrapped set has nothing to inherit", world: "ordered 1 uid=u2 volumes n1 0:volume", want: "start=0/Create@n1 | 0:Starting"},
		{name: "a volume without the record of its identity counts as used", world: "ordered 1 uid=u2 fresh volumes n1 7:volume",
			change: func(w *World) { w.Slots[0].Identity = nil }, want: "inherited start=0/Create@n1 | 0:Starting"},
		{name: "a set that is deleted writes no mark", world: "ordered 1 uid=u2 fresh deleting volumes n1 0:volume", want: "remove |"},
		{name: "nobody acts for an orphaned set", world: "ordered 1 uid=u2 fresh orphaned volumes n1 0:volume", want: "| 0:Orphaned"},
		{name: "what is remembered of a set goes when nothing of it is kept", world: "was gone n1 0:volume=Reclaiming 1:none", want: "forgotten | 0:VolumeReclaiming"},
		{name: "it stays as long as one volume is kept", world: "was gone n1 0:volume=Reclaiming 1:volume", want: "| 0:VolumeReclaiming"},
		{name: "and while one may be there", world: "was gone n1 0:volume=Lost", want: "| 0:VolumeReclaiming"},
	})
}

// A volume from the trash may come back while a set forms: from then on it has data.
func TestAVolumeThatIsBroughtBackMakesItsSetBootstrapped(t *testing.T) {
	w := world(t, "ordered 1 fresh volumes n1 0:starting 3:none")
	w.Slots[0].Identity.ReadyOnce, w.Slots[0].Identity.VolumeReady = "", nil
	q := records.VolumeRequest{ID: w.Slots[1].ID, Claim: "data", Volume: "old", Verb: records.VerbRestore, Token: w.Slots[1].Identity.LastToken}
	w.Slots[1].Asked = map[spec.ClaimName]*records.VolumeRequest{"data": &q}
	w.Slots[1].Said = map[spec.ClaimName]*records.VolumeReport{"data": {
		ID: q.ID, Claim: "data", Volume: "old", Number: 1, Class: spec.LocalClass, Node: "n1", State: records.VolumeTrashed}}
	p := Next(w)
	if got, want := brief(p), "restore=3 | 0:Starting 3:VolumeRestoring"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	w = apply(w, p)
	if got, want := brief(Next(w)), "inherited | 0:Starting 3:VolumeRestoring"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUsed(t *testing.T) {
	marked := func(n int) map[spec.ClaimName]int { return map[spec.ClaimName]int{"data": n} }
	for _, c := range []struct {
		name   string
		number int
		rec    *records.IdentityRecord
		want   bool
	}{
		{"a life was ready on it", 2, &records.IdentityRecord{ReadyOnce: "u1", VolumeReady: marked(2)}, true},
		{"a life was ready on the one before only", 2, &records.IdentityRecord{ReadyOnce: "u1", VolumeReady: marked(1)}, false},
		{"no life was ever ready", 1, &records.IdentityRecord{}, false},
		{"marks are made, and none of this claim", 1, &records.IdentityRecord{ReadyOnce: "u1", VolumeReady: map[spec.ClaimName]int{"wal": 1}}, false},
		{"a life was ready, and no mark was ever made", 1, &records.IdentityRecord{ReadyOnce: "u1"}, true},
		{"brought back by hand", 3, &records.IdentityRecord{VolumeReady: marked(3)}, true},
		{"nothing is known of its identity", 1, nil, true},
	} {
		if got := Used(&records.Volume{Claim: "data", Number: c.number}, c.rec); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAMembersVolumesAreUsedWhenOneOfThemIs(t *testing.T) {
	for _, c := range []struct{ name, words, want string }{
		{"none", "0:none", ""},
		{"used", "0:volume", records.VolumesUsed},
		{"being looked for", "0:volume=Lost", records.VolumesUsed},
		{"being given up", "0:volume=Reclaiming", ""},
	} {
		w := world(t, "ordered 1 n1 "+c.words)
		if got := VolumesState(&w.Slots[0]); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		unused(0)(&w)
		if got := VolumesState(&w.Slots[0]); c.want != "" && got != records.VolumesNew {
			t.Errorf("%s, never ready: got %q, want %q", c.name, got, records.VolumesNew)
		}
	}
}
