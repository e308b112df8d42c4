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

// fillStore applies ConfigMaps until the store is full of live data, which the server says, and returns how many it took and
// the refusal that people saw. A large one is refused before a small one, and more fits in when the store was
// compacted: so it is full when small ones are refused again and again.
func (l *Lab) fillStore() (taken int, refusal string) {
	l.t.Helper()
	apply := func(name string, bytes int) (string, error) {
		file := l.path("big.yaml")
		text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {big: %s}\n", name, strings.Repeat("x", bytes))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
		return l.trySteadFor(time.Minute, "apply", "-f", file)
	}
	small, refused := 0, 0
	l.eventually(2*time.Minute, "the store is full of live data", func() error {
		out, err := apply(fmt.Sprint("big-", taken), 250<<10)
		if err == nil {
			taken++
		}
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) || !strings.Contains(l.server.said(), "live data takes") {
			return fmt.Errorf("%d are taken: %v %s", taken, err, out)
		}
		refusal = out
		if exit.ExitCode() != 1 {
			l.t.Errorf("apply to a full store ends with code %d", exit.ExitCode())
		}
		small++
		refused++
		if out, err := apply("small", small); err == nil {
			refused = 0
			return fmt.Errorf("%d are taken, and a small one: %s", taken, out)
		}
		if refused < 5 {
			return fmt.Errorf("small ones are refused %d times", refused)
		}
		return nil
	})
	return taken, refusal
}

func TestAFullStoreRefusesWritesAndHealsWhenSomethingIsDeleted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ownStore()
	l.startServer("--store-quota-bytes", "8388608", "--session-ttl", "3s")
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	heard := l.startWitness()
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	was := l.mustMember("life-0")
	pids := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-1"), l.pidsOf("life-2"))

	taken, refusal := l.fillStore()
	for _, want := range []string{"store is out of space", "nothing was written", "--store-quota-bytes"} {
		if !strings.Contains(refusal, want) {
			t.Errorf("the refusal does not say %q: %s", want, refusal)
		}
	}
	if out, err := l.trySteadFor(time.Minute, "scale", "life", "--replicas", "2"); err == nil || !strings.Contains(out, "out of space") {
		t.Errorf("scale of a full store: %v, %s", err, out)
	}

	t.Log("server and agent are killed while the store is full: members run on, reads go on")
	for _, p := range []*process{l.agent, l.server} {
		if err := p.signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	l.startServer("--store-quota-bytes", "8388608", "--session-ttl", "3s")
	argv := append([]string{steadBinary, "agent", "--server", "unix://" + l.Socket}, l.agentFlags()...)
	l.agent = l.start("agent", argv...)
	l.eventually(time.Minute, "members are shown", func() error {
		out, err := l.trySteadFor(time.Minute, "get", "members")
		if err != nil || !strings.Contains(out, "life-2") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	l.eventually(time.Minute, "the node has a session again, though the store is full", func() error {
		if log := l.agent.said(); !strings.Contains(log, "session started") {
			return errors.New("it has none")
		}
		return nil
	})
	if out, err := l.trySteadFor(time.Minute, "scale", "life", "--replicas", "2"); err == nil || !strings.Contains(out, "out of space") {
		t.Errorf("scale of a store that is full still: %v, %s", err, out)
	}
	if now := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-1"), l.pidsOf("life-2")); now != pids {
		judge.Broken(t, "processes changed from %s to %s", pids, now)
	}

	t.Log("the documented step: delete what is not needed")
	for i := range taken {
		l.eventually(time.Minute, "deleting works", func() error { // not while the store is compacted
			out, err := l.trySteadFor(time.Minute, "delete", "configmap", fmt.Sprint("big-", i))
			if err != nil && !strings.Contains(out, "there is no") {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	l.eventually(time.Minute, "the store takes writes again", func() error {
		out, err := l.trySteadFor(time.Minute, "scale", "life", "--replicas", "4")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	l.waitReady("life-3", nil)
	now := l.waitReady("life-0", nil)
	if now.Status.Token != was.Status.Token || now.Status.Restarts != was.Status.Restarts {
		judge.Broken(t, "life-0 is %+v, was %+v", now.Status, was.Status)
	}
	if now := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-1"), l.pidsOf("life-2")); now != pids {
		judge.Broken(t, "processes changed from %s to %s", pids, now)
	}
	l.assertOneLife(heard, "life-0", "life-1", "life-2", "life-3")
}
