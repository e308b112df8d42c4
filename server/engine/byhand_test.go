package engine

import (
	"fmt"
	"testing"

	"github.com/stead-project/stead/server/world"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// ask writes a person's request as control does, for the volume that stands.
func (c *cluster) ask(id spec.Identity, verb spec.VolumeVerb) (q spec.VolumeRequest) {
	c.t.Helper()
	c.cache.Look(func(v world.View) {
		rec, _ := v.Identity(id)
		q = spec.VolumeRequest{ID: id, Claim: "data", Verb: verb, Token: rec.LastToken}
		if vol := v.Volume(id, "data"); vol != nil {
			q.Volume = vol.UID
		}
	})
	c.commit(store.Put(store.VolumeRequestKey(id, "data"), store.Encode(q)))
	return q
}

// noRequest: what was asked was done, or is void.
func noRequest(v world.View, id spec.Identity) bool {
	_, rev := v.VolumeRequest(id, "data")
	return rev == 0
}

// Two engines, of which the first dies at its nth write: the volume that was named goes,
// once, and nothing else.
func TestACrashBetweenAnyTwoWritesOfGivingUpByHand(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			died := false
			t.Run(fmt.Sprintf("write %d, done %v", n, after), func(t *testing.T) {
				inCluster(t, func(c *cluster) {
					_, stop := c.engine("a", c.store)
					c.set(3, volumes)
					c.until("ready", ready(3))
					c.set(1, volumes)
					c.until("scaled down", ready(1))
					stop()
					was := c.ask(member(2), spec.VerbReclaim)
					dying := newCrash(c.store, n, after)
					_, stopA := c.engine("a", dying)
					defer stopA()
					c.until("the first has done all, or died", func(v world.View) bool {
						return dying.isDead() || v.Volume(member(2), "data") == nil && noRequest(v, member(2))
					})
					died = dying.isDead()
					_, stopB := c.engine("b", c.store)
					defer stopB()
					c.until("it is done", func(v world.View) bool { return v.Volume(member(2), "data") == nil && noRequest(v, member(2)) })
					c.cache.Look(func(v world.View) {
						if left := v.Volumes(db); len(left) != 2 || left[0].Fate != spec.FateKeep || left[1].Fate != spec.FateKeep {
							t.Errorf("left %+v; want those of the two others", left)
						}
						if v.VolumeReportRev(member(2), "data", was.Volume) == 0 {
							t.Error("its node never said that it is gone")
						}
					})
				})
			})
			if !died {
				if n < 4 {
					t.Errorf("only %d writes; the test shows little", n-1)
				}
				break
			}
		}
	}
}

// What was asked while the set wants the member again never takes its volume, whoever
// comes first.
func TestAVolumeThatWasTakenBackIsNotGivenUp(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		c.set(2, volumes)
		c.until("ready", ready(2))
		c.set(1, volumes)
		c.until("scaled down", ready(1))
		c.set(2, volumes)
		was := c.ask(member(1), spec.VerbReclaim)
		c.until("it is void", func(v world.View) bool { return noRequest(v, member(1)) })
		c.until("ready again", ready(2))
		c.set(1, volumes)
		c.until("scaled down again", ready(1))
		c.cache.Look(func(v world.View) {
			if vol := v.Volume(member(1), "data"); vol == nil || vol.UID != was.Volume || vol.Fate != spec.FateKeep {
				t.Errorf("it has %+v; want the volume it had", vol)
			}
		})
	})
}

// Nothing wakes a new leader but that it begins: it finds what was asked before.
func TestANewLeaderFindsWhatWasAskedOfWhatASetLeftBehind(t *testing.T) {
	inCluster(t, func(c *cluster) {
		id := member(0)
		life := spec.Token{Epoch: 1, Number: 7}
		c.commit(
			store.Put(store.VolumeKey(id, "data"), store.Encode(spec.Volume{ID: id, Claim: "data", UID: "v", Number: 1, Class: "local", Node: "n1", Fate: spec.FateKeep})),
			store.Put(store.IdentityKey(id), store.Encode(spec.IdentityRecord{ID: id, LastToken: life})),
			store.Put(store.VolumeRequestKey(id, "data"), store.Encode(spec.VolumeRequest{ID: id, Claim: "data", Volume: "v", Verb: spec.VerbReclaim, Token: life})))
		_, stop := c.engine("a", c.store)
		defer stop()
		c.until("it is gone", func(v world.View) bool { return v.Volume(id, "data") == nil && noRequest(v, id) })
	})
}
