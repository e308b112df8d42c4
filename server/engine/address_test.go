package engine

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// addresses is a view with nothing but addresses and nodes.
func addresses(t *testing.T, ops ...store.Op) (look func(func(cache.View)), write func(...store.Op)) {
	s := memstore.New()
	cached := cache.New(s, slog.New(slog.DiscardHandler))
	c := &cluster{t: t, store: s}
	stop := c.run(cached.Run)
	t.Cleanup(func() { stop(); _ = s.Close() })
	write = func(ops ...store.Op) {
		if err := cached.Wait(t.Context(), c.commit(ops...)); err != nil {
			t.Fatal(err)
		}
	}
	write(append(ops, store.Put(store.EpochKey, epochAt(1)))...)
	return cached.Look, write
}

func used(a string) store.Op {
	return store.Put("addresses/"+a, store.Encode(records.AddressRecord{Address: netip.MustParseAddr(a), ID: member(0)}))
}

func freed(a string, at time.Time) store.Op {
	return store.Put("addresses/"+a, store.Encode(records.AddressRecord{Address: netip.MustParseAddr(a), ID: member(0), FreedAt: &at}))
}

func TestTheLowestNeverUsedAddressComesFirst(t *testing.T) {
	look, write := addresses(t, used("10.88.0.2"), store.Put("addresses/10.88.0.4", []byte("junk")),
		store.Put(store.NodeKey("n1"), store.Encode(records.Node{Name: "n1", UID: "x"})),
		store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: "x", HostIP: "10.88.0.5"})))
	p := newPool(Config{CIDR: netip.MustParsePrefix("10.88.0.0/28"), Exclude: []netip.Prefix{netip.MustParsePrefix("10.88.0.8/30")}, Quarantine: time.Minute})
	free := func(n int) (s string) {
		look(func(v cache.View) { s = fmt.Sprint(p.candidates(v, n, time.Now())) })
		return s
	}
	if got, want := free(99), "[10.88.0.1 10.88.0.3 10.88.0.6 10.88.0.7 10.88.0.12 10.88.0.13 10.88.0.14]"; got != want {
		t.Fatalf("got %s; want %s: neither used, unreadable, hosts', excluded, network nor broadcast", got, want)
	}
	if got := free(1); got != "[10.88.0.1]" {
		t.Errorf("got %s; asking must not give it away", got)
	}
	p.assigned[netip.MustParseAddr("10.88.0.1")] = 1 << 40 // committed, not seen yet
	if got := free(1); got != "[10.88.0.3]" {
		t.Errorf("got %s; want the next after the one just given", got)
	}
	var now store.Rev
	look(func(v cache.View) { now = v.Rev() })
	p.assigned[netip.MustParseAddr("10.88.0.1")] = now
	if got := free(1); got != "[10.88.0.1]" {
		t.Errorf("got %s; want what the cache shows, which has the commit by now", got)
	}
	write(used("10.88.0.1"), used("10.88.0.3"))
	if got := free(1); got != "[10.88.0.6]" {
		t.Errorf("got %s; want 10.88.0.6", got)
	}
	if got := free(0); got != "[]" {
		t.Errorf("got %s; want none", got)
	}
}

// SAFETY S17: an address rests before another identity gets it.
func TestAFreedAddressRestsOnTheLeadersOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		longAgo := time.Now().Add(-240 * time.Hour) // what another clock said
		look, write := addresses(t, freed("10.88.0.1", longAgo.Add(time.Hour)), freed("10.88.0.2", longAgo), used("10.88.0.3"))
		p := newPool(Config{CIDR: netip.MustParsePrefix("10.88.0.0/30"), Quarantine: 10 * time.Minute})
		free := func() (s string) {
			look(func(v cache.View) { s = fmt.Sprint(p.candidates(v, 9, time.Now())) })
			return s
		}
		if got := free(); got != "[]" {
			t.Errorf("got %s; want none: a new leader starts every wait again", got)
		}
		time.Sleep(10*time.Minute - time.Second)
		if got := free(); got != "[]" {
			t.Errorf("got %s; want none before the quarantine is over", got)
		}
		time.Sleep(time.Second)
		if got := free(); got != "[10.88.0.2 10.88.0.1]" {
			t.Errorf("got %s; want the one freed longest ago first", got)
		}
		write(used("10.88.0.2"))
		write(freed("10.88.0.2", time.Now()))
		if got := free(); got != "[10.88.0.1]" {
			t.Errorf("got %s; want an address that was freed again to rest again", got)
		}
	})
}

func TestARestedAddressIsGivenOnlyWhereItMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ops []store.Op
		for i, a := range []string{"10.88.0.1", "10.88.0.2", "10.88.0.3", "10.88.0.4", "10.88.1.1"} {
			ops = append(ops, freed(a, time.Now().Add(time.Duration(i)*time.Second)))
		}
		look, _ := addresses(t, append(ops, used("10.88.0.5"), used("10.88.0.6"),
			store.Put(store.NodeKey("n1"), store.Encode(records.Node{Name: "n1", UID: "x"})),
			store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: "x", HostIP: "10.88.0.2"})))...)
		p := newPool(Config{CIDR: netip.MustParsePrefix("10.88.0.0/29"), Exclude: []netip.Prefix{netip.MustParsePrefix("10.88.0.1/32")}, Quarantine: time.Minute})
		p.assigned[netip.MustParseAddr("10.88.0.3")] = 1 << 40
		free := func(n int) (s string) {
			look(func(v cache.View) { s = fmt.Sprint(p.candidates(v, n, time.Now())) })
			return s
		}
		free(9)
		time.Sleep(time.Minute)
		if got := free(9); got != "[10.88.0.4]" {
			t.Errorf("got %s; want 10.88.0.4: the others are excluded, a host's, just given, out of the range", got)
		}
		delete(p.assigned, netip.MustParseAddr("10.88.0.3"))
		if got := free(1); got != "[10.88.0.3]" {
			t.Errorf("got %s; want one, that was freed longest ago", got)
		}
	})
}

func TestWhoWaitsForAnAddressIsLookedAtWhenTheNextHasRested(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name   string
		reason causes.BlockedReason
		rested []time.Duration // so long
		want   time.Duration
	}{
		{"two rest", causes.BlockedAddress, []time.Duration{time.Second, 3 * time.Second}, 7 * time.Second},
		{"one has rested", causes.BlockedAddress, []time.Duration{10 * time.Second, 3 * time.Second}, 7 * time.Second},
		{"all have", causes.BlockedAddress, []time.Duration{10 * time.Second}, 9 * time.Second},
		{"nobody waits for one", causes.BlockedNoRoom, []time.Duration{time.Second}, 9 * time.Second},
	} {
		p := newPool(Config{CIDR: netip.MustParsePrefix("10.88.0.0/28"), Quarantine: 10 * time.Second})
		for _, d := range c.rested {
			a := p.cidr.Addr()
			for range len(p.resting) + 1 {
				a = a.Next()
			}
			p.startQuarantine(&records.AddressRecord{Address: a, FreedAt: &now}, now.Add(-d))
		}
		got := evaluation{wake: 9 * time.Second, blocked: []plan.Blocked{{Reason: c.reason}}}
		p.wakeWhenRested(&got, now)
		if got.wake != c.want {
			t.Errorf("%s: looked at in %s, want %s", c.name, got.wake, c.want)
		}
	}
}

func TestAsManyAddressesAreAskedForAsMembersHaveNone(t *testing.T) {
	slot := func(ordinal int, address netip.Addr) plan.Slot {
		return plan.Slot{ID: member(ordinal), Identity: &records.IdentityRecord{Address: address}}
	}
	for _, c := range []struct {
		name   string
		policy spec.ManagementPolicy
		slots  []plan.Slot
		want   int
	}{
		{"all at once", spec.Parallel, nil, 3},
		{"one at a time", spec.OrderedReady, nil, 1},
		{"one has its own", spec.Parallel, []plan.Slot{slot(0, ip)}, 2},
		{"one has none any more", spec.Parallel, []plan.Slot{slot(0, netip.Addr{})}, 3},
		{"one never had a life", spec.Parallel, []plan.Slot{{ID: member(0)}}, 3},
		{"one that is not wanted has its own", spec.Parallel, []plan.Slot{slot(7, ip)}, 3},
		{"all have their own", spec.OrderedReady, []plan.Slot{slot(0, ip), slot(1, ip), slot(2, ip)}, 0},
	} {
		three := int32(3)
		set := records.Set{Ref: db, Spec: spec.SetSpec{Replicas: &three, PodManagementPolicy: c.policy}}
		if got := addressesWanted(plan.World{Set: &set, Slots: c.slots}); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestNoAddressIsGivenWhileAStrayMayHaveIt(t *testing.T) {
	facts := func(strays ...spec.LifeID) store.Op {
		return store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: "x", Strays: strays}))
	}
	stray := spec.LifeID{ID: member(7), Token: spec.Token{Epoch: 1, Number: 5}}
	look, write := addresses(t, store.Put(store.NodeKey("n1"), store.Encode(records.Node{Name: "n1", UID: "x"})), facts(stray))
	p := newPool(Config{CIDR: netip.MustParsePrefix("10.88.0.0/28"), Quarantine: time.Minute})
	free := func() (n int) {
		look(func(v cache.View) { n = len(p.candidates(v, 1, time.Now())) })
		return n
	}
	if free() != 0 {
		t.Error("an address was given although a life of unknown address runs")
	}
	write(store.Put(store.IdentityKey(stray.ID), store.Encode(records.IdentityRecord{ID: stray.ID, Address: netip.MustParseAddr("10.88.0.9")})), used("10.88.0.9"))
	if free() != 1 {
		t.Error("no address was given although the stray's own is known")
	}
	write(store.Put(store.IdentityKey(stray.ID), store.Encode(records.IdentityRecord{ID: stray.ID})))
	if free() != 0 {
		t.Error("an address was given although the stray's own was freed, and it may still use it")
	}
	write(store.Del(store.IdentityKey(stray.ID)), facts())
	if free() != 1 {
		t.Error("no address was given although no stray is left")
	}
}

// TestAMemberGetsAnAddressWhenOneHasRested: and it rests from when it was freed, not from
// when somebody asked for it.
func TestAMemberGetsAnAddressWhenOneHasRested(t *testing.T) {
	for name, c := range map[string]struct{ asks, want time.Duration }{
		"it is wanted at once":            {0, 10 * time.Minute},
		"it is wanted before it rested":   {9 * time.Minute, 10 * time.Minute},
		"it is wanted when it has rested": {time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(k *cluster) {
				cached := cache.New(k.store, slog.New(slog.DiscardHandler))
				e, err := New(Config{Store: k.store, Cache: cached, ID: "a", LeaseTTL: 3 * time.Second, CIDR: netip.MustParsePrefix("10.88.0.0/30"), Now: clock()})
				if err != nil {
					t.Fatal(err)
				}
				defer k.run(cached.Run)()
				defer k.run(e.Run)()
				k.set(2)
				k.until("both have one", ready(2))
				k.set(1)
				k.until("one is freed", func(v cache.View) bool { r := v.Addresses()["10.88.0.2"]; return r != nil && r.FreedAt != nil })
				freed := time.Now()
				time.Sleep(c.asks)
				k.set(2)
				k.until("it is given again", ready(2))
				if took := time.Since(freed); took < c.want-time.Second || took > c.want+2*time.Second {
					t.Errorf("it was given after %s, want %s", took, c.want)
				}
			})
		})
	}
}
