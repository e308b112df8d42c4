package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// ballast fills a directory with a large file and small ones, and returns what is in each.
func ballast(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{"large": make([]byte, 40<<20)}
	for i := range 300 {
		files[fmt.Sprint("small-", i)] = make([]byte, i)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{1})
	for name, content := range files {
		_, _ = random.Read(content)
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// again kills the process and starts another in its place.
func again(t *testing.T, p *process, start func()) {
	t.Helper()
	if err := p.signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	start()
}

// TestAMemberMovesWithItsVolume: real etcd under acknowledged writes; a member goes to a fourth host with its volume. First the
// move is given up, then both agents and the server are killed again and again until it is there.
func TestAMemberMovesWithItsVolume(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 4)
	l := hosts[0]
	l.startServer("--listen", api)
	letIn(hosts)
	connect(hosts)
	for _, h := range hosts {
		l.stead("image", "load", etcdArchive, "--node", h.nodeName())
	}
	l.stead("apply", "-f", "../../examples/etcd/etcd.yaml", "--wait", "--timeout", patience)
	was, taken, from, to := l.mustMember("etcd-1"), map[string]bool{}, l, l
	for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
		taken[l.mustMember(name).Status.Node] = true
	}
	for _, h := range hosts {
		if h.nodeName() == was.Status.Node {
			from = h
		} else if !taken[h.nodeName()] {
			to = h
		}
	}
	if from == to || len(taken) != 3 {
		t.Fatalf("the members are on %v; want three hosts of four", taken)
	}
	const volume = "agent/volumes/default/etcd/data-1/data/ballast"
	files := ballast(t, from.path(volume))
	stop := l.startLoad("--endpoints", etcdEndpoints)

	t.Log("a move is given up")
	l.stead("move", "etcd-1", "--to", to.nodeName(), "--rate", "1Mi")
	l.eventually(time.Minute, "it is being copied", func() error {
		if found, _ := filepath.Glob(to.path("agent/volumes/.moving/*/data/data/ballast")); len(found) != 1 {
			return errors.New("nothing of it is there")
		}
		return nil
	})
	if out := l.stead("move", "etcd-1", "--abort", "--wait", "--timeout", patience); !strings.Contains(out, "stays on node "+from.nodeName()) {
		t.Errorf("abort says %q", out)
	}
	to.eventually(time.Minute, "nothing of it is left", func() error {
		if found, _ := filepath.Glob(to.path("agent/volumes/.moving/*")); len(found) > 0 {
			return fmt.Errorf("there is %q", found)
		}
		return nil
	})
	if now := l.mustMember("etcd-1"); now.Status.Token != was.Status.Token {
		judge.Broken(t, "a move that was given up ended the life of its member: %+v", now.Status)
	}

	t.Log("it is moved, and all that does it is killed")
	l.stead("move", "etcd-1", "--to", to.nodeName(), "--rate", "10Mi")
	kills := []func(){
		func() { again(t, to.agent, func() { to.startAgent() }) },
		func() { again(t, from.agent, func() { from.startAgent() }) },
		func() { again(t, l.server, func() { l.startServer("--listen", api) }) },
	}
	for i := range 9 {
		if m, err := l.member("etcd-1"); err == nil && m.Status.Node == to.nodeName() && m.Status.Ready {
			break
		}
		kills[i%len(kills)]()
	}
	l.eventually(5*time.Minute, "it is ready there", func() error {
		m, err := l.member("etcd-1")
		if err == nil && (m.Status.Node != to.nodeName() || !m.Status.Ready) {
			out, _ := l.trySteadFor(time.Minute, "explain", "etcd-1")
			err = fmt.Errorf("%+v: %s", m.Status, out)
		}
		return err
	})
	if now := l.mustMember("etcd-1"); now.Status.Address != was.Status.Address {
		t.Errorf("its address is %s, and was %s", now.Status.Address, was.Status.Address)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(to.path(volume), name)); err != nil || !bytes.Equal(got, want) {
			judge.Broken(t, "the file %s did not come with it: %d bytes of %d, %v", name, len(got), len(want), err)
		}
	}
	l.eventually(2*time.Minute, "the old volume is in the trash", func() error {
		if _, err := os.Stat(from.path(volume)); err == nil {
			return errors.New("it is in its place")
		}
		return l.steadSays("Trashed", "volume", "ls")
	})
	for _, h := range hosts {
		h.waitDig("etcd-1.etcd.default.svc.cluster.local", was.Status.Address)
	}
	stop()
}
