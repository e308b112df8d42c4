package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/agent"
	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
)

// patience bounds every wait.
const patience = time.Minute

// cluster is a control plane and one node, all parts the real ones but the host.
type cluster struct {
	b     *testing.B
	ctx   context.Context // of everything in it
	store store.Store
	api   proto.ControlClient
	see   func([]records.Snapshot) // takes what the agent was sent of all sets; nil: ignored
}

// newCluster starts one whose node is connected; it ends with the benchmark.
func newCluster(b *testing.B) *cluster { return newClusterSeen(b, nil) }

// newClusterSeen is newCluster with see called for the snapshots of the sets.
func newClusterSeen(b *testing.B, see func([]records.Snapshot)) *cluster {
	b.Helper()
	dir, err := os.MkdirTemp("", "stead-b") // short, for the socket's sake
	must(b, err)
	b.Cleanup(func() { must(b, os.RemoveAll(dir)) })
	// Not the benchmark's own context: that one ends before the clean-up begins.
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	c := &cluster{b: b, ctx: ctx, store: openStore(b, filepath.Join(dir, "etcd")), see: see}
	b.Cleanup(cancel)
	s, err := server.New(server.Config{
		Store: c.store, StoreName: "embedded etcd", Name: "s1", Version: "bench",
		Socket: filepath.Join(dir, "s.sock"), KeyFile: filepath.Join(dir, "secret.key"), SeenFile: filepath.Join(dir, "seen.json"),
	})
	must(b, err)
	c.background("server", s.Run)
	conn, err := s.Dial()
	must(b, err)
	b.Cleanup(func() { must(b, conn.Close()) })
	c.api = proto.NewControlClient(conn)
	select {
	case <-s.Serving():
	case <-time.After(patience):
		b.Fatal("the server does not serve")
	}
	c.startAgent(dir, filepath.Join(dir, "s.sock"))
	c.until("the node is connected", func() bool {
		_, kvs, err := c.store.Snapshot(ctx, store.KindSession+"/")
		must(b, err)
		return len(kvs) == 1
	})
	return c
}

// openStore is an embedded etcd in dir with fsync on, as `stead server` has it.
func openStore(b *testing.B, dir string) store.Store {
	b.Helper()
	e, err := etcdembed.Start(b.Context(), etcdembed.Config{Dir: dir})
	must(b, err)
	b.Cleanup(func() { must(b, e.Close()) })
	s, err := etcdstore.New(etcdstore.Config{Client: e.Client()})
	must(b, err)
	b.Cleanup(func() { must(b, s.Close()) })
	return s
}

func (c *cluster) startAgent(dir, socket string) {
	c.b.Helper()
	at, err := home.Open(filepath.Join(dir, "agent"), "n1")
	must(c.b, err)
	c.b.Cleanup(func() { must(c.b, at.Close()) })
	dial := func(context.Context) (*grpc.ClientConn, error) { return server.Dial(socket) }
	facts := records.NodeFacts{Name: "n1", Boot: "b1", CPUMillis: 1 << 40, MemoryBytes: 1 << 50}
	must(c.b, session.Join(c.ctx, at, dial, facts.Boot, facts, slog.New(slog.DiscardHandler)))
	host := fakert.New()
	a, err := agent.New(agent.Config{
		Home: at, RunDir: c.runDir(), Dial: dial, Boot: facts.Boot, Facts: facts,
		Runtime: host, Network: host, Volumes: host, Snapshots: c.see, Logger: slog.New(slog.DiscardHandler),
	})
	must(c.b, err)
	c.background("agent", a.Run)
}

// runDir is on a tmpfs, as the agent's is on a real node.
func (c *cluster) runDir() string {
	c.b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "stead-b")
	must(c.b, err)
	c.b.Cleanup(func() { must(c.b, os.RemoveAll(dir)) })
	return dir
}

// background runs a part until the benchmark's clean-up reaches it.
func (c *cluster) background(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(c.ctx)
	end := make(chan error, 1)
	go func() { end <- run(ctx) }()
	c.b.Cleanup(func() {
		cancel()
		if err := <-end; err != nil && !errors.Is(err, context.Canceled) {
			c.b.Errorf("%s: %v", name, err)
		}
	})
}

// until looks again and again; only for what is not measured.
func (c *cluster) until(what string, ok func() bool) {
	c.b.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.b.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// apply makes a set of n members and returns when the API has answered.
func (c *cluster) apply(name, policy string, n int) {
	c.b.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	_, err := c.api.Apply(ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: fmt.Appendf(nil, setText, name, policy, n)}}})
	must(c.b, err)
}

const setText = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s}
spec:
  podManagementPolicy: %[2]s
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: "example.local/db:1"}]}
`

// remove deletes a set and waits until nothing is left of it.
func (c *cluster) remove(name string) {
	c.b.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	_, err := c.api.Delete(ctx, &proto.DeleteRequest{Kind: "set", Name: name})
	must(c.b, err)
	c.until("set removed", func() bool {
		_, kvs, err := c.store.Get(ctx, store.SetKey(spec.SetRef{Namespace: spec.DefaultNamespace, Name: spec.SetName(name)}))
		must(c.b, err)
		return len(kvs) == 0
	})
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
