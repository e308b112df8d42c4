package engine

import (
	"fmt"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// ask writes a person's request as control does, for the volume that stands.
func (c *cluster) ask(id spec.Identity, verb records.VolumeVerb) (q records.VolumeRequest) {
	c.t.Helper()
	c.cache.Look(func(v cache.View) {
		rec := v.Identity(id)
		q = records.VolumeRequest{ID: id, Claim: "data", Verb: verb, Token: rec.LastToken}
		if vol := v.Volume(id, "data"); vol != nil {
			q.Volume = vol.UID
		}
		for _, r := range v.VolumeReportsOn("n1") {
			if verb == records.VerbRestore && r.ID == id && r.State == records.VolumeTrashed {
				q.Volume = r.Volume
			}
		}
	})
	c.commit(store.Put(store.VolumeRequestKey(id, "data"), store.Encode(q)))
	return q
}

// noRequest: what was asked was done, or is void.
func noRequest(v cache.View, id spec.Identity) bool {
	return v.ModRev(store.VolumeRequestKey(id, "data")) == 0
}

// Two engines, of which the first dies at its nth write: what a person asked is done once,
// to the volume that was named and to no other.
func TestACrashBetweenAnyTwoWritesOfWhatIsDoneByHand(t *testing.T) {
	down := func(c *cluster) { // db-1 and db-2 are scaled away
		_, stop := c.engine("before", c.store)
		defer stop()
		c.set(3, volumes)
		c.until("ready", ready(3))
		c.set(1, volumes)
		c.until("scaled down", ready(1))
	}
	given := func(v cache.View) bool { return v.Volume(member(2), "data") == nil && noRequest(v, member(2)) }
	for name, act := range map[string]struct {
		before func(*cluster)
		verb   records.VolumeVerb
		id     spec.Identity
		done   func(v cache.View, was records.VolumeRequest) bool
		least  int // writes, or the test shows little
	}{
		"given up": {down, records.VerbReclaim, member(2), func(v cache.View, _ records.VolumeRequest) bool { return given(v) }, 3},
		"brought back": {
			func(c *cluster) {
				down(c)
				c.ask(member(2), records.VerbReclaim)
				_, stop := c.engine("given up", c.store)
				defer stop()
				c.until("it lies in the trash", given)
			}, records.VerbRestore, member(2), func(v cache.View, was records.VolumeRequest) bool {
				vol := v.Volume(member(2), "data")
				return vol != nil && vol.UID == was.Volume && vol.Fate == records.FateKeep && noRequest(v, member(2))
			}, 3,
		},
		"lost": {
			func(c *cluster) {
				_, stop := c.engine("before", c.store)
				defer stop()
				c.set(1, volumes)
				c.until("ready", ready(1))
				c.set(0, volumes)
				c.until("scaled down", ready(0))
				var id records.VolumeID
				c.cache.Look(func(v cache.View) { id = v.Volume(member(0), "data").UID })
				c.node.lose(id)
				c.set(1, volumes)
				c.until("its volume is missed", func(v cache.View) bool {
					r := v.Report(member(0))
					return r != nil && r.Cause == causes.VolumeMissing
				})
			}, records.VerbLost, member(0), func(v cache.View, was records.VolumeRequest) bool {
				vol := v.Volume(member(0), "data")
				return vol != nil && vol.UID != was.Volume && vol.Number == 2 && ready(1)(v) && noRequest(v, member(0))
			}, 5,
		},
	} {
		for _, after := range []bool{false, true} {
			for n, died := 1, true; died && !t.Failed(); n++ { // go test -failfast runs none after one failed
				t.Run(fmt.Sprintf("%s, write %d, done %v", name, n, after), func(t *testing.T) {
					inCluster(t, func(c *cluster) {
						act.before(c)
						others := map[records.VolumeID]bool{}
						was := c.ask(act.id, act.verb)
						c.cache.Look(func(v cache.View) {
							for _, vol := range v.Volumes(db) {
								others[vol.UID] = vol.UID != was.Volume
							}
						})
						dying := newCrash(c.store, n, after)
						_, stopA := c.engine("a", dying)
						defer stopA()
						c.until("the first has done all, or died", func(v cache.View) bool { return dying.isDead() || act.done(v, was) })
						died = dying.isDead()
						_, stopB := c.engine("b", c.store)
						defer stopB()
						c.until("it is done", func(v cache.View) bool { return act.done(v, was) })
						c.cache.Look(func(v cache.View) {
							for _, vol := range v.Volumes(db) {
								if vol.Fate != records.FateKeep {
									t.Errorf("left %+v", vol)
								}
								delete(others, vol.UID)
							}
							delete(others, was.Volume)
							if len(others) > 0 {
								t.Errorf("others are gone, too: %v", others)
							}
						})
					})
				})
				if !died && n <= act.least {
					t.Errorf("%s: only %d writes; the test shows little", name, n-1)
				}
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
		was := c.ask(member(1), records.VerbReclaim)
		c.until("it is void", func(v cache.View) bool { return noRequest(v, member(1)) })
		c.until("ready again", ready(2))
		c.set(1, volumes)
		c.until("scaled down again", ready(1))
		c.cache.Look(func(v cache.View) {
			if vol := v.Volume(member(1), "data"); vol == nil || vol.UID != was.Volume || vol.Fate != records.FateKeep {
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
			store.Put(store.VolumeKey(id, "data"), store.Encode(records.Volume{ID: id, Claim: "data", UID: "v", Number: 1, Class: "local", Node: "n1", Fate: records.FateKeep})),
			store.Put(store.IdentityKey(id), store.Encode(records.IdentityRecord{ID: id, LastToken: life})),
			store.Put(store.VolumeRequestKey(id, "data"), store.Encode(records.VolumeRequest{ID: id, Claim: "data", Volume: "v", Verb: records.VerbReclaim, Token: life})))
		_, stop := c.engine("a", c.store)
		defer stop()
		c.until("it is gone", func(v cache.View) bool { return v.Volume(id, "data") == nil && noRequest(v, id) })
	})
}
