package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/agent"
	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/cmd/stead/script"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// patience bounds what a test waits for: it is for hanging, not for speed.
const patience = 2 * time.Minute

// cluster is a server and one node, host-a, in this process: real but for the store,
// which is in memory, and the machine, which does at once what it is log.
type cluster struct {
	t      *testing.T
	store  *memstore.Store
	host   *fakert.Host
	socket string
	config string // the client file with which it is asked; "": by its socket
	dir    string
	server *server.Server
	log    *slog.Logger
	logs   lines                       // all that was logged
	agent  atomic.Pointer[agent.Agent] // that was started last
}

// newCluster starts one; keep, if given, is the store as the server is to see it.
func newCluster(t *testing.T, keep func(store.Store) store.Store, more ...func(*server.Config)) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "stead-cli-") // short, because socket paths have a limit
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, store: memstore.New(), host: fakert.New(), socket: filepath.Join(dir, "s"), dir: dir}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &c.logs), nil))
	c.log = log
	var seen store.Store = c.store
	if keep != nil {
		seen = keep(c.store)
	}
	config := server.Config{
		Store: seen, StoreName: "memory", Name: "server-a", Version: "test", Socket: c.socket,
		KeyFile: filepath.Join(dir, "secret.key"), SeenFile: filepath.Join(dir, "seen.json"), Logger: log,
	}
	for _, change := range more {
		change(&config)
	}
	srv, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	c.server = srv
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	part := func(name string, run func(context.Context) error) {
		group.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("%s ended: %v", name, err)
			}
		})
	}
	part("the server", srv.Run)
	part("the agent", func(ctx context.Context) error {
		return c.node(ctx, "host-a", "boot-1", c.host, func(context.Context, *home.Home) (way, error) {
			return way{dial: func(context.Context) (*grpc.ClientConn, error) { return srv.Dial() }, keep: func(context.Context) {}}, nil
		})
	})
	t.Cleanup(func() {
		cancel()
		group.Wait()
		c.store.Close()
		os.RemoveAll(dir)
	})
	c.until("the node is there", func() bool {
		code, out := c.stead("get", "nodes")
		return code == exitDone && bytes.Contains([]byte(out), []byte("Ready"))
	})
	return c
}

// node is the agent of a host until ctx ends; to is its way to a server.
func (c *cluster) node(ctx context.Context, name spec.NodeName, boot spec.BootID, host *fakert.Host,
	to func(context.Context, *home.Home) (way, error)) (err error) {
	at, err := home.Open(filepath.Join(c.dir, string(name)), name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	servers, err := to(ctx, at)
	if err != nil {
		return err
	}
	var keeping sync.WaitGroup
	defer keeping.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keeping.Go(func() { servers.keep(ctx) })
	facts := records.NodeFacts{CPUMillis: 4000, MemoryBytes: 1 << 30, Version: "test"}
	if err := session.Join(ctx, at, servers.dial, boot, facts, c.log); err != nil {
		return err
	}
	a, err := agent.New(agent.Config{
		Home: at, RunDir: filepath.Join(c.dir, "run-"+string(name)), Dial: servers.dial, Servers: servers.told, Runtime: host, Network: host, Volumes: host,
		Boot: boot, Facts: facts, Logger: c.log, Tuning: agent.Tuning{Soon: time.Millisecond, Later: 10 * time.Millisecond},
		VolumeUses: func() (uses []runtime.VolumeUse) {
			for _, id := range host.Volumes() {
				uses = append(uses, runtime.VolumeUse{Volume: id, UsedBytes: 5 << 20, Age: time.Minute, FreeBytes: 3 << 30, TotalBytes: 4 << 30})
			}
			return uses
		},
	})
	if err != nil {
		return err
	}
	c.agent.Store(a)
	return a.Run(ctx)
}

// stead runs a command line to its end and returns its exit code and all it printed.
func (c *cluster) stead(args ...string) (int, string) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	var out lines
	way := []string{"--server", "unix://" + c.socket}
	if c.config != "" {
		way = []string{"--config", c.config}
	}
	code := run(ctx, append(way, args...), &out, &out)
	return code, out.String()
}

// lines is what was printed, by several goroutines.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (c *cluster) until(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("not in time: %s", what)
		}
	}
}

// play runs the script of this name in testdata.
func (c *cluster) play(name string) {
	c.t.Helper()
	steps, err := script.Read(filepath.Join("testdata", name))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, s := range steps {
		if wrong := s.Run(c.stead, patience); wrong != "" {
			c.t.Error(wrong)
		}
	}
}
