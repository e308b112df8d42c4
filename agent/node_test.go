package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// node is a host whose agent can be killed and started again.
type node struct {
	t         *testing.T
	host      *fakert.Host
	script    *script
	root      string
	boot      spec.BootID
	begun     time.Time
	dns       []records.Snapshot // as last handed over
	given     int                // how often
	interests *session.Interests
	mu        sync.Mutex

	guards    bool   // its agents guard lives
	blind     bool   // no watchdog comes up
	unwatch   func() // ends the watchdog
	watchdogs int    // that were started

	home   *home.Home
	agent  *Agent
	cancel context.CancelFunc
	done   chan error
}

func newNode(t *testing.T) *node {
	n := &node{t: t, host: fakert.New(), script: newScript(t), root: filepath.Join(memoryDir(t), "root"), boot: "b1", begun: time.Now()}
	t.Cleanup(n.kill)
	return n
}

// memoryDir is a directory for the test, in memory where the host has one: what a power cut
// leaves of its files is asked in the packages that write them, and a disk is slow to sync.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "stead-agent-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

func (n *node) run() {
	n.t.Helper()
	home, err := home.Open(n.root, "n1")
	must(n.t, err)
	must(n.t, session.Join(n.t.Context(), home, n.script.dial, n.boot, records.NodeFacts{}, slog.New(slog.DiscardHandler)))
	n.start(home)
}

// run0 is run while no server needs to be there: the node has joined.
func (n *node) run0() {
	n.t.Helper()
	home, err := home.Open(n.root, "n1")
	must(n.t, err)
	n.start(home)
}

func (n *node) clock() time.Duration { return time.Since(n.begun) }

func (n *node) start(home *home.Home) {
	n.t.Helper()
	c := Config{
		Home: home, RunDir: filepath.Join(n.root, "run", string(n.boot)), Dial: n.script.dial,
		Runtime: n.host, Network: n.host, Volumes: n.host, Boot: n.boot, Logger: slog.New(slog.DiscardHandler),
		Clock: n.clock,
		Snapshots: func(ps []records.Snapshot) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.dns, n.given = ps, n.given+1
		},
		Interests: func(i *session.Interests) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.interests = i
		},
	}
	if n.guards {
		c.Cgroup, c.Watchdog = fakert.Cgroup, n.watch
	}
	a, err := New(c)
	must(n.t, err)
	ctx, cancel := context.WithCancel(n.t.Context())
	n.home, n.agent, n.cancel, n.done = home, a, cancel, make(chan error, 1)
	go func() { n.done <- a.Run(ctx) }()
}

// kill ends the agent, and nothing else on the host.
func (n *node) kill() {
	if n.cancel == nil {
		return
	}
	n.cancel()
	if err := <-n.done; err != nil {
		n.t.Errorf("agent: %v", err)
	}
	must(n.t, n.home.Close())
	n.cancel = nil
}

func (n *node) life(number int64, goal records.Goal) records.Life {
	l := records.Life{
		Member: records.Member{
			ID: db0, Token: tok(number), Goal: goal, Reason: records.ReasonCreate, Revision: "r1",
			Node: "n1", NodeUID: n.home.UID(), Boot: n.boot, Address: netip.MustParseAddr("10.88.0.2"), GraceSeconds: 5,
		},
		Template: spec.Template{Spec: spec.MemberSpec{Containers: []spec.Container{{Name: "db", Image: "img:1"}}}},
		Service:  "db", Domain: "cluster.local",
	}
	return l
}

// report is the last one that the server has of a life.
func (n *node) report(token spec.Token) records.Report {
	synctest.Wait()
	n.script.mu.Lock()
	defer n.script.mu.Unlock()
	return n.script.last[spec.LifeID{ID: db0, Token: token}]
}

func (n *node) want(what string, token spec.Token, ok func(records.Report) bool) {
	n.t.Helper()
	time.Sleep(2 * time.Second) // of the bubble: every delay of a report is over
	if r := n.report(token); !ok(r) {
		n.t.Fatalf("want %s; the server's last report of %s is %+v", what, token, r)
	}
}

func (n *node) wantReady(token spec.Token) {
	n.t.Helper()
	n.want("ready", token, func(r records.Report) bool { return r.Ready })
}

func (n *node) wantStopped(token spec.Token) {
	n.t.Helper()
	n.want("stopped", token, func(r records.Report) bool { return r.Phase == records.PhaseStopped })
}

func (n *node) wantStarts(token spec.Token, want int) {
	n.t.Helper()
	synctest.Wait()
	if got := n.host.StartsOf(cid, token); got != want {
		n.t.Fatalf("token %s was started %d times, want %d", token, got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func decode[T any](t *testing.T, b []byte) T {
	t.Helper()
	var v T
	must(t, json.Unmarshal(b, &v))
	return v
}
