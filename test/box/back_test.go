package box

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// bumped is etcd's own restore with the token, the name and the addresses of before, and
// with --bump-revision: only what is missing in it shows that it went back.
var bumped = memstore.Restored{Bump: 1e6, SameCluster: true}

// knows is what a node has on its disk of the store.
func (n *node) knows() (known records.Known) {
	_ = durable.GetJSON(filepath.Join(n.root, "known.json"), &known)
	return known
}

// newest is the newest link of the store's chain.
func (c *cluster) newest() records.Link {
	c.t.Helper()
	_, kvs, err := c.store.Get(c.t.Context(), store.ContinuityKey)
	if err != nil {
		c.t.Fatal(err)
	}
	chain, err := store.Decode[records.Chain](kvs[store.ContinuityKey])
	if err != nil {
		c.t.Fatal(err)
	}
	return chain.Newest()
}

// remembered waits until the chain has grown since a backup, and the nodes know that.
func (c *cluster) remembered(since records.Link, nodes ...spec.NodeName) {
	c.t.Helper()
	c.until("the chain has grown, and these nodes know it", func() bool {
		return !slices.ContainsFunc(nodes, func(name spec.NodeName) bool { return c.nodes[name].knows().Link.Number <= since.Number })
	})
}

// goBack puts the store back to backup. The next server remembers nothing: it is on another
// machine.
func (c *cluster) goBack(backup memstore.Backup, how memstore.Restored) {
	c.t.Helper()
	old := c.current()
	old.crash()
	<-old.done
	c.store.(*memstore.Store).Restore(backup, how)
	c.startServer()
}

// hold waits until the store is held, and returns why.
func (c *cluster) hold() records.RestoreState {
	c.t.Helper()
	c.until("the store is held", func() bool { return c.restoring(records.RestoreHeld) })
	return c.restoreState()
}

// moveTo has a member begin anew on the only node that is not cordoned.
func (c *cluster) moveTo(name string, to spec.NodeName) {
	c.t.Helper()
	for other := range c.nodes {
		c.cordon(other, other != to)
	}
	c.must("restart", func(ctx context.Context, api proto.ControlClient) error {
		_, err := api.Restart(ctx, &proto.RestartRequest{Member: name})
		return err
	})
	c.until(name+" lives on "+string(to), func() bool { m := c.find(name); return m.Node == to && m.Ready })
}

// evidence are the nodes that said that they know more than the store.
func (c *cluster) evidence() (nodes []string) {
	for _, o := range list[struct {
		Metadata struct{ Name string }
		Status   records.NodeFacts
	}](c, "node", "") {
		if o.Status.Known != nil {
			nodes = append(nodes, o.Metadata.Name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// A member moved on after the backup, and the node that it lives on is cut off. Where it
// lived before is there, and knows that more was written.
func TestABumpedStoreBeginsNothingWhileTheOtherNodeIsCutOff(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		c := newCluster(t, s, "a", "b")
		c.cordon("b", true)
		c.apply(shape{name: "db", replicas: 1})
		c.ready("db", 1)
		backup, since := s.Backup(), c.newest()
		c.cordon("b", false)
		c.nodes["a"].reboot()
		c.until("db-0 waits for its node", func() bool { return strings.Contains(c.find("db-0").Blocked, "is unreachable") })
		if err := c.fence("a"); err != nil {
			t.Fatal(err)
		}
		c.until("db-0 lives on b", func() bool { m := c.find("db-0"); return m.Node == "b" && m.Ready })
		c.nodes["a"].start()
		c.until("a is back", func() bool { return c.live() == 2 })
		c.remembered(since, "a")
		alone := c.audit.running(member("db-0"))
		c.nodes["b"].cut()

		c.goBack(backup, bumped)
		if st := c.hold(); st.By != "node a" {
			t.Errorf("held by %s, want by node a", st.By)
		}
		one := func() bool { return slices.Equal(c.audit.running(member("db-0")), alone) }
		c.throughout(3*ttl, "db-0 runs on b, and nowhere else", one)
		c.declareRestore()
		c.until("node a was heard", func() bool { return c.restoreState().Nodes[0].State == records.NodeHeard })
		c.throughout(ttl, "b is waited for", one)
		c.nodes["b"].heal()
		c.until("all were heard", func() bool { return c.restoring(records.RestoreComplete) })
		c.until("the life on b is shown as one that the store does not know", func() bool { return len(c.strays("b")) == 1 })
		c.throughout(ttl, "db-0 runs on b, and nowhere else", one)
	})
}

// None of the nodes was told a list since the backup; pongs alone have told them that more
// was written.
func TestNodesThatWereToldNoListKnowThatTheStoreWentBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		c := newCluster(t, s, "a", "b", "c")
		c.apply(shape{name: "db", replicas: 1})
		c.ready("db", 1)
		backup, starts := s.Backup(), len(c.audit.starts())
		for i := range 20 { // more than is written until the last of them is heard
			c.apply(shape{name: fmt.Sprint("idle-", i), replicas: 0})
		}
		at, _, err := s.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.until("all nodes know of it", func() bool {
			return !slices.ContainsFunc([]spec.NodeName{"a", "b", "c"}, func(n spec.NodeName) bool { return c.nodes[n].knows().At.Rev < int64(at) })
		})
		c.goBack(backup, memstore.Restored{SameCluster: true})
		c.hold()
		c.until("all are heard, and say that they know more", func() bool {
			return c.live() == 3 && slices.Equal(c.evidence(), []string{"a", "b", "c"})
		})
		c.throughout(2*ttl, "nothing begins", func() bool { return len(c.audit.starts()) == starts })
		c.declareRestore()
		c.until("all were heard", func() bool { return c.restoring(records.RestoreComplete) })
		c.ready("db", 1)
		if got := len(c.audit.starts()); got != starts {
			t.Errorf("%d starts, want %d: its life was in the backup", got, starts)
		}
	})
}

// No node is cut off: the one on which the member lives is as much there as the others.
func TestAMovedMemberHasOneLifeThoughNobodyIsCutOff(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]memstore.Restored{"bumped": bumped, "plain": {}, "in its place": {SameCluster: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				s := inMemory(t)
				c := newCluster(t, s, "a", "b", "c")
				c.cordon("b", true)
				c.cordon("c", true)
				c.apply(shape{name: "db", replicas: 1})
				c.ready("db", 1)
				backup, since := s.Backup(), c.newest()
				c.moveTo("db-0", "c")
				c.moveTo("db-0", "b")
				alone := c.audit.running(member("db-0"))
				c.remembered(since, "a", "b", "c")
				c.goBack(backup, how)
				c.hold()
				one := func() bool { return slices.Equal(c.audit.running(member("db-0")), alone) }
				c.throughout(2*ttl, "db-0 runs on b, and nowhere else", one)
				c.declareRestore()
				c.until("all were heard", func() bool { return c.restoring(records.RestoreComplete) })
				c.until("the life on b is shown as one that the store does not know", func() bool { return len(c.strays("b")) == 1 })
				c.throughout(ttl, "db-0 runs on b, and nowhere else", one)
			})
		})
	}
}

// L2: the server goes on while its store is restored under it.
func TestAServerThatOutlivesARestoreEndsAndHoldsTheStoreAtItsNextStart(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]memstore.Restored{"bumped": bumped, "plain": {}, "in its place": {SameCluster: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				s := inMemory(t)
				c := newCluster(t, s, "a", "b")
				c.apply(shape{name: "db", replicas: 1})
				c.ready("db", 1)
				backup, since := s.Backup(), c.newest()
				c.scale("db", 2)
				c.ready("db", 2)
				c.until("the chain has grown, and the server has seen it", func() bool {
					var known records.Known
					err := durable.GetJSON(filepath.Join(c.dir, c.current().name, "seen.json"), &known)
					return err == nil && known.Link.Number > since.Number
				})
				starts := len(c.audit.starts())
				old := c.current()
				old.ends.Store(true)
				s.Restore(backup, how)
				select {
				case <-old.done:
				case <-time.After(patience):
					t.Fatal("the server goes on")
				}
				if old.err == nil || !errors.Is(old.err, store.ErrWentBack) {
					t.Errorf("it ended with %v", old.err)
				}
				next := c.remembering(old)
				if st := c.hold(); st.By != "server "+next.name {
					t.Errorf("held by %s, want by the server", st.By)
				}
				c.throughout(2*ttl, "nothing begins", func() bool { return len(c.audit.starts()) == starts })
				c.declareRestore()
				c.until("all were heard", func() bool { return c.restoring(records.RestoreComplete) })
				if got := fmt.Sprint(c.audit.running(member("db-1"))); !strings.Contains(got, "1.") || len(c.audit.starts()) != starts {
					t.Errorf("db-1 runs as %s after %d starts, want %d", got, len(c.audit.starts()), starts)
				}
			})
		})
	}
}
