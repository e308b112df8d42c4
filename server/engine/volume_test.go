package engine

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// A leader that begins finds what was begun to be given up before, also of sets that
// are gone.
func TestANewLeaderGoesOnGivingUpWhatASetLeftBehind(t *testing.T) {
	inCluster(t, func(c *cluster) {
		id := member(0)
		volume := func(claim spec.ClaimName, fate records.VolumeFate) store.Op {
			return store.Put(store.VolumeKey(id, claim), store.Encode(records.Volume{
				ID: id, Claim: claim, UID: records.VolumeID("v-" + claim), Number: 1, Class: "local", Node: "n1", Fate: fate,
			}))
		}
		c.commit(volume("a", records.FateReclaiming), volume("b", records.FateDelete), volume("c", records.FateKeep),
			store.Put(store.AddressKey(ip), store.Encode(records.AddressRecord{Address: ip, ID: id})),
			store.Put(store.IdentityKey(id), store.Encode(records.IdentityRecord{ID: id, Address: ip, LastToken: spec.Token{Epoch: 1, Number: 7}})))
		c.node.report()
		_, stop := c.engine("a", c.store)
		defer stop()
		c.until("what was to go is gone", func(v cache.View) bool { return len(v.Volumes(db)) == 1 })
		c.cache.Look(func(v cache.View) {
			rec := v.Identity(id)
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
				var was *records.Volume
				c.cache.Look(func(v cache.View) { was = v.Volume(member(1), "data") })
				if !answered {
					c.node.behave(1, "hold")
				}
				c.set(1, volumes, scaled)
				c.until("its fate is recorded", func(v cache.View) bool {
					vol := v.Volume(member(1), "data")
					return vol == nil || vol.Fate != records.FateKeep
				})
				if answered {
					c.until("it is gone", func(v cache.View) bool { return v.Volume(member(1), "data") == nil })
				}
				c.set(2, volumes, scaled)
				c.until("it is decided again", func(v cache.View) bool {
					vol := v.Volume(member(1), "data")
					return vol != nil && vol.Fate == records.FateKeep
				})
				c.node.behave(1, "")
				c.until("ready again", ready(2))
				c.cache.Look(func(v cache.View) {
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

// A volume that goes takes the address with it when nothing else of its identity remains,
// and the identity becomes what the plan says.
func TestWithItsLastVolumeAnIdentityLosesItsAddress(t *testing.T) {
	id := member(0)
	bare := &records.IdentityRecord{ID: id, LastToken: spec.Token{Epoch: 1, Number: 1}}
	has := func(address netip.Addr) store.Op {
		return store.Put(store.IdentityKey(id), store.Encode(records.IdentityRecord{ID: id, Address: address, Due: "h"}))
	}
	held := func(by spec.Identity) store.Op {
		return store.Put(store.AddressKey(ip), store.Encode(records.AddressRecord{Address: ip, ID: by}))
	}
	for _, c := range []struct {
		name   string
		ops    []store.Op
		action plan.DropVolume
		freed  bool
		kept   bool // the identity's record stays as it is
	}{
		{"nothing else remains", []store.Op{has(ip), held(id)}, plan.DropVolume{Identity: bare, FreeAddress: true}, true, false},
		{"something remains", []store.Op{has(ip), held(id)}, plan.DropVolume{Identity: bare}, false, false},
		{"it has another's address", []store.Op{has(ip), held(member(1))}, plan.DropVolume{Identity: bare, FreeAddress: true}, false, true},
		{"it has no address", []store.Op{has(netip.Addr{})}, plan.DropVolume{Identity: bare, FreeAddress: true}, false, false},
		{"it has no record", nil, plan.DropVolume{Identity: bare, FreeAddress: true}, false, false},
		{"its record stays", []store.Op{has(ip), held(id)}, plan.DropVolume{}, false, true},
	} {
		look, write := addresses(t, append(c.ops,
			store.Put(store.VolumeKey(id, "data"), store.Encode(records.Volume{ID: id, Claim: "data", UID: "v", Node: "n1", Fate: records.FateReclaiming})),
			store.Put(store.VolumeReportKey(id, "data", "v"), store.Encode(records.VolumeReport{ID: id, Claim: "data", Volume: "v", Node: "n1", State: records.VolumeTrashed})))...)
		c.action.ID, c.action.Claim, c.action.Volume = id, "data", "v"
		var u decision
		look(func(v cache.View) {
			var err error
			u, err = decisionFor(v, db, c.action, time.Now())
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
		write(u.Then...)
		look(func(v cache.View) {
			rec := v.Identity(id)
			r := v.Addresses()[ip.String()]
			if freed, kept := r != nil && r.FreedAt != nil, rec == nil || rec.Due == "h"; freed != c.freed || kept != c.kept || v.Volume(id, "data") != nil {
				t.Errorf("%s: freed %v, kept %v; want %v and %v, and the volume gone", c.name, freed, kept, c.freed, c.kept)
			}
		})
	}
}

// What the volumes of a member have in common is compared once: a key may not stand twice
// in a transaction.
func TestVolumesOfOneMemberAreGivenUpTogether(t *testing.T) {
	id := member(0)
	var ops []store.Op
	var a plan.SetVolumes
	for _, claim := range []spec.ClaimName{"a", "b"} {
		vol := records.Volume{ID: id, Claim: claim, UID: records.VolumeID("v-" + claim), Node: "n1", Fate: records.FateDelete}
		ops = append(ops, store.Put(store.VolumeKey(id, claim), store.Encode(vol)))
		vol.Fate = records.FateReclaiming
		a.Volumes = append(a.Volumes, vol)
	}
	look, _ := addresses(t, ops...)
	look(func(v cache.View) {
		if u, err := decisionFor(v, db, a, time.Now()); err != nil || len(u.Then) != 2 || twice(u) != "" {
			t.Errorf("%v, %d writes, %q stands twice; want two volumes", err, len(u.Then), twice(u))
		}
	})
}
