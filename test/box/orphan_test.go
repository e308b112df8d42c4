package box

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/proto"
)

// A set is let go with delete --cascade=orphan: its members run on, are restarted in
// place by their agents and found by their peers, but one that dies is not replaced, nor
// does the death of the server change that. Applied again the set is adopted: the dead
// one is replaced, and nobody else gets another life.
func TestAnOrphanedSetRunsOnAndIsAdoptedWithItsLives(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b", "c")
		db := shape{name: "db", replicas: 3, volumes: true}
		c.apply(db)
		c.ready("db", 3)
		before := c.keepsakes("db")
		c.must("orphan db", func(ctx context.Context, api proto.ControlClient) error {
			_, err := api.Delete(ctx, &proto.DeleteRequest{Kind: "set", Name: "db", Cascade: "orphan"})
			return err
		})
		c.until("db says that it is orphaned", func() bool { return c.condition("db", "Progressing").Reason == "Orphaned" })

		low, dead, high := c.find("db-0"), c.find("db-1"), c.find("db-2")
		if !c.host("db-0").host.Exit(process("db-0"), runtime.Exit{Code: 1}) {
			t.Fatal("db-0 did not run")
		}
		c.until("db-0 is restarted in place", func() bool { m := c.find("db-0"); return m.Ready && m.Restarts == 1 && m.Token == low.Token })
		lost, other := c.host("db-1"), c.host("db-2")
		lost.reboot()
		lost.start()
		over := func() bool {
			m := c.find("db-1")
			return m.Token == dead.Token && strings.HasPrefix(m.Blocked, "its life is over, and it is not managed")
		}
		c.until("db-1 says that it is over, and that nobody replaces it", over)
		c.until("DNS has the others", func() bool { return slices.Equal(other.readyPeers("db"), []string{"db-0", "db-2"}) })
		c.current().crash()
		c.startServer()
		c.throughout(2*ttl, "nobody replaces it", func() bool { return c.find("db-1").Token == dead.Token && len(c.audit.starts()) == 4 })
		c.until("db-1 says it still", over)

		c.apply(db)
		c.ready("db", 3)
		if got := c.find("db-1"); got.Token == dead.Token || got.Address != dead.Address {
			t.Errorf("got %+v; want another life of %s at the address of before", got, dead.Token)
		}
		if got := c.find("db-0"); got.Token != low.Token {
			t.Errorf("got %+v, was %+v; want the life that was", got, low)
		}
		if got := c.find("db-2"); got.Token != high.Token {
			t.Errorf("got %+v, was %+v; want the life that was", got, high)
		}
		c.sameKeepsakes("db", before)
		if got, want := order(c.audit.starts()), []string{"db-0", "db-1", "db-2", "db-0", "db-1"}; !slices.Equal(got, want) {
			t.Errorf("started %v, want %v", got, want)
		}
	})
}
