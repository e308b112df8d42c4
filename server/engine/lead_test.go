package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// stalled holds back the first commit that begins a life, until the test lets go;
// what became of it and of all later ones is kept.
type stalled struct {
	store.Store
	once    sync.Once
	reached chan struct{}
	letGo   chan struct{}
	mu      sync.Mutex
	results []error // since then
}

func newStalled(s store.Store) *stalled {
	return &stalled{Store: s, reached: make(chan struct{}), letGo: make(chan struct{})}
}

func (s *stalled) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	begins := false
	for _, op := range t.Then {
		kind, _ := store.Kind(op.Key)
		begins = begins || kind == store.KindMember
	}
	if begins {
		s.once.Do(func() { close(s.reached); <-s.letGo })
	}
	// The context may be over: a request that is already on its way is not called back.
	rev, err := s.Store.Commit(context.WithoutCancel(ctx), t)
	select {
	case <-s.letGo:
		s.mu.Lock()
		s.results = append(s.results, err)
		s.mu.Unlock()
	default:
	}
	return rev, err
}

func TestADeposedLeaderWritesNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := newStalled(c.store)
		_, stopOld := c.engine("old", old)
		c.set(3)
		<-old.reached // decided, and stalled on the way to the store
		var lease store.LeaseID
		_, kvs, err := c.store.Get(t.Context(), store.LeaderKey)
		if err != nil {
			t.Fatal(err)
		}
		lease = kvs[store.LeaderKey].Lease
		if err := c.store.Revoke(t.Context(), lease); err != nil { // its lease ran out
			t.Fatal(err)
		}
		c.node.behave(0, "hold")
		_, stopNew := c.engine("new", c.store)
		c.until("the new leader began db-0", func(v cache.View) bool { m := v.Member(member(0)); return m != nil })
		var begun spec.Token
		c.cache.Look(func(v cache.View) { m := v.Member(member(0)); begun = m.Token })
		close(old.letGo)
		synctest.Wait()
		old.mu.Lock()
		if len(old.results) == 0 {
			t.Error("the old leader's commit never came; the test shows nothing")
		}
		for _, err := range old.results {
			if !errors.Is(err, store.ErrConflict) {
				t.Errorf("a commit of the deposed leader: %v; want a conflict", err)
			}
		}
		old.mu.Unlock()
		c.cache.Look(func(v cache.View) {
			if m := v.Member(member(0)); m.Token != begun {
				t.Errorf("token %s; want %s of the new leader", m.Token, begun)
			}
		})
		stopOld()
		c.node.behave(0, "")
		c.until("ready under the new leader", ready(3))
		stopNew()
	})
}

func TestTwoEnginesAndAStoreThatFails(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var mu sync.Mutex
		calls := 0
		c.mem.Fail(func(call memstore.Call) memstore.Fault { // each 7th engine write is lost or its answer is
			mu.Lock()
			defer mu.Unlock()
			if call.Method != "Commit" || len(call.Txn.If) == 0 || call.Txn.If[0].Key != store.LeaderKey {
				return memstore.Fault{}
			}
			calls++
			if calls%7 == 0 {
				return memstore.Fault{Err: store.ErrUnknown, Applied: calls%2 == 0}
			}
			return memstore.Fault{}
		})
		_, stopA := c.engine("a", c.store)
		_, stopB := c.engine("b", c.store)
		for i, n := range []int{3, 6, 1, 4, 0, 5} {
			c.set(n, volumes)
			if i%2 == 1 { // the leader loses its lease in the middle
				_, kvs, err := c.store.Get(t.Context(), store.LeaderKey)
				if err != nil {
					t.Fatal(err)
				}
				_ = c.store.Revoke(t.Context(), kvs[store.LeaderKey].Lease)
			}
			c.until(fmt.Sprint("scaled to ", n), ready(n))
		}
		mu.Lock()
		if calls < 14 {
			t.Errorf("%d commits of engines; want some that failed among them", calls)
		}
		mu.Unlock()
		stopA()
		stopB()
	})
}

// TestACrashBetweenAnyTwoWrites lets the engine die at its nth commit, lost or
// applied, and has another finish: up, down, up again and away, with volumes that stay
// and with volumes that go.
func TestACrashBetweenAnyTwoWrites(t *testing.T) {
	for _, policy := range []spec.Retention{spec.Retain, spec.Delete} {
		t.Run(string(policy), func(t *testing.T) { crashAnywhere(t, policy) })
	}
}

func crashAnywhere(t *testing.T, policy spec.Retention) {
	for n := 1; !t.Failed(); n++ { // go test -failfast runs none after one failed
		survived := false
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d applied %v", n, after), func(t *testing.T) {
				inCluster(t, func(c *cluster) {
					dying := newCrash(c.store, n, after)
					_, stop := c.engine("dying", dying)
					c.life(dying.died, policy)
					survived = !dying.isDead()
					if survived {
						stop()
						return
					}
					stop()
					_, stop = c.engine("next", c.store)
					defer stop()
					c.life(nil, policy)
				})
			})
		}
		if survived {
			if n < 10 {
				t.Errorf("the whole life took %d commits; the test shows little", n)
			}
			return
		}
	}
}

// life takes the set through its whole life, or as far as it gets until died.
func (c *cluster) life(died chan struct{}, policy spec.Retention) {
	dead := func() bool {
		select {
		case <-died:
			return true
		default:
			return false
		}
	}
	var set *records.Set
	c.cache.Look(func(v cache.View) { set = v.Set(db) })
	if set == nil || !set.Deleting {
		for _, n := range []int{2, 3, 1} {
			c.set(n, volumes, retention(policy, policy))
			c.until(fmt.Sprint("scaled to ", n), func(v cache.View) bool { return dead() || ready(n)(v) })
			if dead() {
				return
			}
		}
	}
	c.cache.Look(func(v cache.View) { set = v.Set(db) })
	if set != nil {
		c.set(1, deleting)
	}
	c.until("removed", func(v cache.View) bool {
		s := v.Set(db)
		return dead() || s == nil && len(v.MembersOn("n1")) == 0
	})
	left := 0 // those of the three members there were
	if policy == spec.Retain {
		left = 3
	}
	c.until("the volumes are as the policy says", func(v cache.View) bool { return dead() || len(v.Volumes(db)) == left })
	time.Sleep(time.Second)
}

// The checker itself must see what it is there for.
func TestTheCheckerSeesTwoLives(t *testing.T) {
	put := func(number int64) store.Op {
		return store.Put(store.MemberKey(member(0)), store.Encode(records.Member{ID: member(0), Token: spec.Token{Epoch: 1, Number: number}}))
	}
	proof := store.Put(store.ReportKey(member(0)), store.Encode(records.Report{ID: member(0), Token: spec.Token{Epoch: 1, Number: 5}, Phase: records.PhaseStopped}))
	volume := func(id records.VolumeID, fate ...records.VolumeFate) store.Op {
		return store.Put(store.VolumeKey(member(0), "data"), store.Encode(records.Volume{ID: member(0), Claim: "data", UID: id, Fate: append(fate, records.FateKeep)[0]}))
	}
	lost := store.Del(store.VolumeKey(member(0), "data"))
	trashed := store.Put(store.VolumeReportKey(member(0), "data", "a"), store.Encode(records.VolumeReport{ID: member(0), Claim: "data", Volume: "a", State: records.VolumeTrashed}))
	cases := map[string]struct {
		ops []store.Op
		bad bool
	}{
		"replaced with proof":      {[]store.Op{put(5), proof, put(6)}, false},
		"replaced without proof":   {[]store.Op{put(5), put(6)}, true},
		"forgotten without proof":  {[]store.Op{put(5), store.Del(store.MemberKey(member(0)))}, true},
		"a token that comes again": {[]store.Op{put(5), proof, store.Del(store.MemberKey(member(0))), put(5)}, true},
		"a volume that is lost":    {[]store.Op{volume("a"), lost}, true},
		"a volume that goes":       {[]store.Op{volume("a"), volume("a", records.FateReclaiming), trashed, lost, volume("b")}, false},
		"a volume gone untold":     {[]store.Op{volume("a"), volume("a", records.FateReclaiming), lost}, true},
		"a volume gone undecided":  {[]store.Op{volume("a"), trashed, lost}, true},
		"a volume that comes back": {[]store.Op{volume("a"), volume("a", records.FateReclaiming), volume("a")}, true},
		"a volume taken from one":  {[]store.Op{put(5), volume("a"), volume("a", records.FateReclaiming)}, true},
		"a volume that is another": {[]store.Op{volume("a"), volume("b")}, true},
	}
	for name, c := range cases {
		var h history
		for i, op := range c.ops {
			h.event(store.Rev(i), store.Event{KV: store.KV{Key: op.Key, Value: op.Value}, Delete: op.Delete})
		}
		if bad := len(h.faults) > 0; bad != c.bad {
			t.Errorf("%s: faults %q", name, h.faults)
		}
	}
}

func TestTheNextWakeIsTheSoonest(t *testing.T) {
	d := newManualTerm(t)
	for i := range 64 {
		ref := spec.SetRef{Namespace: "default", Name: spec.SetName(fmt.Sprint("s", i))}
		d.l.wakeAt(ref, d.now.Add(time.Duration(1+(i+17)%64)*time.Second))
	}
	if at, ok := d.l.nextDue(); !ok || at.Sub(d.now) != time.Second {
		t.Errorf("it is in %s (%v), want in a second", at.Sub(d.now), ok)
	}
}

// An event lives for a day from when it was written, not less.
func TestTheLeaseOfTheEventsIsRenewed(t *testing.T) {
	d := newManualTerm(t)
	var last store.LeaseID
	for _, c := range []struct {
		at   time.Duration
		want bool // another lease
	}{{0, true}, {eventRenewal - 1, false}, {eventRenewal, true}, {2*eventRenewal - 1, false}} {
		d.after(c.at)
		d.l.renewEventLease(t.Context())
		if id := d.l.lease.id; id == 0 || (id != last) != c.want {
			t.Errorf("after %s there is another lease: %v, want %v", c.at, id != last, c.want)
		}
		last = d.l.lease.id
	}
}
