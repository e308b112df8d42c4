package box

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/spec"
)

// audit sees every start of a process on every host, one at a time, and fails the
// test when an identity then has two lives (promise 1): a second one can only come
// to be by a start.
type audit struct {
	t     *testing.T
	mu    sync.Mutex
	hosts map[spec.NodeName]*fakert.Host
	log   []start
	// misled has two lives, for somebody said that a host is off which was not.
	misled spec.Identity
}

// start is one start of a process.
type start struct {
	Node spec.NodeName
	ID   spec.Identity
	fakert.Start
}

// machine is a host under audit.
type machine struct {
	*fakert.Host
	node  spec.NodeName
	audit *audit
}

func (m machine) Start(ctx context.Context, id runtime.ContainerID) error {
	m.audit.mu.Lock()
	defer m.audit.mu.Unlock()
	before := len(m.Starts(id.ID))
	err := m.Host.Start(ctx, id)
	for _, s := range m.Starts(id.ID)[before:] {
		m.audit.started(start{m.node, id.ID, s})
	}
	return err
}

// started notes a start; the caller holds the lock.
func (a *audit) started(now start) {
	for _, old := range a.log {
		switch {
		case old.ID != now.ID:
		case old.Token == now.Token && old.Node != now.Node:
			a.t.Errorf("%s: token %s was started on %s and on %s", now.ID, now.Token, old.Node, now.Node)
		case old.Token == now.Token && old.Name == now.Name && old.Attempt == now.Attempt:
			a.t.Errorf("%s: token %s, try %d of container %s was started twice", now.ID, now.Token, now.Attempt, now.Name)
		case old.Token.Compare(now.Token) > 0:
			a.t.Errorf("%s: token %s was started after %s", now.ID, now.Token, old.Token)
		}
	}
	a.log = append(a.log, now)
	if running := a.runningLocked(now.ID); len(running) > 1 && now.ID != a.misled {
		a.t.Errorf("%s has two lives at once: %v", now.ID, running)
	}
}

// running are the lives of an identity that have a process now, as "node token".
func (a *audit) running(id spec.Identity) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runningLocked(id)
}

func (a *audit) runningLocked(id spec.Identity) []string {
	var out []string
	for node, host := range a.hosts {
		for _, token := range host.RunningTokens(id) {
			out = append(out, fmt.Sprintf("%s %s", node, token))
		}
	}
	slices.Sort(out)
	return out
}

// starts are all so far, in their order.
func (a *audit) starts() []start {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.log)
}

// order names the members of starts in their order.
func order(starts []start) (names []string) {
	for _, s := range starts {
		names = append(names, s.ID.MemberName())
	}
	return names
}
