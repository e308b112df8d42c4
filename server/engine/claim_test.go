package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

var files = spec.ClaimIdentity("default", "files")

// claim writes the claim "files" as control does.
func (c *cluster) claim(change ...func(*records.ClaimRecord)) {
	c.t.Helper()
	r := records.ClaimRecord{Meta: records.Meta{Namespace: "default", Name: "files"}, Spec: spec.ClaimSpec{
		AccessModes: []string{spec.ReadWriteOnce},
		Resources:   spec.VolumeResources{Requests: map[string]scalar.Quantity{"storage": {Milli: 1 << 30}}},
	}}
	for _, f := range change {
		f(&r)
	}
	c.commit(store.Put(store.ClaimKey("default", "files"), store.Encode(r)))
}

func goes(r *records.ClaimRecord) { r.Deleting = true }

// mounting has the set mount the claim.
func mounting(s *records.Set) {
	s.Spec.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "v", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: "files"}}}
}

func volumeOfClaim(v cache.View) *records.Volume { return v.Volume(files, "files") }

// noneOf: nothing is left of the claim but what its identity remembers.
func noneOf(v cache.View) bool {
	return volumeOfClaim(v) == nil && v.ModRev(store.ClaimKey("default", "files")) == 0
}

func TestAClaimComesIsSharedAndGoes(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("e1", c.store)
		defer stop()
		c.set(2, mounting, parallel)
		c.until("its members wait for it", func(v cache.View) bool {
			st := v.Status(db)
			return st != nil && len(st.Members) == 2 && st.Members[0].Blocked != "" && v.Member(member(0)) == nil
		})
		c.claim()
		c.until("both run", ready(2))
		c.until("its volume is marked as used", func(v cache.View) bool {
			id := v.Identity(files)
			return id != nil && id.VolumeReady["files"] == 1
		})
		var made records.Volume
		c.cache.Look(func(v cache.View) {
			made = *volumeOfClaim(v)
			for i := range 2 {
				if m := v.Member(member(i)); len(m.Volumes) != 1 || m.Volumes[0].ID != made.UID || !m.Volumes[0].Object || m.Node != made.Node {
					t.Errorf("%s has %+v on %s, of volume %+v", m.ID, m.Volumes, m.Node, made)
				}
			}
		})

		c.claim(goes) // while it is used: Kubernetes' protection
		c.set(3)
		c.until("the third waits, and nothing went", func(v cache.View) bool {
			st := v.Status(db)
			return st != nil && len(st.Members) == 3 && st.Members[2].Blocked != "" && v.Member(member(2)) == nil &&
				volumeOfClaim(v).Fate == records.FateKeep && v.ModRev(store.ClaimKey("default", "files")) != 0
		})
		c.set(0)
		c.until("both are gone", noneOf)

		c.claim() // again: another volume, never the one before
		c.set(1)
		c.until("it runs", ready(1))
		c.cache.Look(func(v cache.View) {
			if again := volumeOfClaim(v); again.UID == made.UID || again.Number != 2 {
				t.Errorf("the claim has volume %+v, after %+v", again, made)
			}
		})
		c.set(0, deleting)
		c.until("the set is gone", func(v cache.View) bool { return v.Set(db) == nil })
		c.cache.Look(func(v cache.View) {
			if vol := volumeOfClaim(v); vol == nil || vol.Fate != records.FateKeep {
				t.Errorf("the claim's volume went with the set: %+v", vol)
			}
		})
	})
}

// An engine dies at its nth write, and another goes on: a claim has one volume, and loses it once.
func TestACrashBetweenAnyTwoWritesAboutAClaim(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n, died := 1, true; died && !t.Failed(); n++ {
			t.Run(fmt.Sprintf("write %d, done %v", n, after), func(t *testing.T) {
				inCluster(t, func(c *cluster) {
					c.claim()
					c.set(2, mounting, parallel)
					dying := newCrash(c.store, n, after)
					_, stop := c.engine("a", dying)
					defer stop()
					c.until("both run, or it died", func(v cache.View) bool { return dying.isDead() || ready(2)(v) })
					started := false
					if dying.isDead() {
						_, stop := c.engine("b", c.store)
						defer stop()
						started = true
					}
					c.until("both run", ready(2))
					var made records.VolumeID
					c.cache.Look(func(v cache.View) { made = volumeOfClaim(v).UID })
					c.set(0)
					c.claim(goes)
					c.until("the claim is gone, or it died", func(v cache.View) bool { return dying.isDead() || noneOf(v) })
					died = dying.isDead()
					if died && !started {
						_, stop := c.engine("b", c.store)
						defer stop()
					}
					c.until("the claim is gone", noneOf)
					c.cache.Look(func(v cache.View) {
						if r := v.VolumeReport(files, "files", made); r == nil || r.State != records.VolumeTrashed {
							t.Errorf("of its only volume is said %+v", r)
						}
					})
				})
			})
			if !died && n <= 8 {
				t.Errorf("only %d writes; the test shows little", n-1)
			}
		}
	}
}

// What a start with a claim relied on is compared, and so is what gives its volume up.
func TestDecisionsCompareTheClaimTheyReliedOn(t *testing.T) {
	look, _ := addresses(t,
		store.Put(store.ClaimKey("default", "files"), store.Encode(records.ClaimRecord{Meta: records.Meta{Namespace: "default", Name: "files"}, Deleting: true})),
		store.Put(store.VolumeKey(files, "files"), store.Encode(records.Volume{ID: files, Claim: "files", UID: "v1", Node: "n1", Fate: records.FateKeep})),
	)
	compares := func(a plan.Action, ref spec.SetRef) map[string]bool {
		t.Helper()
		var d decision
		var err error
		look(func(v cache.View) { d, err = decisionFor(v, ref, a, time.Now()) })
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for _, g := range d.If {
			keys[g.Key] = true
		}
		return keys
	}
	start := compares(plan.Start{Member: records.Member{ID: member(0), Address: ip, Volumes: []records.MemberVolume{{Claim: "files", ID: "v1", Object: true}}}, NewAddress: true}, db)
	for _, key := range []string{store.ClaimKey("default", "files"), store.VolumeKey(files, "files"), store.VolumeRequestKey(files, "files")} {
		if !start[key] {
			t.Errorf("a start does not compare %s", key)
		}
	}
	given := plan.SetVolumes{Volumes: []records.Volume{{ID: files, Claim: "files", UID: "v1", Node: "n1", Fate: records.FateReclaiming}}}
	if !compares(given, files.Ref())[store.ClaimKey("default", "files")] {
		t.Error("giving up does not compare the claim")
	}
	removed := compares(plan.RemoveClaim{Namespace: "default", Name: "files"}, files.Ref())
	if !removed[store.ClaimKey("default", "files")] || !removed[store.VolumeKey(files, "files")] {
		t.Errorf("the end of a claim compares %v", removed)
	}
}

// A plan that is wrong is not written: the engine looks for users itself.
func TestAVolumeOfAClaimThatIsUsedIsNotGivenUp(t *testing.T) {
	claim := records.ClaimRecord{Meta: records.Meta{Namespace: "default", Name: "files"}, Deleting: true}
	volume := records.Volume{ID: files, Claim: "files", UID: "v1", Node: "n1", Fate: records.FateKeep}
	user := records.Member{ID: member(0), Token: spec.Token{Epoch: 1, Number: 7}, Node: "n1", Volumes: []records.MemberVolume{{Claim: "files", ID: "v1", Object: true}}}
	given := volume
	given.Fate = records.FateReclaiming
	base := func(claim records.ClaimRecord) []store.Op {
		return []store.Op{
			store.Put(store.ClaimKey("default", "files"), store.Encode(claim)), store.Put(store.VolumeKey(files, "files"), store.Encode(volume)),
		}
	}
	over := store.Put(store.ReportKey(user.ID), store.Encode(records.Report{ID: user.ID, Token: user.Token, Phase: records.PhaseStopped}))
	stays := claim
	stays.Deleting = false
	for name, c := range map[string]struct {
		claim   records.ClaimRecord
		more    []store.Op
		refused bool
	}{
		"not used":           {claim, nil, false},
		"used":               {claim, []store.Op{store.Put(store.MemberKey(user.ID), store.Encode(user))}, true},
		"used, and over":     {claim, []store.Op{store.Put(store.MemberKey(user.ID), store.Encode(user)), over}, false},
		"the claim stays":    {stays, nil, true},
		"an unknown life is": {claim, []store.Op{store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", Strays: []spec.LifeID{{ID: member(3), Token: user.Token}}}))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			look, _ := addresses(t, append(base(c.claim), c.more...)...)
			var err error
			look(func(v cache.View) {
				_, err = decisionFor(v, files.Ref(), plan.SetVolumes{Volumes: []records.Volume{given}}, time.Now())
			})
			if (err != nil) != c.refused {
				t.Errorf("got %v, want refused: %v", err, c.refused)
			}
		})
	}
}
