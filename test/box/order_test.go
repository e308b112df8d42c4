package box

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// gates hold members back from being ready until each is opened.
type gates struct {
	mu   sync.Mutex
	open map[string]bool
}

// gate lets no probed member of any node be ready until let says so.
func (c *cluster) gate() *gates {
	g := &gates{open: map[string]bool{}}
	for _, n := range c.nodes {
		n.host.OnExec(func(_ context.Context, id runtime.ContainerID, _ runtime.Exec) (int, error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.open[id.ID.MemberName()] {
				return 0, nil
			}
			return 1, nil
		})
	}
	return g
}

func (g *gates) let(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[name] = true
}

func TestMembersStartOneAfterTheOtherIsReady(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		g := c.gate()
		c.apply(shape{name: "db", replicas: 3, probed: true})
		for _, step := range []struct{ next, waits string }{{"db-0", "db-1"}, {"db-1", "db-2"}, {"db-2", ""}} {
			c.until(step.next+" runs", func() bool { return c.find(step.next).Phase == records.PhaseRunning })
			if step.waits != "" {
				if got := c.audit.running(member(step.waits)); len(got) != 0 {
					t.Errorf("%s runs before %s is ready: %v", step.waits, step.next, got)
				}
				c.explained(step.waits, step.waits+" waits: waiting for "+step.next)
			}
			if c.find(step.next).Ready {
				t.Errorf("%s is ready before its probe says so", step.next)
			}
			g.let(step.next)
			c.until(step.next+" is ready", func() bool { return c.find(step.next).Ready })
		}
		if got, want := order(c.audit.starts()), []string{"db-0", "db-1", "db-2"}; !slices.Equal(got, want) {
			t.Errorf("started %v, want %v", got, want)
		}
		c.until("there is nothing to explain", func() bool { return c.explain("db") == "" })
	})
}

func TestParallelMembersStartAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newClusterOf(t, inMemory(t), patience, "", "a", "b") // a node that looked silent would get none
		g := c.gate()
		c.apply(shape{name: "db", replicas: 5, parallel: true, probed: true})
		c.until("all run, though none is ready", func() bool { return len(c.audit.starts()) == 5 })
		for _, name := range []string{"db-4", "db-3", "db-2", "db-1", "db-0"} {
			g.let(name)
		}
		c.ready("db", 5)
		on := map[spec.NodeName]int{}
		for _, s := range c.audit.starts() {
			on[s.Node]++
		}
		if len(on) != 2 || on["a"]+on["b"] != 5 {
			t.Errorf("the members are not spread: %v", on)
		}
	})
}

// keepsake is what an identity keeps.
type keepsake struct {
	Address netip.Addr
	Volume  records.VolumeID
	Node    spec.NodeName
}

// keepsakes are those of the members that a set has.
func (c *cluster) keepsakes(set string) map[string]keepsake {
	c.t.Helper()
	out := map[string]keepsake{}
	for _, m := range c.members(set) {
		out[m.Name] = keepsake{Address: m.Address, Node: m.Node}
	}
	for _, v := range c.volumes(set) {
		if k, lives := out[v.ID.MemberName()]; lives {
			k.Volume = v.UID
			out[v.ID.MemberName()] = k
		}
	}
	return out
}

// stops watches the store, and returns a func that names the members in the order
// in which their stop was ordered since.
func (c *cluster) stops() func() []string {
	c.t.Helper()
	rev, _, err := c.store.Snapshot(c.t.Context(), store.KindMember+"/")
	if err != nil {
		c.t.Fatal(err)
	}
	return func() (names []string) {
		w, err := c.store.Watch(c.t.Context(), store.KindMember+"/", rev)
		if err != nil {
			c.t.Fatal(err)
		}
		defer w.Close()
		now, _, err := c.store.Get(c.t.Context(), "nothing")
		if err != nil {
			c.t.Fatal(err)
		}
		for _, e := range history(c, w, now) {
			if m, err := store.Decode[records.Member](e.KV); err == nil && m.Goal == records.GoalStop {
				names = append(names, m.ID.MemberName())
			}
		}
		return names
	}
}

// history are the writes that a watch delivers up to a revision; a last write of our
// own marks its end.
func history(c *cluster, w store.Watch, until store.Rev) (events []store.Event) {
	c.t.Helper()
	const end = store.KindMember + "/-/end/0"
	for _, op := range []store.Op{store.Put(end, []byte("{}")), store.Del(end)} {
		if _, err := c.store.Commit(c.t.Context(), store.Txn{Then: []store.Op{op}}); err != nil {
			c.t.Fatal(err)
		}
	}
	for {
		batch, err := w.Next(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		for _, e := range batch.Events {
			if e.Mod > until {
				return events
			}
			if !e.Delete {
				events = append(events, e)
			}
		}
	}
}

func TestScaleUpAndDownAndUpKeepsWhatAMemberOwns(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		c.apply(shape{name: "db", replicas: 3, volumes: true})
		c.ready("db", 3)
		c.scale("db", 5)
		c.ready("db", 5)
		before := c.keepsakes("db")
		stops := c.stops()
		c.scale("db", 3)
		c.ready("db", 3)
		if got, want := stops(), []string{"db-4", "db-3"}; !slices.Equal(got, want) {
			t.Errorf("stopped %v, want %v", got, want)
		}
		if got := len(c.volumes("db")); got != 5 {
			t.Errorf("%d volumes are left, want all 5", got)
		}
		c.scale("db", 5)
		c.ready("db", 5)
		c.sameKeepsakes("db", before)
		if got, want := order(c.audit.starts()), []string{"db-0", "db-1", "db-2", "db-3", "db-4", "db-3", "db-4"}; !slices.Equal(got, want) {
			t.Errorf("started %v, want %v", got, want)
		}
	})
}

// sameKeepsakes checks that every member has what it had, and that nobody shares.
func (c *cluster) sameKeepsakes(set string, before map[string]keepsake) {
	c.t.Helper()
	owners := map[any]string{}
	for name, now := range c.keepsakes(set) {
		if was, known := before[name]; known && now != was {
			c.t.Errorf("%s has now %+v, had %+v", name, now, was)
		}
		if !now.Address.IsValid() || now.Volume == "" {
			c.t.Errorf("%s has no address or volume: %+v", name, now)
		}
		for _, owned := range []any{now.Address, now.Volume} {
			if other, taken := owners[owned]; taken {
				c.t.Errorf("%s and %s share %v", name, other, owned)
			}
			owners[owned] = name
		}
	}
}

func TestADeletedSetStopsFromTheTopAndItsHeirTakesAllBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		db := shape{name: "db", replicas: 3, volumes: true}
		c.apply(db)
		c.ready("db", 3)
		before := c.keepsakes("db")
		stops := c.stops()
		c.delete("db")
		c.gone("db")
		if got, want := stops(), []string{"db-2", "db-1", "db-0"}; !slices.Equal(got, want) {
			t.Errorf("stopped %v, want %v", got, want)
		}
		for name := range before {
			if got := c.audit.running(member(name)); len(got) != 0 {
				t.Errorf("%s runs on: %v", name, got)
			}
		}
		if got := len(c.volumes("db")); got != 3 {
			t.Errorf("%d volumes are left, want 3", got)
		}
		other := shape{name: "other", replicas: 2, volumes: true}
		c.apply(other)
		c.ready("other", 2)
		c.apply(db)
		c.ready("db", 3)
		c.sameKeepsakes("db", before)
		for name, k := range c.keepsakes("other") {
			for owner, was := range before {
				if k.Address == was.Address {
					t.Errorf("%s was given the address of %s", name, owner)
				}
			}
		}
	})
}
