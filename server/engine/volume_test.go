package engine

import (
	"fmt"
	"testing"

	"github.com/stead-project/stead/server/world"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// A leader that begins finds what was begun to be given up before, also of sets that
// are gone.
func TestANewLeaderGoesOnGivingUpWhatASetLeftBehind(t *testing.T) {
	inCluster(t, func(c *cluster) {
		id := member(0)
		volume := func(claim spec.ClaimName, fate spec.VolumeFate) store.Op {
			return store.Put(store.VolumeKey(id, claim), store.Encode(spec.Volume{
				ID: id, Claim: claim, UID: spec.VolumeID("v-" + claim), Number: 1, Class: "local", Node: "n1", Fate: fate,
			}))
		}
		c.commit(volume("a", spec.FateReclaiming), volume("b", spec.FateDelete), volume("c", spec.FateKeep),
			store.Put(store.AddressKey(ip), store.Encode(spec.AddressRecord{Address: ip, ID: id})),
			store.Put(store.IdentityKey(id), store.Encode(spec.IdentityRecord{ID: id, Address: ip, LastToken: spec.Token{Epoch: 1, Number: 7}})))
		c.node.report()
		_, stop := c.engine("a", c.store)
		defer stop()
		c.until("what was to go is gone", func(v world.View) bool { return len(v.Volumes(db)) == 1 })
		c.cache.Look(func(v world.View) {
			rec, _ := v.Identity(id)
			if got := v.Volumes(db)[0]; got.Claim != "c" || rec.Address != ip || v.Addresses()[ip.String()].FreedAt != nil {
				t.Errorf("left %+v and %+v; want the kept volume and the address", got, rec)
			}
		})
	})
}

// Scaled down and up at once, with a node that answers late: whatever is decided when,
// the member comes back with its volume, or with one that has the next number.
func TestScaledUpAgainBeforeTheVolumeIsGone(t *testing.T) {
	for _, answered := range []bool{false, true} {
		t.Run(fmt.Sprintf("the member has stopped %v", answered), func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				_, stop := c.engine("a", c.store)
				defer stop()
				scaled := retention(spec.Delete, spec.Retain)
				c.set(2, volumes, scaled)
				c.until("ready", ready(2))
				var was *spec.Volume
				c.cache.Look(func(v world.View) { was = v.Volume(member(1), "data") })
				if !answered {
					c.node.behave(1, "hold")
				}
				c.set(1, volumes, scaled)
				c.until("its fate is recorded", func(v world.View) bool {
					vol := v.Volume(member(1), "data")
					return vol == nil || vol.Fate != spec.FateKeep
				})
				if answered {
					c.until("it is gone", func(v world.View) bool { return v.Volume(member(1), "data") == nil })
				}
				c.set(2, volumes, scaled)
				c.until("it is decided again", func(v world.View) bool {
					vol := v.Volume(member(1), "data")
					return vol != nil && vol.Fate == spec.FateKeep
				})
				c.node.behave(1, "")
				c.until("ready again", ready(2))
				c.cache.Look(func(v world.View) {
					now := v.Volume(member(1), "data")
					if same := now.UID == was.UID; same == answered || now.Number != was.Number+one(answered) {
						t.Errorf("it has %+v, had %+v", now, was)
					}
				})
			})
		})
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
