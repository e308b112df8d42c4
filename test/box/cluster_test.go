package box

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/server/fence"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
	"github.com/stead-project/stead/store/etcdstore"
	"github.com/stead-project/stead/store/memstore"
)

const (
	// patience bounds every wait of a test, on its own clock: what takes longer hangs.
	patience = 5 * time.Minute
	// ttl is that of the nodes' sessions and of the leader: the least there is.
	ttl = time.Second
)

// The tests wait for the disk: more than there are cores run side by side.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// cluster is a store, servers, and nodes with their agents.
type cluster struct {
	t     *testing.T
	dir   string
	began time.Time
	log   *slog.Logger
	audit *audit
	nodes map[spec.NodeName]*node
	ttl   time.Duration // of sessions and leaders

	mu      sync.Mutex
	store   store.Store
	servers []*serverProcess // all there ever were
	asked   *serverProcess   // by users and nodes
	group   sync.WaitGroup   // of replacements
	closed  bool
	ending  chan struct{} // closed when the test ends
	fencing string        // the servers' fence command
	crashes atomic.Int64  // of agents and servers, by a fuse
}

// newCluster starts a server on s and an agent on each node.
func newCluster(t *testing.T, s store.Store, nodes ...spec.NodeName) *cluster {
	t.Helper()
	return newClusterOf(t, s, ttl, "", nodes...)
}

// newFenced is newCluster with a fence command.
func newFenced(t *testing.T, s store.Store, fence string, nodes ...spec.NodeName) *cluster {
	t.Helper()
	return newClusterOf(t, s, ttl, fence, nodes...)
}

// newClusterOf has sessions and leaders of that ttl: with patience none ever lapses.
func newClusterOf(t *testing.T, s store.Store, ttl time.Duration, fence string, nodes ...spec.NodeName) *cluster {
	t.Helper()
	c := &cluster{
		t: t, dir: t.TempDir(), began: time.Now(), store: s, nodes: map[spec.NodeName]*node{}, ttl: ttl,
		log:   slog.New(slog.NewTextHandler(t.Output(), nil)),
		audit: &audit{t: t, hosts: map[spec.NodeName]*fakert.Host{}}, ending: make(chan struct{}), fencing: fence,
	}
	t.Cleanup(c.close)
	c.startServer()
	for _, name := range nodes {
		c.addNode(name)
	}
	c.until("all nodes have joined", func() bool { return c.live() == len(nodes) })
	return c
}

// inMemory is a store in memory.
func inMemory(t *testing.T) *memstore.Store {
	s := memstore.New()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// onEtcd is a fresh embedded etcd that ends with the test.
func onEtcd(t *testing.T) store.Store {
	t.Helper()
	embedded, err := etcdembed.Start(t.Context(), etcdembed.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := etcdstore.New(etcdstore.Config{Client: embedded.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), embedded.Close()); err != nil {
			t.Errorf("close etcd: %v", err)
		}
	})
	return s
}

// close ends agents first, then servers.
func (c *cluster) close() {
	c.mu.Lock()
	c.closed = true
	close(c.ending)
	c.mu.Unlock()
	c.group.Wait()
	for _, n := range c.nodes {
		n.crash()
		n.blind()
	}
	for _, s := range c.servers {
		s.link.release()
		s.cancel()
		<-s.done
		if err := s.conn.Close(); err != nil {
			c.t.Errorf("close connection: %v", err)
		}
	}
}

// serverProcess is one server with its own listener and link to the store.
type serverProcess struct {
	name   string
	link   *link
	cancel context.CancelFunc
	ends   atomic.Bool // it may end by itself
	done   chan struct{}
	err    error // what it ended with; read after done
	local  *pipe
	conn   *grpc.ClientConn
}

// startServer starts one more server; from now on it is the one that is asked. It
// may be called from any goroutine.
func (c *cluster) startServer() *serverProcess {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	name := fmt.Sprintf("s%d", len(c.servers)+1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	s := &serverProcess{name: name, link: newLink(ctx, c.store), cancel: cancel, done: make(chan struct{}), local: newPipe()}
	srv, err := server.New(server.Config{
		Store: s.link, StoreName: "box", Name: name, Local: s.local,
		KeyFile: filepath.Join(c.dir, "secret.key"), SeenFile: filepath.Join(c.dir, name, "seen.json"), SessionTTL: c.ttl, LeaderTTL: c.ttl,
		FenceCommand: c.fencing, FenceAfter: fence.LeastAfter,
		Logger: c.log.With("server", name),
	})
	if err == nil {
		s.conn, err = s.local.dial()
	}
	if err != nil {
		c.t.Errorf("make server %s: %v", name, err)
		cancel()
		return nil
	}
	go func() {
		defer close(s.done)
		s.err = srv.Run(ctx)
		if s.err != nil && s.link.down.Err() == nil && !s.ends.Load() {
			c.t.Errorf("server %s ended: %v", name, s.err)
		}
	}()
	c.servers, c.asked = append(c.servers, s), s
	return s
}

// clock is the time since boot, of all nodes.
func (c *cluster) clock() time.Duration { return time.Hour + time.Since(c.began) }

// turnTo makes users and nodes ask another server from now on.
func (c *cluster) turnTo(s *serverProcess) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = s
}

// current is the server that is asked.
func (c *cluster) current() *serverProcess {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func (c *cluster) api() proto.ControlClient { return proto.NewControlClient(c.current().conn) }

// crash ends a server as SIGKILL does: nothing of it reaches the store any more,
// and its leases run out by themselves.
func (s *serverProcess) crash() {
	s.link.cut()
	s.cancel()
}

// crashServerAt crashes the current server at its n-th commit from now, before or
// after it has its effect; another one takes its place at once.
func (c *cluster) crashServerAt(n int, before bool) {
	s := c.current()
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	s.link.fuse = &fuse{left: n, before: before, blow: func() {
		s.crash()
		c.crashes.Add(1)
		c.later(func() { c.startServer() })
	}}
}

// later runs f beside the test, unless that ends; close waits for it.
func (c *cluster) later(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.group.Go(f)
	}
}

// leads waits until the store names a server as leader, or the test ends. It may be
// called from any goroutine.
func (c *cluster) leads(name string) {
	for {
		_, kvs, err := c.store.Get(context.WithoutCancel(c.t.Context()), store.LeaderKey)
		if err == nil && string(kvs[store.LeaderKey].Value) == name {
			return
		}
		select {
		case <-c.ending:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// until waits for a condition.
func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			c.t.Fatalf("never: %s\n%s", what, c.describe())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// throughout checks that a condition holds, again and again for a while: for what
// must not happen there is no event to wait for.
func (c *cluster) throughout(d time.Duration, what string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !ok() {
			c.t.Fatalf("not so: %s\n%s", what, c.describe())
		}
	}
}
