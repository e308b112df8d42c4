package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// TestAMoveGoesBackWhenItsTargetIsLost: a member is moved, is never ready on the other host, and that host dies. It starts again where
// it was, with all that it had when it stopped there, and only after a person's word. The host returns, and its copy goes to the trash.
func TestAMoveGoesBackWhenItsTargetIsLost(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 3)
	l, from, to := hosts[0], hosts[1], hosts[2]
	to.boot = to.path("boot-id")
	boots := func(id string) {
		if err := os.WriteFile(to.boot, []byte(id), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	boots("11111111-1111-4111-8111-111111111111")
	l.startServer("--listen", api)
	letIn(hosts)
	connect(hosts)
	image := l.toolArchive()
	for _, h := range hosts[1:] {
		l.stead("image", "load", image, "--node", h.nodeName())
	}
	heard := []string{from.startWitness(), to.startWitness()}
	l.stead("node", "cordon", l.nodeName())
	l.stead("node", "cordon", to.nodeName())
	l.apply("life", strings.NewReplacer("replicas: 3", "replicas: 1",
		"readinessProbe: {tcpSocket: {port: probe}, periodSeconds: 1}", "readinessProbe: {exec: {command: [/box, command, cat, /data/ready]}, periodSeconds: 1, timeoutSeconds: 20}",
	).Replace(lifeSet))
	const data = "agent/volumes/default/life/data-0/data"
	l.eventually(time.Minute, "its volume is there", func() error { _, err := os.Stat(from.path(data)); return err })
	files := ballast(t, from.path(data, "ballast"))
	ready := func(h *Lab) {
		t.Helper()
		if err := os.WriteFile(h.path(data, "ready"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ready(from)
	was := l.waitReady("life-0", nil)

	t.Log("it is moved, and is not ready there")
	l.stead("node", "uncordon", to.nodeName())
	if err := os.Remove(from.path(data, "ready")); err != nil {
		t.Fatal(err)
	}
	l.stead("move", "life-0", "--to", to.nodeName())
	l.eventually(5*time.Minute, "it runs there", func() error {
		m, err := l.member("life-0")
		if err == nil && (m.Status.Node != to.nodeName() || m.Status.Phase != "Running" || len(to.pidsOf("life-0")) == 0) {
			err = fmt.Errorf("%+v", m.Status)
		}
		return err
	})
	if err := os.WriteFile(to.path(data, "since"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(word string) {
		t.Helper()
		if out, err := l.trySteadFor(time.Minute, "move", "life-0", "--back", "--yes"); err == nil || !strings.Contains(out, word) {
			judge.Broken(t, "back is not refused with %q: %v, %s", word, err, out)
		}
	}
	refused("is there, and has its volumes")

	t.Log("its host dies")
	if err := to.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	to.kill(to.pidsOf("life-0")...)
	l.eventually(time.Minute, "its node is silent", func() error {
		out, err := l.trySteadFor(time.Minute, "get", "nodes")
		if err == nil && !strings.Contains(lineWith(out, to.nodeName()), "Silent") {
			err = errors.New(out)
		}
		return err
	})
	refused("stead node fence " + to.nodeName())
	l.stead("node", "fence", to.nodeName(), "--i-have-powered-off")
	if out := l.stead("move", "life-0", "--back", "--dry-run"); !strings.Contains(out, "as of the moment when it was stopped there") {
		t.Errorf("it is foretold %s", out)
	}
	if out := l.stead("move", "life-0", "--back", "--yes", "--wait", "--timeout", patience); !strings.Contains(out, "is on node "+from.nodeName()+" again") {
		t.Errorf("it says %s", out)
	}
	ready(from)
	l.eventually(time.Minute, "it is ready where it was", func() error {
		m, err := l.member("life-0")
		if err == nil && (m.Status.Node != from.nodeName() || !m.Status.Ready || m.Status.Token == was.Status.Token) {
			err = fmt.Errorf("%+v", m.Status)
		}
		return err
	})
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(from.path(data, "ballast"), name)); err != nil || !bytes.Equal(got, want) {
			judge.Broken(t, "the file %s is not what it was: %d bytes of %d, %v", name, len(got), len(want), err)
		}
	}
	if _, err := os.Stat(from.path(data, "since")); err == nil {
		t.Error("what a life wrote at the target since is in its volume")
	}
	if now := l.mustMember("life-0"); now.Status.Address != was.Status.Address {
		t.Errorf("its address is %s, and was %s", now.Status.Address, was.Status.Address)
	}

	t.Log("the host returns with its copy")
	runs := fmt.Sprint(from.pidsOf("life-0"))
	boots("22222222-2222-4222-8222-222222222222")
	to.startAgent()
	l.eventually(2*time.Minute, "its copy is in the trash", func() error {
		if _, err := os.Stat(to.path(data)); err == nil {
			return errors.New("it is in its place")
		}
		return l.steadSays("Trashed", "volume", "ls")
	})
	if now := fmt.Sprint(from.pidsOf("life-0")); now != runs || len(to.pidsOf("life-0")) > 0 {
		judge.Broken(t, "the processes are %s, and were %s; on the host that returned: %v", now, runs, to.pidsOf("life-0"))
	}
	l.assertOneLifeOnHosts(heard, "life-0")
}
