package box

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
)

// etcd is a real one, embedded, in a directory.
type etcd struct {
	*etcdstore.Store
	server *etcdembed.Embedded
	ended  bool
}

func startEtcd(t *testing.T, dir string) *etcd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := etcdembed.Start(ctx, etcdembed.Config{Dir: dir, NoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := etcdstore.New(etcdstore.Config{Client: e.Client()})
	if err != nil {
		t.Fatal(errors.Join(err, e.Close()))
	}
	out := &etcd{Store: s, server: e}
	t.Cleanup(func() { out.stop(t) })
	return out
}

func (e *etcd) stop(t *testing.T) {
	t.Helper()
	if e.ended {
		return
	}
	e.ended = true
	if err := errors.Join(e.Close(), e.server.Close()); err != nil {
		t.Errorf("stop etcd: %v", err)
	}
}

// saved is what an operator has of an etcd at one moment.
type saved struct {
	snapshot string // file, as of etcdctl snapshot save
	machine  string // copy of the directory, as in a snapshot of a virtual machine
}

// save stops the etcd in dir, copies its directory, and starts it again for a snapshot.
func save(t *testing.T, e *etcd, dir string) (*etcd, saved) {
	t.Helper()
	to := t.TempDir()
	out := saved{filepath.Join(to, "snapshot.db"), filepath.Join(to, "machine")}
	e.stop(t)
	if err := os.CopyFS(out.machine, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	e = startEtcd(t, dir)
	var b bytes.Buffer
	if err := e.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out.snapshot, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return e, out
}

// restored is etcd's own restore of a snapshot into a fresh directory.
func restored(t *testing.T, s saved, change func(*snapshot.RestoreConfig)) string {
	t.Helper()
	dir := t.TempDir()
	c := snapshot.RestoreConfig{
		SnapshotPath: s.snapshot, Name: "stead", OutputDataDir: filepath.Join(dir, "data"), PeerURLs: []string{"unix://embedded"},
		InitialCluster: "stead=unix://embedded", InitialClusterToken: embed.NewConfig().InitialClusterToken,
	}
	change(&c)
	if err := snapshot.NewV3(zap.NewNop()).Restore(c); err != nil {
		t.Fatal(err)
	}
	return dir
}

// forced is what a member becomes that is started with --force-new-cluster.
func forced(t *testing.T, dir string) string {
	t.Helper()
	peer := url.URL{Scheme: "unix", Host: "embedded"}
	c := embed.NewConfig()
	c.Dir, c.Name, c.ForceNewCluster, c.UnsafeNoFsync = filepath.Join(dir, "data"), "stead", true, true
	c.ListenPeerUrls, c.AdvertisePeerUrls, c.InitialCluster = nil, []url.URL{peer}, "stead=unix://embedded"
	c.ListenClientUrls, c.AdvertiseClientUrls = nil, nil
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(patience):
		t.Error("a member with --force-new-cluster does not serve")
	}
	e.Close()
	return dir
}

// TestARestoredEtcdIsNoticed: with etcd itself, in each of the ways in which it goes back.
func TestARestoredEtcdIsNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		back func(t *testing.T, s saved, dir string) string // the directory that is used then
		held string                                         // why; "": it is not
	}{
		"snapshot restore": {func(t *testing.T, s saved, _ string) string {
			return restored(t, s, func(c *snapshot.RestoreConfig) { c.InitialClusterToken = "another" })
		}, "etcd names itself"},
		"snapshot restore with the same token": {func(t *testing.T, s saved, _ string) string {
			return restored(t, s, func(*snapshot.RestoreConfig) {})
		}, "revision"},
		"snapshot restore with the same token and --bump-revision": {func(t *testing.T, s saved, _ string) string {
			dir := restored(t, s, func(c *snapshot.RestoreConfig) { c.RevisionBump, c.MarkCompacted = 1_000_000_000, true })
			for range 3 { // until its term, which a restore begins anew, tells nothing
				startEtcd(t, dir).stop(t)
			}
			return dir
		}, "changes that are known are missing in it"},
		"an old member with --force-new-cluster":     {func(t *testing.T, s saved, _ string) string { return forced(t, s.machine) }, "revision"},
		"a snapshot of the machine":                  {func(_ *testing.T, s saved, _ string) string { return s.machine }, "revision"},
		"the newest member with --force-new-cluster": {func(t *testing.T, _ saved, dir string) string { return forced(t, dir) }, ""},
		"started again":                              {func(_ *testing.T, _ saved, dir string) string { return dir }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			e, s := save(t, primed(t, dir), dir)
			cl := newCluster(t, e.Store)
			cl.apply(shape{name: "db", replicas: 0})
			cl.knows(2)
			cl.current().crash()
			cl.remembering(cl.current()) // another term makes another link
			last := cl.knows(3)
			cl.current().crash()
			<-cl.current().done
			e.stop(t)
			e = startEtcd(t, c.back(t, s, dir))
			cl.mu.Lock()
			cl.store = e.Store
			cl.mu.Unlock()
			next := cl.remembering(cl.current())
			if c.held == "" {
				if now := cl.knows(last.Link.Number + 1); now.At.Epoch != 1 || cl.restoring(records.RestoreHeld) {
					t.Errorf("a store that goes on is held: %+v", cl.restoreState())
				}
				return
			}
			if st := cl.hold(); st.By != "server "+next.name || !strings.Contains(st.Cause, c.held) {
				t.Errorf("held by %s: %s; want by the server: %s", st.By, st.Cause, c.held)
			}
		})
	}
}

// primed is an etcd in dir in which a leader has made a link.
func primed(t *testing.T, dir string) *etcd {
	t.Helper()
	e := startEtcd(t, dir)
	t.Run("before", func(t *testing.T) {
		c := newCluster(t, e.Store)
		c.knows(1)
	})
	return e
}

// knows waits until the current server has on its disk that the chain has so many links, and
// returns all that it has there.
func (c *cluster) knows(links int64) (known records.Known) {
	c.t.Helper()
	c.until("the chain has grown, and the server has seen it", func() bool {
		err := durable.GetJSON(filepath.Join(c.dir, c.current().name, "seen.json"), &known)
		return err == nil && known.Link.Number >= links
	})
	return known
}
