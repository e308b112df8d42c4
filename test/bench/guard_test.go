package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

var guarding = flag.Bool("guard", false, "count what a member costs; for `make bench-guard`")

const (
	guardMembers  = 100
	guardParallel = 500 // with fewer, what falls together weighs much
	guardCommit   = 500 * time.Microsecond
	guardRuns     = 3
	guardRest     = 5 * time.Second // after a phase: what is written behind it counts too
)

// TestGuard counts what a member costs in small clusters, for `make bench-guard`: without -guard it does
// nothing. Each is in a bubble of testing/synctest, whose clock moves on when all in it wait, so that a
// busy machine counts what an idle one does. There a commit takes half a millisecond and
// everything else no time; connections and the store are in memory. The least of three runs counts: in
// which order goroutines run is still chance.
func TestGuard(t *testing.T) {
	if !*guarding {
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // fewer ways in which things fall together
	for _, size := range []struct {
		kind  string
		hosts int
	}{{"light", 10}, {"agent", 1}} {
		least := map[string]map[string]float64{}
		for range guardRuns {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, size.kind, size.hosts)
				g.least = least
				g.phase("ordered", guardMembers, func() { g.apply("ordered", "OrderedReady", guardMembers) }, ready)
				g.phase("rolling", guardMembers, func() { g.restart("ordered") }, replaced)
				g.phase("to-zero", guardMembers, func() { g.apply("ordered", "OrderedReady", 0) }, stopped)
				g.phase("parallel", guardParallel, func() { g.apply("parallel", "Parallel", guardParallel) }, ready)
			})
		}
		for name, figures := range least {
			fmt.Printf("BenchmarkGuard/%s/%d/%s 1", size.kind, size.hosts, name)
			for unit, figure := range figures {
				fmt.Printf(" %.4g %s/member", figure, unit)
			}
			fmt.Println()
		}
	}
}

// guarded is a server and nodes in one bubble.
type guarded struct {
	t      *testing.T
	kind   string
	ctx    context.Context
	stored *countedStore
	api    proto.ControlClient
	moved  *traffic
	least  map[string]map[string]float64 // by phase and unit
}

// slowStore takes a while for each commit.
type slowStore struct{ store.Store }

// Commit implements store.Store.
func (s slowStore) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	time.Sleep(guardCommit)
	return s.Store.Commit(ctx, t)
}

// listener is one in memory, whose callers count as root.
type listener struct{ *bufconn.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return localConn{c}, err
}

// localConn is as a connection of a unix socket.
type localConn struct{ net.Conn }

// LocalAddr implements net.Conn.
func (localConn) LocalAddr() net.Addr { return &net.UnixAddr{Name: "bench", Net: "unix"} }

func newGuarded(t *testing.T, kind string, hosts int) *guarded {
	t.Helper()
	memory := memstore.New()
	g := &guarded{t: t, kind: kind, stored: &countedStore{Store: slowStore{memory}}, moved: &traffic{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	g.ctx = ctx
	local := listener{bufconn.Listen(1 << 20)}
	dir := t.TempDir()
	s, err := server.New(server.Config{
		Store: g.stored, StoreName: "memory", Name: "s1", Version: "bench", Local: local,
		KeyFile: filepath.Join(dir, "secret.key"), SeenFile: filepath.Join(dir, "seen.json"),
	})
	g.must(err)
	var parts sync.WaitGroup
	run := func(name string, f func() error) {
		parts.Go(func() {
			if err := f(); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	run("server", func() error { return s.Run(ctx) })
	way := func(ctx context.Context) (net.Conn, error) { return local.DialContext(ctx) }
	conn, err := newLink(&traffic{}, way).dial(ctx)
	g.must(err)
	g.api = proto.NewControlClient(conn)
	t.Cleanup(func() {
		g.must(conn.Close())
		cancel()
		parts.Wait()
		g.must(memory.Close())
	})
	<-s.Serving()
	began := time.Now()
	for i := range hosts {
		name, l := fmt.Sprintf("n%02d", i), newLink(g.moved, way)
		run(name, func() error {
			if kind == "light" {
				(&light{name: name, link: l}).run(ctx)
				return nil
			}
			return runAgent(ctx, name, l, filepath.Join(dir, name), func() time.Duration { return time.Hour + time.Since(began) })
		})
	}
	time.Sleep(guardRest)
	_, sessions, err := g.stored.Snapshot(ctx, store.KindSession+"/")
	g.must(err)
	if len(sessions) != hosts {
		t.Fatalf("%d of %d nodes are connected", len(sessions), hosts)
	}
	return g
}

func (g *guarded) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *guarded) apply(name, policy string, n int) {
	g.t.Helper()
	_, err := g.api.Apply(g.ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: fmt.Appendf(nil, setText, name, policy, n)}}})
	g.must(err)
}

func (g *guarded) restart(set string) {
	g.t.Helper()
	_, err := g.api.Restart(g.ctx, &proto.RestartRequest{Set: set})
	g.must(err)
}

// phase does something to n members, and counts what it cost a member until the last report came and
// all has rested for a while.
func (g *guarded) phase(name string, n int, do func(), wanted func(r *records.Report, before spec.Token) bool) {
	g.t.Helper()
	from, kvs, err := g.stored.Snapshot(g.ctx, store.KindReport+"/")
	g.must(err)
	before := map[spec.Identity]spec.Token{}
	for _, kv := range kvs {
		r, err := store.Decode[records.Report](kv)
		g.must(err)
		before[r.ID] = r.Token
	}
	w, err := g.stored.Watch(g.ctx, store.KindReport+"/", from)
	g.must(err)
	defer w.Close()
	written, received, calls := g.stored.written.Load(), g.moved.received.Load(), g.moved.calls.Load()
	runtime.GC()
	own, err := ownCounts()
	g.must(err)
	do()
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Minute)
	defer cancel()
	if done, err := follow(ctx, w, n, before, wanted); err != nil {
		g.t.Fatalf("%s: %d of %d members: %v", name, done, n, err)
	}
	time.Sleep(guardRest)
	now, err := ownCounts()
	g.must(err)
	u := now.minus(own)
	rev, _, err := g.stored.Get(g.ctx, store.EpochKey)
	g.must(err)
	figures := map[string]float64{
		"revisions":    float64(rev - from),
		"stored-bytes": float64(g.stored.written.Load() - written),
		"sent-bytes":   float64(g.moved.received.Load() - received),
		"allocs":       float64(u.Allocs),
	}
	if g.kind == "agent" {
		figures["file-calls"], figures["file-bytes"] = float64(u.Calls), float64(u.Written)
	} else { // of one agent, how much falls together is chance
		figures["connection-calls"] = float64(g.moved.calls.Load() - calls)
	}
	if g.least[name] == nil {
		g.least[name] = map[string]float64{}
	}
	for unit, sum := range figures {
		last, again := g.least[name][unit]
		if !again || sum/float64(n) < last {
			g.least[name][unit] = sum / float64(n)
		}
	}
}
