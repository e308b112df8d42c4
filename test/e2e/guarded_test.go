package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// guardedSet has a member that ends by itself when its node was not confirmed for ten seconds.
var guardedSet = strings.NewReplacer("NAME", "rep", "CLASS", "local", "apps/v1", "stead/v1",
	"replicas: 1", "replicas: 1\n  nodeLoss: {policy: Replace, after: 10s}").Replace(classSet)

// TestGuardedMembersEndAtTheirBound: agent and server are away, killed together or stopped;
// the node's watchdog, or with that killed as well the member's own logger, ends the member
// with Replace and leaves alone the one with Hold. On their return it begins a new life.
func TestGuardedMembersEndAtTheirBound(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("hold", strings.NewReplacer("NAME", "hold", "CLASS", "local").Replace(classSet), "--wait", "--timeout", patience)
	l.apply("rep", guardedSet, "--wait", "--timeout", patience)
	hold := l.stayOf("hold-0")
	watchdog := func() []int { return l.living("\x00watchdog\x00", l.path("run")) }
	ends := func() {
		t.Helper()
		l.eventually(time.Minute, "the guarded member is killed", func() error {
			if pids := l.pidsOf("rep-0"); len(pids) > 0 {
				return fmt.Errorf("processes %v", pids)
			}
			return nil
		})
		if now := l.begun("hold-0"); now != hold["hold-0"].begun {
			judge.Broken(t, "the member with Hold runs as %s, ran as %s", now, hold["hold-0"].begun)
		}
	}
	begins := func(was member) {
		t.Helper()
		if now := l.waitReady("rep-0", &was); now.Status.Token == was.Status.Token || now.Status.Address != was.Status.Address {
			t.Errorf("it returned as %+v, was %+v", now.Status, was.Status)
		}
		l.assertStay(hold)
	}

	t.Log("server and agent are killed: the watchdog is left, and the loggers")
	was := l.waitReady("rep-0", nil)
	for _, p := range []*process{l.server, l.agent} {
		if err := p.signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	ends()
	if pids := watchdog(); len(pids) != 1 {
		t.Errorf("watchdogs %v are left without the agent, want one", pids)
	}
	l.startServer()
	l.startAgent()
	begins(was)

	t.Log("the watchdog is killed, the agent stopped, the server killed: the loggers alone are left")
	was = l.waitReady("rep-0", nil)
	if err := l.agent.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := l.server.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.kill(watchdog()...)
	ends()
	if pids := watchdog(); len(pids) > 0 {
		t.Errorf("a watchdog runs: %v", pids)
	}
	l.startServer()
	if err := l.agent.signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	begins(was)
	l.eventually(time.Minute, "a watchdog runs again", func() error {
		if pids := watchdog(); len(pids) != 1 {
			return fmt.Errorf("watchdogs %v", pids)
		}
		return nil
	})
}
