package main

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// sessionAt is the server at which a node has its session; "": at none.
func (c *cluster) sessionAt(node spec.NodeName) string {
	c.t.Helper()
	key := store.SessionKey(node)
	_, kvs, err := c.store.Get(c.t.Context(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, ok := kvs[key]; !ok {
		return ""
	}
	session, err := store.Decode[records.Session](kvs[key])
	if err != nil {
		c.t.Fatal(err)
	}
	return session.Server
}

// another starts one more server on the same store; stop ends it.
func (c *cluster) another(name string) (address string, stop func()) {
	c.t.Helper()
	s, err := server.New(server.Config{
		Store: c.store, StoreName: "memory", Name: name, Version: "test", Socket: filepath.Join(c.dir, name),
		KeyFile: filepath.Join(c.dir, "secret.key"), SeenFile: filepath.Join(c.dir, name+"-seen.json"), Listen: "127.0.0.1:0", Logger: c.log,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	end := make(chan error, 1)
	go func() { end <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-end; err != nil {
			c.t.Error(err)
		}
	})
	c.t.Cleanup(stop)
	select {
	case <-s.Serving():
	case err := <-end:
		c.t.Fatal(err)
	}
	return s.Addresses()[0], stop
}

// Of two servers one goes: agents and clients are at the other one.
func TestAgentsAndClientsFailOver(t *testing.T) {
	c := newCluster(t, nil, reachable)
	addresses, stops := map[string]string{}, map[string]func(){}
	for _, name := range []string{"server-b", "server-c"} {
		addresses[name], stops[name] = c.another(name)
	}
	join := []string{addresses["server-b"], addresses["server-c"]}
	c.elsewhere("host-b", hostOptions{Join: join, Token: c.must("token", "create")})
	c.until("host-b has a session", func() bool { return c.sessionAt("host-b") != "" })
	gone, left := c.sessionAt("host-b"), "server-b"
	if gone == left {
		left = "server-c"
	}
	file := filepath.Join(t.TempDir(), "ann.json")
	c.must("client", "create", "-o", file, "--name", "ann", "--servers", addresses[gone]+","+addresses[left])
	ann := &cluster{t: t, config: file}
	if out := ann.must("version"); !strings.Contains(out, "cluster") {
		t.Fatal(out)
	}
	stops[gone]()
	c.until("host-b has a session at the other", func() bool { return c.sessionAt("host-b") == left })
	c.until("a client sees it", ann.nodeIs("host-b", "Ready"))
}
