package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

func TestAnAgentThatIsStoppedForAWhileReplacesNobody(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer("--session-ttl", "3s")
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	heard := l.startWitness()
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	kept := l.stayOf("life-0", "life-1", "life-2")

	t.Log("its node falls silent: no member counts as ready, and who waits says why")
	if err := l.agent.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l.eventually(time.Minute, "the node is silent", func() error {
		out, err := l.trySteadFor(time.Minute, "get", "nodes")
		if err != nil || strings.Contains(out, " Ready ") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	for name := range kept {
		l.eventually(time.Minute, name+" is not ready", func() error {
			m, err := l.member(name)
			if err == nil && (m.Status.Ready || m.Status.Token != kept[name].token) {
				err = fmt.Errorf("%+v", m.Status)
			}
			return err
		})
	}
	l.eventually(time.Minute, "the set counts none as ready", func() error { // its status is written after
		out, err := l.trySteadFor(time.Minute, "get", "set", "life")
		if err != nil || !strings.Contains(out, "0/3") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	l.stead("scale", "life", "--replicas", "4")
	l.eventually(time.Minute, "what life-3 waits for is told", func() error {
		out, err := l.trySteadFor(time.Minute, "explain", "life")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if line := lineWith(out, "life-3"); !strings.Contains(line, "life-") || !strings.Contains(out, "session") && !strings.Contains(out, "unreachable") {
			return errors.New(out)
		}
		return nil
	})
	stopped := time.Now().Add(silence)
	l.eventually(2*silence+time.Minute, "a while passes in which nothing is done", func() error {
		for name, before := range kept {
			if now := l.begun(name); now != before.begun {
				judge.Broken(t, "%s: processes %s became %s", name, before.begun, now)
				t.FailNow()
			}
		}
		if wait := time.Until(stopped); wait > 0 {
			return fmt.Errorf("%s are left", wait)
		}
		return nil
	})

	t.Log("it goes on: all returns without a restart")
	if err := l.agent.signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	l.assertStay(kept)
	l.waitReady("life-3", nil)
	l.eventually(time.Minute, "the service has all of them", func() error {
		got, err := l.dig("life.default.svc.cluster.local")
		if err != nil || len(strings.Fields(got)) != 4 {
			return fmt.Errorf("it has %v, %v", got, err)
		}
		return nil
	})
	for name := range kept {
		if m := l.mustMember(name); m.Status.Restarts != 0 {
			judge.Broken(t, "%s was restarted: %+v", name, m.Status)
		}
	}
	l.assertOneLife(heard, "life-0", "life-1", "life-2", "life-3")
}

// silence is how long the agent above is stopped: several sessions long.
const silence = 12 * time.Second

// secondAgent runs another agent, which must refuse by itself, and returns what it said.
func (l *Lab) secondAgent(flags ...string) string {
	l.t.Helper()
	args := append([]string{"agent", "--server", "unix://" + l.Socket}, l.agentFlags()...)
	out, err := l.inside(time.Minute, steadBinary, append(args, flags...)...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		judge.Broken(l.t, "a second agent ends with %v, want code 1:\n%s", err, out)
	}
	return out
}

func TestASecondAgentOfANodeIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	heard := l.startWitness()
	l.apply("life", strings.Replace(lifeSet, "replicas: 3", "replicas: 1", 1), "--wait", "--timeout", patience)
	kept := l.stayOf("life-0")

	t.Log("on the same root")
	pid := l.agent.cmd.Process.Pid
	if out := l.secondAgent(); !strings.Contains(out, fmt.Sprintf("%s is locked by process %d", l.path("agent"), pid)) {
		t.Errorf("it says %q", out)
	}
	t.Log("on a copy of it")
	l.eventually(time.Minute, "its root is copied", func() error { // files come and go while it runs
		return errors.Join(os.RemoveAll(l.path("copy")), os.CopyFS(l.path("copy"), os.DirFS(l.path("agent"))))
	})
	if out := l.secondAgent("--root", l.path("copy"), "--run-dir", l.path("run2")); !strings.Contains(out, "one is a copy") {
		t.Errorf("it says %q", out)
	}
	l.assertStay(kept)
	l.assertOneLife(heard, "life-0")
}
