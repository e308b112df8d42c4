package cache

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// A set that is gone is looked at for as long as a volume of it goes, or a person asked
// something of one.
func TestWhatASetLeftBehindRemainsUntilItIsDone(t *testing.T) {
	s := memstore.New()
	c, _ := start(t, s)
	id := spec.Identity{Namespace: "default", Set: "s0"}
	volume := func(fate records.VolumeFate) store.Op {
		return put(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v", Node: "n0", Fate: fate})
	}
	asked := put(store.VolumeRequestKey(id, "data"), records.VolumeRequest{ID: id, Claim: "data", Volume: "v", Verb: records.VerbReclaim})
	for _, step := range []struct {
		what string
		op   store.Op
		want int
	}{
		{"a kept volume", volume(records.FateKeep), 0},
		{"a request", asked, 1},
		{"none any more", store.Del(asked.Key), 0},
		{"a volume that is to go", volume(records.FateDelete), 1},
		{"one that goes", volume(records.FateReclaiming), 1},
	} {
		wait(t, c, commit(t, s, step.op))
		c.Look(func(v View) {
			if got := v.RemovedSets(); len(got) != step.want {
				t.Errorf("%s: remains %v; want %d", step.what, got, step.want)
			}
		})
	}
}

// What a node said before a volume came back from a fate is not heard any more; of one in
// the trash it is heard when a person wants it back.
func TestWhatWasSaidInAnEarlierTurnIsVoid(t *testing.T) {
	s := memstore.New()
	c, _ := start(t, s)
	id := spec.Identity{Namespace: "default", Set: "s0"}
	said := func(turn int) store.Op {
		return put(store.VolumeReportKey(id, "data", "v"), records.VolumeReport{ID: id, Claim: "data", Volume: "v", Node: "n0", State: records.VolumeTrashed, Turn: turn})
	}
	volume := put(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v", Node: "n0", Fate: records.FateReclaiming, Turn: 2})
	ask := func(verb records.VolumeVerb, v records.VolumeID) store.Op {
		return put(store.VolumeRequestKey(id, "data"), records.VolumeRequest{ID: id, Claim: "data", Volume: v, Verb: verb})
	}
	for _, step := range []struct {
		what string
		op   store.Op
		want bool
	}{
		{"no record, and nobody asks", said(1), false},
		{"a person gives it up", ask(records.VerbReclaim, "v"), false},
		{"a person wants another back", ask(records.VerbRestore, "w"), false},
		{"a person wants it back", ask(records.VerbRestore, "v"), true},
		{"its record is of a later turn", volume, false},
		{"and so is what is said", said(2), true},
	} {
		wait(t, c, commit(t, s, step.op))
		c.Look(func(v View) {
			w := v.World(id.Ref())
			if got := w.Said(id, "data") != nil; got != step.want {
				t.Errorf("%s: heard %v; want %v", step.what, got, step.want)
			}
		})
	}
}

// A volume comes back from the node that a person named, and from no other that says it has it.
func TestAVolumeIsWantedBackFromTheNodeThatWasNamed(t *testing.T) {
	id := spec.Identity{Namespace: "default", Set: "s0"}
	for _, c := range []struct {
		name     string
		asked    spec.NodeName
		says     spec.NodeName
		unproven bool
		want     bool
	}{
		{"that node says so", "n0", "n0", false, true},
		{"only by its word, and it was named", "n0", "n0", true, true},
		{"another says so by now", "n0", "n1", false, false},
		{"an old request names nobody", "", "n0", false, true},
		{"... and a word alone is not enough for it", "", "n0", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memstore.New()
			cache, _ := start(t, s)
			wait(t, cache, commit(t, s,
				put(store.VolumeReportKey(id, "data", "v"), records.VolumeReport{ID: id, Claim: "data", Volume: "v", Node: c.says, State: records.VolumeTrashed, Unproven: c.unproven}),
				put(store.VolumeRequestKey(id, "data"), records.VolumeRequest{ID: id, Claim: "data", Volume: "v", Verb: records.VerbRestore, Node: c.asked})))
			cache.Look(func(v View) {
				w := v.World(id.Ref())
				if got := w.Said(id, "data") != nil; got != c.want {
					t.Errorf("heard %v; want %v", got, c.want)
				}
			})
		})
	}
}

// A node on which a volume of an identity was left is known until it says what became of it.
func TestWhereAVolumeWasLeftIsKnown(t *testing.T) {
	s := memstore.New()
	c, _ := start(t, s)
	id := spec.Identity{Namespace: "default", Set: "s0"}
	said := func(v records.VolumeID, node spec.NodeName, state records.VolumeState) store.Op {
		return put(store.VolumeReportKey(id, "data", v), records.VolumeReport{ID: id, Claim: "data", Volume: v, Node: node, State: state})
	}
	for _, step := range []struct {
		what string
		op   store.Op
		want []spec.NodeName
	}{
		{"one in the trash", said("v", "n0", records.VolumeTrashed), nil},
		{"one that was left", said("w", "n1", records.VolumeLeft), []spec.NodeName{"n1"}},
		{"another, on a node before", said("x", "n0", records.VolumeLeft), []spec.NodeName{"n0", "n1"}},
		{"a second one there", said("y", "n0", records.VolumeLeft), []spec.NodeName{"n0", "n1"}},
		{"one of them is out of the way", said("w", "n1", records.VolumeTrashed), []spec.NodeName{"n0"}},
	} {
		wait(t, c, commit(t, s, step.op))
		c.Look(func(v View) {
			var got []spec.NodeName
			for _, slot := range v.World(id.Ref()).Slots {
				got = append(got, slot.Left...)
			}
			if !slices.Equal(got, step.want) {
				t.Errorf("%s: left on %v; want %v", step.what, got, step.want)
			}
		})
	}
}
