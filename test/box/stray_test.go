package box

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// move gives the cluster another store with a server of its own; nothing is left of
// the one before but what runs on the nodes.
func (c *cluster) move(to store.Store) {
	c.current().crash()
	c.mu.Lock()
	c.store = to
	c.mu.Unlock()
	c.startServer()
}

// storeOf is a store in memory of a cluster at an epoch, otherwise empty.
func storeOf(t *testing.T, cluster string, epoch int) *memstore.Store {
	t.Helper()
	s := inMemory(t)
	_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{
		store.Put(store.ClusterKey, []byte(cluster)), store.Put(store.EpochKey, []byte(strconv.Itoa(epoch))),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *cluster) clusterID() string {
	c.t.Helper()
	_, kvs, err := c.store.Get(c.t.Context(), store.ClusterKey)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(kvs[store.ClusterKey].Value)
}

// strays are the lives that a node runs and the store does not know.
func (c *cluster) strays(node spec.NodeName) (lives []string) {
	c.t.Helper()
	for _, o := range list[struct {
		Metadata struct{ Name string }
		Status   records.NodeFacts
	}](c, "node", "") {
		for _, s := range o.Status.Strays {
			if o.Metadata.Name == string(node) {
				lives = append(lives, s.ID.MemberName()+" "+s.Token.String())
			}
		}
	}
	return lives
}

func TestALifeThatTheStoreDoesNotKnowRunsOnAndBlocksItsIdentity(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		db := shape{name: "db", replicas: 2, parallel: true}
		c.apply(db)
		c.ready("db", 2)
		stray, other, token := c.host("db-0").name, c.host("db-1").name, c.find("db-0").Token
		c.move(storeOf(t, c.clusterID(), 2)) // a new epoch: the lists of the old one are over
		c.until("both lives are shown as strays", func() bool {
			return len(c.strays("a"))+len(c.strays("b")) == 2 && slices.Contains(c.strays(stray), "db-0 "+token)
		})
		c.apply(db)
		c.until("db-0 is shown, and why it waits", func() bool { return strings.Contains(c.find("db-0").Blocked, "that the store does not know") })
		c.throughout(ttl/2, "db-0 runs on, and no second one begins", func() bool {
			return slices.Equal(c.audit.running(member("db-0")), []string{string(stray) + " " + token})
		})
		if got := c.find("db-0"); got.Token != "" {
			t.Errorf("db-0: got %+v", got)
		}
		c.explained("db-0", "node "+string(stray)+" runs a life of it (token "+token+")")
		c.until("the set says it", func() bool { return c.condition("db", "Progressing").Reason == "Stray" })
		c.nodes[stray].reboot() // now it is proven over, but db-1's address is not known
		c.nodes[stray].start()
		c.until("db-0 waits for an address", func() bool { return strings.Contains(c.find("db-0").Blocked, "no address is free") })
		if got := c.audit.running(member("db-1")); len(got) != 1 {
			t.Errorf("db-1: %v runs", got)
		}
		c.nodes[other].reboot()
		c.nodes[other].start()
		c.until("both live anew", func() bool {
			zero, one := c.find("db-0"), c.find("db-1")
			return zero.Ready && one.Ready && zero.Token != token && zero.Address != one.Address
		})
	})
}

// An empty store, of whatever cluster, is no order to stop anything (SAFETY S2, S8).
func TestAnEmptyOrForeignStoreStopsNothing(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]struct {
		empty func(*testing.T, *cluster) store.Store
		heard int // how many nodes are
	}{
		"a fresh store of another cluster": {func(t *testing.T, _ *cluster) store.Store { return inMemory(t) }, 0},
		"another cluster that has had more": {func(t *testing.T, _ *cluster) store.Store {
			return storeOf(t, strings.Repeat("f", 32), 9)
		}, 0},
		"the cluster's own id in a store that went back": {func(t *testing.T, c *cluster) store.Store {
			return storeOf(t, c.clusterID(), 1)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				c := newCluster(t, inMemory(t), "a", "b")
				db := shape{name: "db", replicas: 2, parallel: true, volumes: true}
				c.apply(db)
				c.ready("db", 2)
				old := c.store
				before := [][]string{c.audit.running(member("db-0")), c.audit.running(member("db-1"))}
				c.move(to.empty(t, c))
				c.must("apply", func(ctx context.Context, api proto.ControlClient) error {
					_, err := api.Apply(ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: []byte(db.yaml())}}})
					return err
				}, codes.FailedPrecondition) // of a store that is held
				c.nodes["b"].restart() // this agent has nothing but its ledger
				c.until("those are heard that are of the cluster", func() bool { return c.live() == to.heard })
				c.throughout(2*ttl, "both run on", func() bool {
					return slices.Equal(c.audit.running(member("db-0")), before[0]) &&
						slices.Equal(c.audit.running(member("db-1")), before[1]) &&
						len(c.audit.starts()) == 2 && c.live() <= to.heard
				})
				c.move(old)
				c.ready("db", 2)
				if got := len(c.audit.starts()); got != 2 {
					t.Errorf("%d starts, want 2\n%s", got, c.describe())
				}
			})
		})
	}
}

func TestWhileTheStoreIsAwayNothingStops(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		c := newCluster(t, s, "a", "b")
		c.apply(shape{name: "db", replicas: 3, volumes: true})
		c.ready("db", 3)
		before := c.members("db")
		s.Fail(func(memstore.Call) memstore.Fault { return memstore.Fault{Err: store.ErrUnavailable} })
		s.Break()
		c.nodes["a"].restart()
		c.throughout(2*ttl, "all run on", func() bool {
			for _, m := range before {
				if len(c.audit.running(member(m.Name))) != 1 {
					return false
				}
			}
			return len(c.audit.starts()) == 3
		})
		s.Fail(nil)
		c.ready("db", 3)
		for i, m := range c.members("db") {
			if m.Token != before[i].Token {
				t.Errorf("%s: token %s, was %s", m.Name, m.Token, before[i].Token)
			}
		}
		c.scale("db", 4)
		c.ready("db", 4)
	})
}

// startOf reports whether a transaction begins a life of the identity.
func startOf(id spec.Identity) func(store.Txn) bool {
	return func(t store.Txn) bool {
		for _, op := range t.Then {
			if op.Key != store.MemberKey(id) || op.Delete {
				continue
			}
			m, err := store.Decode[records.Member](store.KV{Key: op.Key, Value: op.Value})
			return err == nil && m.Goal == records.GoalRun
		}
		return false
	}
}

// A server stands still at the very moment at which its decision to start db-1 is on
// its way to the store. Another one takes over and does it; then the first goes on.
func TestAServerThatStoodStillDoesNothingTwice(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		c := newCluster(t, s, "a", "b")
		old := c.current()
		held := old.link.holdAt(startOf(member("db-1")))
		c.apply(shape{name: "db", replicas: 3, volumes: true})
		select {
		case <-held:
		case <-time.After(patience):
			t.Fatal("the engine never began db-1")
		}
		next := c.startServer()
		c.ready("db", 3)
		tokens := c.members("db")
		old.link.release()
		c.until("what was on its way has landed", func() bool {
			return slices.ContainsFunc(old.link.lateCommits(), func(l late) bool { return startOf(member("db-1"))(l.txn) })
		})
		for _, l := range old.link.lateCommits() {
			if startOf(member("db-1"))(l.txn) && l.err == nil {
				t.Errorf("the late start of db-1 was written")
			}
		}
		c.throughout(ttl/2, "nothing is done anew", func() bool { return len(c.audit.starts()) == 3 })
		next.crash() // the first one leads again
		c.turnTo(old)
		c.scale("db", 4)
		c.ready("db", 4)
		for i, m := range tokens {
			if got := c.find(m.Name); got.Token != m.Token {
				t.Errorf("%s: token %s, was %s", m.Name, got.Token, tokens[i].Token)
			}
		}
		if got := len(c.audit.starts()); got != 4 {
			t.Errorf("%d starts, want 4\n%s", got, c.describe())
		}
	})
}
