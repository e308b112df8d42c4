package box

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store/memstore"
)

// restoreState is what a server says of the restore.
func (c *cluster) restoreState() (st records.RestoreState) {
	c.t.Helper()
	c.must("info", func(ctx context.Context, api proto.ControlClient) error {
		info, err := api.Info(ctx, &proto.InfoRequest{})
		if err != nil {
			return err
		}
		return json.Unmarshal(info.GetRestoreJson(), &st)
	})
	return st
}

func (c *cluster) restoring(state string) bool { return c.restoreState().State == state }

// declareRestore is the operator's word; off excuses nodes. An answer that was lost is as
// good as one that came.
func (c *cluster) declareRestore(off ...string) {
	c.t.Helper()
	c.must("restore", func(ctx context.Context, api proto.ControlClient) error {
		_, err := api.Restore(ctx, &proto.RestoreRequest{Off: off})
		return err
	}, codes.FailedPrecondition)
}

func (c *cluster) cordon(node spec.NodeName, on bool) {
	c.t.Helper()
	c.must("cordon", func(ctx context.Context, api proto.ControlClient) error {
		_, err := api.EditNode(ctx, &proto.EditNodeRequest{Name: string(node), Cordon: &on})
		return err
	})
}

// remembering starts a server that has on its disk what another one had.
func (c *cluster) remembering(of *serverProcess) *serverProcess {
	c.t.Helper()
	<-of.done
	known, err := os.ReadFile(filepath.Join(c.dir, of.name, "seen.json"))
	if err == nil {
		dir := filepath.Join(c.dir, fmt.Sprintf("s%d", len(c.servers)+1)) // as startServer names the next
		if err = os.MkdirAll(dir, 0o700); err == nil {
			err = os.WriteFile(filepath.Join(dir, "seen.json"), known, 0o600)
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return c.startServer()
}

// movedToLate is a cluster whose db-0 began on node a; after the backup node late joined,
// and db-0 moved there, by hand. No server reaches late any more.
func movedToLate(t *testing.T, ttl time.Duration) (c *cluster, s *memstore.Store, backup memstore.Backup, alone []string) {
	s = inMemory(t)
	c = newClusterOf(t, s, ttl, "", "a")
	c.apply(shape{name: "db", replicas: 1})
	c.ready("db", 1)
	backup = s.Backup()
	late := c.addNode("late")
	c.until("node late has joined", func() bool { return c.live() == 2 })
	c.cordon("a", true)
	c.must("restart", func(ctx context.Context, api proto.ControlClient) error {
		_, err := api.Restart(ctx, &proto.RestartRequest{Member: "db-0"})
		return err
	})
	c.until("db-0 lives on node late", func() bool { m := c.find("db-0"); return m.Node == "late" && m.Ready })
	c.until("the server has it on disk that node late is there", func() bool {
		known, err := os.ReadFile(filepath.Join(c.dir, c.current().name, "seen.json"))
		return err == nil && strings.Contains(string(known), `"late"`)
	})
	late.cut()
	return c, s, backup, c.audit.running(member("db-0"))
}

// V4: the backup does not know the node, but the server's own disk does.
func TestNothingBeginsBeforeANodeIsHeardThatTheBackupDoesNotKnow(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, s, backup, alone := movedToLate(t, ttl)
		old := c.current()
		old.crash()
		s.Restore(backup, memstore.Restored{})
		c.remembering(old)
		c.until("the store is held", func() bool { return c.restoring(records.RestoreHeld) })
		c.declareRestore()
		c.until("node a was heard, and node late is waited for", func() bool {
			st := c.restoreState()
			return len(st.Nodes) == 2 && st.Nodes[0].State == records.NodeHeard && st.Nodes[1].Name == "late" && st.Nodes[1].State == records.NodeWaited
		})
		c.until("db-0 says so", func() bool {
			return strings.Contains(c.find("db-0").Blocked, "until node late has reported what it runs")
		})
		one := func() bool { return slices.Equal(c.audit.running(member("db-0")), alone) }
		c.throughout(2*ttl, "db-0 runs on node late, and nowhere else", one)
		c.nodes["late"].heal()
		c.until("all were heard", func() bool { return c.restoring(records.RestoreComplete) })
		c.until("its life blocks db-0", func() bool { return strings.Contains(c.find("db-0").Blocked, "node late runs a life of it") })
		c.throughout(ttl, "db-0 runs on node late, and nowhere else", one)
		c.nodes["late"].reboot()
		c.nodes["late"].start()
		c.until("when that is over it begins in the new epoch", func() bool {
			m := c.find("db-0")
			return m.Ready && strings.HasPrefix(m.Token, fmt.Sprintf("%d.", c.restoreState().Epoch))
		})
	})
}

func TestANodeThatIsExcusedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, s, backup, _ := movedToLate(t, ttl)
		old := c.current()
		old.crash()
		c.nodes["late"].reboot() // and stays off, as is said
		s.Restore(backup, memstore.Restored{})
		c.remembering(old)
		c.until("the store is held", func() bool { return c.restoring(records.RestoreHeld) })
		c.declareRestore()
		c.until("node a was heard", func() bool { return c.restoreState().Nodes[0].State == records.NodeHeard })
		c.declareRestore("late")
		c.ready("db", 1)
		if st := c.restoreState(); st.State != records.RestoreComplete || st.Nodes[1].State != records.NodeExcused {
			t.Errorf("got %+v", st)
		}
	})
}

// V4: nobody remembers the node, and it says hello while a start of the same member, which
// was decided without it, is on its way to the store.
func TestAStrayThatArrivesWhileAStartIsOnItsWayStopsIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, s, backup, alone := movedToLate(t, patience) // so that no leader falls while it stands still
		c.current().crash()
		s.Restore(backup, memstore.Restored{})
		leading := c.startServer() // on another machine: it remembers nothing
		held := leading.link.holdAt(startOf(member("db-0")))
		c.declareRestore()
		select {
		case <-held:
		case <-time.After(patience):
			t.Fatalf("the engine never began db-0\n%s", c.describe())
		}
		c.startServer()
		c.nodes["late"].heal()
		c.until("node late has told what it runs", func() bool { return len(c.strays("late")) == 1 })
		leading.link.release()
		c.until("the start has landed", func() bool {
			return slices.ContainsFunc(leading.link.lateCommits(), func(l late) bool { return startOf(member("db-0"))(l.txn) })
		})
		for _, l := range leading.link.lateCommits() {
			if startOf(member("db-0"))(l.txn) && l.err == nil {
				t.Error("the start was written, though its member runs on node late")
			}
		}
		c.until("the life on node late blocks db-0", func() bool { return strings.Contains(c.find("db-0").Blocked, "node late runs a life of it") })
		c.throughout(ttl, "db-0 runs there, and nowhere else", func() bool { return slices.Equal(c.audit.running(member("db-0")), alone) })
	})
}
