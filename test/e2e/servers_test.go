package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// twin is one of two servers on the first host, which share its external etcd.
type twin struct {
	name, socket, listen string
	data                 string
	run                  *process
}

// start starts (again) the server and waits until it answers.
func (w *twin) start(l *Lab) {
	l.t.Helper()
	w.run = l.start(w.name, append([]string{steadBinary, "server", "--name", w.name, "--data-dir", w.data,
		"--socket", w.socket, "--listen", w.listen}, l.storeFlags...)...)
	l.eventually(time.Minute, w.name+" answers", func() error {
		out, err := l.try(time.Minute, steadBinary, "--server", "unix://"+w.socket, "version")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// leader is who leads, as a server says that still answers.
func (w *twin) leader(l *Lab) string {
	out, err := l.try(time.Minute, steadBinary, "--server", "unix://"+w.socket, "status")
	if err != nil {
		return ""
	}
	for _, name := range []string{"s1", "s2"} {
		if strings.Contains(out, "leader "+name) {
			return name
		}
	}
	return ""
}

// forwardThroughEach asks a member through each of two servers: its node speaks to one of them, and
// the other leads each connection to that one.
func (l *Lab) forwardThroughEach(servers []*twin) {
	l.t.Helper()
	first := l.Socket
	defer func() { l.Socket = first }()
	listener, _, _ := l.background("listens", "exec", "life-1", "--", "/box", "command", "listen", "7777")
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<20/16)
	want := fmt.Sprintf("%d %x", len(text), sha256.Sum256(text))
	for _, w := range servers {
		l.Socket = w.socket
		forwarder, said, found := l.background(`Forwarding from 127\.0\.0\.1:(\d+) -> 7777\n`, "port-forward", "life-1", ":7777", "--address", "127.0.0.1")
		for range 3 {
			line, more, err := question(found[1], text)
			if err != nil || line != want || more != int64(len(text)) {
				l.t.Errorf("through %s: got %q and %d bytes, %v; want %q; it printed %s", w.name, line, more, err, want, said)
			}
		}
		if err := forwarder.Process.Signal(syscall.SIGINT); err != nil {
			l.t.Error(err)
		}
		if err := forwarder.Wait(); err != nil {
			l.t.Errorf("Ctrl-C: %v, %s", err, said)
		}
	}
	if err := listener.Process.Signal(syscall.SIGINT); err != nil {
		l.t.Error(err)
	}
	_ = listener.Wait() // it was ended
}

// TestAnotherServerTakesOver: two servers share one etcd, one leads and both serve. When the
// leader is killed the other leads, agents and command line go to it by themselves, and
// no member notices. Without any of them members, DNS and restarts in place go on.
func TestAnotherServerTakesOver(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 2)
	l := hosts[0]
	archive := l.toolArchive()
	l.startStore()
	servers := []*twin{
		{name: "s1", socket: l.Socket, listen: "172.31.9.1:7443", data: l.path("server")},
		{name: "s2", socket: l.path("two.sock"), listen: "172.31.9.1:7444", data: l.path("two")},
	}
	servers[0].start(l)
	key, err := os.ReadFile(l.path("server", "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(servers[1].data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(servers[1].data+"/secret.key", key, 0o600); err != nil {
		t.Fatal(err)
	}
	servers[1].start(l)
	both := servers[0].listen + "," + servers[1].listen
	for _, h := range hosts {
		h.join = []string{"--join", both, "--token", strings.TrimSpace(l.stead("token", "create"))}
		h.startAgent()
		l.stead("image", "load", archive, "--node", h.nodeName())
	}
	client := l.path("client.json")
	l.stead("client", "create", "--name", "ann", "-o", client, "--servers", both)
	// From the other host, and by the file alone.
	ask := func(args ...string) string {
		t.Helper()
		out, err := hosts[1].inside(hanging, steadBinary, append([]string{"--config", client}, args...)...)
		if err != nil {
			t.Fatalf("stead %s: %v\n%s\n%s", strings.Join(args, " "), err, out, l.logs())
		}
		return out
	}
	manifest := l.path("life.yaml")
	if err := os.WriteFile(manifest, []byte(lifeSet), 0o600); err != nil {
		t.Fatal(err)
	}
	ask("apply", "-f", manifest, "--wait", "--timeout", patience)
	l.forwardThroughEach(servers)
	was := l.tokens()
	for replicas := 4; replicas <= 5; replicas++ { // each of the two is the leader that goes
		lost, other := servers[0], servers[1]
		l.eventually(time.Minute, "both know who leads", func() error {
			one, two := lost.leader(l), other.leader(l)
			if one != two || one == "" {
				return fmt.Errorf("%s says %q, %s says %q", lost.name, one, other.name, two)
			}
			if one != lost.name {
				lost, other = other, lost
			}
			return nil
		})
		t.Logf("%s leads, and is killed", lost.name)
		if err := lost.run.signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.eventually(2*time.Minute, other.name+" leads", func() error {
			if got := other.leader(l); got != other.name {
				return fmt.Errorf("%q leads", got)
			}
			return nil
		})
		ask("scale", "life", "--replicas", fmt.Sprint(replicas), "--wait", "--timeout", patience)
		l.Socket = other.socket
		for name, token := range l.tokens() {
			if token != was[name] {
				judge.Broken(t, "%s has token %s, had %s", name, token, was[name])
			}
		}
		lost.start(l)
	}
	t.Log("nobody serves")
	before := map[string]member{}
	for name := range was {
		before[name] = l.mustMember(name)
	}
	for _, w := range servers {
		if err := w.run.signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range hosts {
		h.waitDig("life-1.life.default.svc.cluster.local", before["life-1"].Status.Address)
		if h.nodeName() != before["life-1"].Status.Node {
			continue
		}
		old := h.pidsOf("life-1")
		h.killMember("life-1")
		h.eventually(time.Minute, "life-1 is restarted in place", func() error {
			if now := h.pidsOf("life-1"); len(now) == 0 || slices.Equal(now, old) {
				return fmt.Errorf("its processes are %v, were %v", now, old)
			}
			return nil
		})
	}
	for _, w := range servers {
		w.start(l)
	}
	for name, m := range before {
		since, restarts := (*member)(nil), m.Status.Restarts
		if name == "life-1" {
			since, restarts = &m, restarts+1
		}
		now := l.waitReady(name, since)
		if now.Status.Token != m.Status.Token || now.Status.Restarts != restarts {
			judge.Broken(t, "%s is %+v, was %+v; want %d restarts", name, now.Status, m.Status, restarts)
		}
	}
	for _, w := range servers {
		if err := w.run.signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
}
