package box

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/agent"
	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var errCrash = errors.New("the agent is gone")

// tuning keeps the waits of a node below those of the tests.
var tuning = agent.Tuning{
	Worker: worker.Tuning{
		CrashFirst: 20 * time.Millisecond, CrashMost: 100 * time.Millisecond,
		ImageFirst: 20 * time.Millisecond, ImageMost: 100 * time.Millisecond,
		RetryFirst: 20 * time.Millisecond, RetryMost: 100 * time.Millisecond,
		Look: 200 * time.Millisecond, Away: 20 * time.Millisecond, Renew: 50 * time.Millisecond,
	},
	RetryFirst: 10 * time.Millisecond, RetryMost: 100 * time.Millisecond, Answer: 2 * ttl,
}

// node is a host and its agent, which may crash and come back.
type node struct {
	c    *cluster
	name spec.NodeName
	host *fakert.Host
	root string

	mu        sync.Mutex // of what follows
	boots     int
	away      bool // no server is reached
	conns     []*grpc.ClientConn
	unwatch   func()             // ends the watchdog of this boot
	agent     *agentProcess      // nil: it is down
	interests *session.Interests // of the agent that was made last
	pictures  map[spec.SetRef]records.Snapshot
	watch     func([]records.Snapshot) // is shown all that DNS here answers from; it holds mu
}

// agentProcess is one run of an agent.
type agentProcess struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	gone bool // nothing of it reaches the host any more
	fuse *fuse
}

// addNode starts an agent on a new host.
func (c *cluster) addNode(name spec.NodeName) *node {
	c.t.Helper()
	n := &node{c: c, name: name, host: fakert.New(), root: filepath.Join(c.dir, string(name)), boots: 1}
	c.nodes[name] = n
	c.audit.mu.Lock()
	c.audit.hosts[name] = n.host
	c.audit.mu.Unlock()
	n.start()
	return n
}

// start starts the agent, which is down.
func (n *node) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.startLocked()
}

// startAfter starts the next agent after p, unless somebody else has done it or
// wants it down.
func (n *node) startAfter(p *agentProcess) {
	<-p.done
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.agent == p {
		n.startLocked()
	}
}

func (n *node) startLocked() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.c.t.Context()))
	p := &agentProcess{cancel: cancel, done: make(chan struct{})}
	n.agent = p
	n.host.OnCall(p.onCall)
	boot := spec.BootID(fmt.Sprintf("boot-%d", n.boots))
	go func() {
		defer close(p.done)
		if err := n.run(ctx, boot); err != nil && ctx.Err() == nil {
			n.c.t.Errorf("agent of %s ended: %v", n.name, err)
		}
	}()
}

func (n *node) run(ctx context.Context, boot spec.BootID) (err error) {
	log := n.c.log.With("on", string(n.name))
	at, err := n.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	facts := records.NodeFacts{CPUMillis: 4000, MemoryBytes: 1 << 30, Version: "box", Level: spec.Level}
	if err := session.Join(ctx, at, n.dial, boot, facts, log); err != nil {
		return err
	}
	host := machine{n.host, n.name, n.c.audit}
	a, err := agent.New(agent.Config{
		Home: at, RunDir: filepath.Join(n.root, "run", string(boot)), Dial: n.dial,
		Clock: n.c.clock, Watchdog: n.watchdog, Cgroup: fakert.Cgroup,
		Runtime: host, Network: host, Volumes: host, Prober: probe.New(probe.Config{Exec: host.Exec}),
		Boot: boot, Facts: facts, Snapshots: n.see, Interests: n.setInterests, Tuning: tuning, Logger: log,
	})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// open opens the agent's root. That of the agent before is closed; but a program that
// another test starts just then has its lock, too, until it is that program.
func (n *node) open(ctx context.Context) (*home.Home, error) {
	for deadline := time.Now().Add(patience); ; {
		at, err := home.Open(n.root, n.name)
		if !errors.Is(err, home.ErrTaken) || ctx.Err() != nil || time.Now().After(deadline) {
			return at, err
		}
		time.Sleep(time.Millisecond)
	}
}

// see takes what DNS on this node answers from.
func (n *node) see(pictures []records.Snapshot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watch != nil {
		n.watch(pictures)
	}
	n.pictures = map[spec.SetRef]records.Snapshot{}
	for _, p := range pictures {
		n.pictures[p.Ref] = p
	}
}

// watchPictures shows see the pictures that there are, and each that comes.
func (n *node) watchPictures(see func([]records.Snapshot)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watch = see
	see(slices.Collect(maps.Values(n.pictures)))
}

// picture is what DNS on this node has of a set.
func (n *node) picture(set spec.SetName) (records.Snapshot, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, ok := n.pictures[ref(set)]
	return p, ok
}

func (n *node) setInterests(i *session.Interests) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.interests = i
}

// asks are the questions of DNS on this node, to the agent that was started last.
func (n *node) asks() *session.Interests {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.interests
}

// readyPeers are the members that DNS on this node calls ready, of a set that it asks for.
func (n *node) readyPeers(set spec.SetName) (names []string) {
	p, _ := n.picture(set)
	if p.Brief {
		n.asks().Asked(p.Ref)
	}
	for _, p := range p.Peers {
		if p.Ready {
			names = append(names, p.Name)
		}
	}
	return names
}

// crash ends the agent as SIGKILL does, and nothing else on the host.
func (n *node) crash() {
	n.mu.Lock()
	p := n.agent
	n.agent = nil
	n.mu.Unlock()
	if p != nil {
		p.kill()
		<-p.done
	}
}

// restart crashes the agent and starts it again.
func (n *node) restart() {
	n.crash()
	n.start()
}

// reboot ends all that lives in the host's memory; the agent stays down.
func (n *node) reboot() {
	n.crash()
	n.host.Reboot()
	n.blind()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.boots++
}

// crashAt crashes the agent at its n-th call to the host from now, before or after
// it has its effect; the next agent is started at once.
func (n *node) crashAt(call int, before bool) {
	n.mu.Lock()
	p := n.agent
	n.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fuse = &fuse{left: call, before: before, blow: func() {
		p.kill()
		n.c.crashes.Add(1)
		n.c.later(func() { n.startAfter(p) })
	}}
}

func (p *agentProcess) kill() {
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.cancel()
}

// onCall sees every call of the agent before it has its effect.
func (p *agentProcess) onCall(context.Context, fakert.Call) error {
	p.mu.Lock()
	gone, burning := p.gone, p.fuse
	p.mu.Unlock()
	if gone {
		return errCrash
	}
	if blows, before := burning.burn(); blows && before {
		return errCrash
	}
	return nil
}
