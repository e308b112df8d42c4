package world

import (
	"testing"

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
	volume := func(fate spec.VolumeFate) store.Op {
		return put(store.VolumeKey(id, "data"), spec.Volume{ID: id, Claim: "data", UID: "v", Node: "n0", Fate: fate})
	}
	asked := put(store.VolumeRequestKey(id, "data"), spec.VolumeRequest{ID: id, Claim: "data", Volume: "v", Verb: spec.VerbReclaim})
	for _, step := range []struct {
		what string
		op   store.Op
		want int
	}{
		{"a kept volume", volume(spec.FateKeep), 0},
		{"a request", asked, 1},
		{"none any more", store.Del(asked.Key), 0},
		{"a volume that is to go", volume(spec.FateDelete), 1},
		{"one that goes", volume(spec.FateReclaiming), 1},
	} {
		wait(t, c, commit(t, s, step.op))
		c.Look(func(v View) {
			if got := v.Remains(); len(got) != step.want {
				t.Errorf("%s: remains %v; want %d", step.what, got, step.want)
			}
		})
	}
}
