package engine

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// restored is what a restore writes: epoch 7, and a count of these nodes.
func (c *cluster) restored(nodes ...records.CountNode) {
	c.t.Helper()
	c.commit(store.Put(store.EpochKey, []byte(strconv.Itoa(7))), store.Put(store.CountKey, store.Encode(records.Count{Epoch: 7, Nodes: nodes})))
}

// hears has a node say hello in epoch 7 with these lives that the store does not know.
func hears(name spec.NodeName, strays ...spec.LifeID) []store.Op {
	uid := spec.UID("uid-" + name)
	return []store.Op{
		store.Put(store.NodeKey(name), store.Encode(records.Node{Name: name, UID: uid})),
		store.Put(store.FactsKey(name), store.Encode(records.NodeFacts{Name: name, UID: uid, Boot: "boot1", Epoch: 7, Strays: strays})),
		store.Put(store.HellosKey, []byte(name)),
	}
}

func waits(reason causes.BlockedReason) func(cache.View) bool {
	return func(v cache.View) bool {
		st := v.Status(db)
		if st == nil || len(st.Members) == 0 {
			return false
		}
		for _, c := range st.Conditions {
			if c.Type == plan.ConditionProgressing {
				return c.Reason == string(reason)
			}
		}
		return false
	}
}

func TestNothingStartsAfterARestoreBeforeTheCountIsDone(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.restored()
		c.commit(store.Put(store.KnownKey("b"), store.Encode(records.Known{Nodes: map[spec.NodeName]spec.UID{"late": "uid-late"}})))
		c.commit(hears("n1")...)
		c.set(1)
		_, stop := c.engine("a", c.store)
		defer stop()
		c.until("db-0 waits for the count", waits(causes.BlockedRestored))
		c.cache.Look(func(v cache.View) {
			if m := v.Member(member(0)); m != nil {
				t.Errorf("token %s began before node late was heard", m.Token)
			}
		})
		c.commit(hears("late")...)
		c.until("then it begins, in the new epoch", func(v cache.View) bool {
			m := v.Member(member(0))
			count := v.Count()
			return m != nil && m.Token.Epoch == 7 && count.Done && len(v.Memories()) == 0 &&
				slices.Contains(count.Nodes, records.CountNode{Name: "late", UID: "uid-late", From: records.FromServer})
		})
		c.commit(store.Put(store.FactsKey("late"), store.Encode(records.NodeFacts{Name: "late", UID: "uid-late", Epoch: 1})))
		c.set(2)
		c.until("a count that was done stays done", ready(2))
	})
}

// wordy lets a server tell which nodes it remembers after the leader has found the count
// complete, and before it records that.
type wordy struct {
	store.Store
	c    *cluster
	once sync.Once
}

func (s *wordy) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	if slices.ContainsFunc(t.Then, func(op store.Op) bool { return op.Key == store.CountKey }) {
		s.once.Do(func() {
			known := records.Known{Nodes: map[spec.NodeName]spec.UID{"late": "uid-late"}}
			s.c.commit(store.Put(store.KnownKey("b"), store.Encode(known)), store.Put(store.HellosKey, []byte("b")))
		})
	}
	return s.Store.Commit(ctx, t)
}

func TestACountIsNotEndedOverAServersWord(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.restored()
		c.commit(hears("n1")...)
		c.set(1)
		_, stop := c.engine("a", &wordy{Store: c.store, c: c})
		defer stop()
		c.until("a server told of node late", func(v cache.View) bool { return len(v.Memories()) == 1 })
		c.until("db-0 waits for the count", waits(causes.BlockedRestored))
		c.cache.Look(func(v cache.View) {
			if count := v.Count(); count.Done {
				t.Error("the count was ended before node late was heard")
			}
		})
		c.commit(hears("late")...)
		c.until("then it begins", ready(1))
	})
}

// The stray is stored after the leader has looked and before its decision is (V4).
func TestAStrayThatArrivesBetweenLookAndCommitStopsTheStart(t *testing.T) {
	inCluster(t, func(c *cluster) {
		slow := newStalled(c.store)
		_, stop := c.engine("a", slow)
		defer stop()
		c.set(1)
		<-slow.reached
		c.commit(hears("late", spec.LifeID{ID: member(0), Token: spec.Token{Epoch: 1, Number: 99}})...)
		close(slow.letGo)
		c.until("the stray blocks db-0", waits(causes.BlockedStray))
		c.cache.Look(func(v cache.View) {
			if m := v.Member(member(0)); m != nil {
				t.Errorf("token %s began beside token 1.99, which node late runs", m.Token)
			}
		})
	})
}

func TestNothingStartsWhileTheStoreIsHeld(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.commit(store.Put(store.HoldKey, store.Encode(records.Hold{Cause: "revision 9 is known", By: "server a"})))
		c.set(1)
		e, stop := c.engine("a", c.store)
		defer stop()
		held := func() bool {
			p, ok := e.Explain(db)
			return ok && len(p.Blocked) == 1 && p.Blocked[0].Reason == causes.BlockedHeld && len(p.Actions) == 0
		}
		c.until("db-0 is held", func(cache.View) bool { return held() })
		c.commit(store.Del(store.HoldKey))
		c.until("and begins when the hold is gone", ready(1))
	})
}

// The end of a count that could not be written is tried again though nothing changes.
func TestTheEndOfACountIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name        string
		fault       error
		done, again bool
	}{
		{"it is written", nil, true, false},
		{"the store fails", store.ErrUnavailable, false, true},
		{"somebody wrote before", store.ErrConflict, false, false}, // which wakes the leader
	} {
		t.Run(c.name, func(t *testing.T) {
			inCluster(t, func(k *cluster) {
				k.restored()
				k.commit(hears("n1")...)
				l, log := k.leads(k.store)
				k.mem.Fail(func(call memstore.Call) (f memstore.Fault) {
					if call.Method == "Commit" {
						f.Err = c.fault
					}
					return f
				})
				l.completeCount(k.t.Context())
				k.mem.Fail(nil)
				_, kvs, err := k.store.Get(t.Context(), store.CountKey)
				if err != nil {
					t.Fatal(err)
				}
				count, err := store.Decode[records.Count](kvs[store.CountKey])
				if err != nil || count.Done != c.done {
					t.Errorf("the count is done: %v, %v; want %v", count.Done, err, c.done)
				}
				if said := strings.Contains(log.String(), "restore complete"); said != c.done {
					t.Errorf("it is said to be complete: %v, want %v", said, c.done)
				}
				if _, again := l.nextDue(); again != c.again {
					t.Errorf("it is tried again: %v, want %v", again, c.again)
				}
			})
		})
	}
}
