package engine

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// giveUp asks for volumes as control does, and waits until they are gone.
func (c *cluster) giveUp(ordinals ...int) {
	c.t.Helper()
	for _, o := range ordinals {
		c.cache.Look(func(v cache.View) {
			rec := v.Identity(member(o))
			c.commit(store.Put(store.VolumeRequestKey(member(o), "data"), store.Encode(records.VolumeRequest{
				ID: member(o), Claim: "data", Volume: v.Volume(member(o), "data").UID, Verb: records.VerbReclaim, Token: rec.LastToken,
			})))
		})
	}
	for _, o := range ordinals {
		c.until("it is gone", func(v cache.View) bool { return v.Volume(member(o), "data") == nil })
	}
}

func (c *cluster) remove() {
	c.t.Helper()
	c.set(3, deleting)
	c.until("removed", func(v cache.View) bool { set := v.Set(db); return set == nil })
}

func as(uid spec.UID) func(*records.Set) { return func(s *records.Set) { s.UID = uid } }

// Deleted, one of three volumes given up, applied again: the set is bootstrapped before
// any of its members begins, whatever the member with the new disk would make of it else.
func TestBootstrappedOutlivesTheSetWithItsVolumes(t *testing.T) {
	for name, forget := range map[string]func(c *cluster){
		"as it is":      func(*cluster) {},
		"by an old one": func(c *cluster) { c.commit(store.Del(store.WasBootstrappedKey(db))) }, // which removed the set's own key and wrote none
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				_, stop := c.engine("a", c.store)
				defer stop()
				c.set(3, volumes, parallel)
				c.until("bootstrapped", func(v cache.View) bool { return v.Bootstrapped("u1") })
				c.remove()
				c.cache.Look(func(v cache.View) {
					if v.Bootstrapped("u1") || v.ModRev(store.WasBootstrappedKey(db)) == 0 {
						c.t.Error("what was bootstrapped is not remembered under the set's name")
					}
				})
				forget(c)
				c.giveUp(2)
				watch, err := c.store.Watch(c.t.Context(), "", c.rev())
				if err != nil {
					c.t.Fatal(err)
				}
				defer watch.Close()
				c.set(3, volumes, parallel, as("u2"))
				c.until("ready", ready(3))
				var marked, begun store.Rev
				for marked == 0 || begun == 0 {
					batch, err := watch.Next(c.t.Context())
					if err != nil {
						c.t.Fatal(err)
					}
					for _, ev := range batch.Events {
						switch ev.Key {
						case store.BootstrappedKey("u2"):
							marked = ev.Mod
						case store.MemberKey(member(2)):
							begun = ev.Mod
						}
					}
				}
				if marked >= begun {
					c.t.Errorf("the member with the new disk begins at %d, and the set is bootstrapped at %d only", begun, marked)
				}
				c.cache.Look(func(v cache.View) {
					if !v.Bootstrapped("u2") || v.ModRev(store.WasBootstrappedKey(db)) != 0 {
						c.t.Error("the mark was not carried over to the new set")
					}
				})
			})
		})
	}
}

// With the last volume goes what was known of it: the next set of the name is a new one.
func TestASetWithoutAnyKeptVolumeStartsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change []func(*records.Set)
		giveUp []int
	}{
		"given up by hand":  {nil, []int{0, 1, 2}},
		"given up with it":  {[]func(*records.Set){retention(spec.Retain, spec.Delete)}, nil},
		"no volumes at all": {[]func(*records.Set){func(s *records.Set) { s.Spec.VolumeClaimTemplates = nil }}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(k *cluster) {
				_, stop := k.engine("a", k.store)
				defer stop()
				k.set(3, append([]func(*records.Set){volumes, parallel}, c.change...)...)
				k.until("bootstrapped", func(v cache.View) bool { return v.Bootstrapped("u1") })
				k.remove()
				k.giveUp(c.giveUp...)
				k.until("forgotten", func(v cache.View) bool { return v.ModRev(store.WasBootstrappedKey(db)) == 0 && !v.Bootstrapped("u1") })
				k.node.behave(2, "hold")
				k.set(3, volumes, parallel, as("u2"))
				k.until("two are ready", func(v cache.View) bool {
					zero := v.Report(member(0))
					one := v.Report(member(1))
					return zero != nil && zero.Ready && one != nil && one.Ready
				})
				k.until("that is marked", func(v cache.View) bool { return v.HasUsedVolumes(db) || name == "no volumes at all" })
				k.cache.Look(func(v cache.View) {
					if v.Bootstrapped("u2") {
						k.t.Error("a new set is bootstrapped before its first members were ready")
					}
				})
				k.node.behave(2, "")
				k.until("bootstrapped anew", func(v cache.View) bool { return v.Bootstrapped("u2") })
			})
		})
	}
}

// No life begins in the transaction that marks its set, nor beside it: a member that was
// begun must find the mark.
func TestWhatASetInheritsIsStoredBeforeAllElse(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.set(1)
		time.Sleep(time.Second) // the cache has it
		c.cache.Look(func(v cache.View) {
			next := plan.PruneRevision{Hash: "h1"}
			for _, x := range []struct {
				first plan.Action
				want  int
			}{
				{plan.MarkBootstrapped{Inherited: true}, 1}, {plan.ForgetBootstrapped{}, 1}, {plan.MarkBootstrapped{}, 2},
			} {
				list, err := decisions(v, db, plan.Plan{Actions: []plan.Action{x.first, next}}, time.Now())
				if err != nil || len(list) != x.want {
					c.t.Errorf("%T%+v and another: %d units, %v; want %d", x.first, x.first, len(list), err, x.want)
				}
			}
		})
	})
}
