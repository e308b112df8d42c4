package e2e

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

// strangeStead is the program of a release that speaks protocols none of which is ours, and knows the first format of
// a store only.
func (l *Lab) strangeStead() string {
	l.t.Helper()
	files := map[string][]byte{}
	for file, change := range map[string][2]string{
		"proto/protocol.go": {"const oldestProtocol, newestProtocol = 1, 1", "const oldestProtocol, newestProtocol = 98, 99"},
		"store/format.go":   {"const Format = 2", "const Format = 1"},
	} {
		text := string(l.source(file))
		if !strings.Contains(text, change[0]) {
			l.t.Fatalf("%s has no %q", file, change[0])
		}
		files[file] = []byte(strings.Replace(text, change[0], change[1], 1))
	}
	return l.buildStead("strange", files)
}

// Releases that are too far apart refuse each other with words, on either side and before anything is written; members
// run on, and all is well when a release that fits is back.
func TestReleasesThatDoNotFitRefuseEachOther(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.storeFlags = nil // the embedded store, which servers can share
	strange := l.strangeStead()
	flags := []string{"--listen", "127.0.0.1:7443", "--peer-listen", "127.0.0.1:7444"}
	l.startServer()
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	was := l.stayOf("life-0", "life-1", "life-2")
	stays := func() {
		t.Helper()
		for name, before := range was {
			if now := l.begun(name); now != before.begun {
				t.Errorf("%s runs as %s, ran as %s", name, now, before.begun)
			}
		}
	}

	t.Log("the command line, and an agent, of another release")
	out, err := l.try(hanging, strange, "--server", "unix://"+l.Socket, "get", "nodes")
	if err == nil || !strings.Contains(out, "upgrade the server") {
		t.Errorf("it says %v: %s", err, out)
	}
	end(t, l.agent)
	other := l.start("agent.strange", append([]string{strange, "agent", "--server", "unix://" + l.Socket}, l.agentFlags()...)...)
	other.waitSaid(l, "upgrade the server")
	stays()
	end(t, other)
	l.startAgent()
	l.assertStay(was)

	t.Log("a server of another release")
	end(t, l.server)
	other = l.start("server.strange", strange, "server", "--data-dir", l.path("server"), "--socket", l.Socket)
	other.waitSaid(l, "server started")
	l.agent.waitSaid(l, "upgrade the caller")
	if out, err := l.trySteadFor(hanging, "get", "nodes"); err == nil || !strings.Contains(out, "upgrade the caller") {
		t.Errorf("the command line says %v: %s", err, out)
	}
	stays()
	end(t, other)

	t.Log("a server that knows too little of the store")
	l.startServer(flags...) // servers may share the store from now on
	token := strings.TrimSpace(l.stead("token", "create", "--for-server", "s2"))
	other = l.start("join.strange", strange, "server", "--data-dir", l.path("joins"), "--socket", l.path("joins.sock"), "--name", "s2",
		"--listen", "127.0.0.1:7445", "--peer-listen", "127.0.0.1:7446", "--join", "127.0.0.1:7443", "--token", token)
	select {
	case <-other.done:
	case <-time.After(hanging):
		t.Error("a server of another release joins")
	}
	if said := other.said(); !strings.Contains(said, "upgrade the server") {
		t.Errorf("a server of another release that joins says %s", said)
	}
	if out := l.stead("status"); !strings.Contains(out, "format   2 (servers share the store); this server knows up to 2") {
		t.Errorf("status says\n%s", out)
	}
	before, _ := l.dump()
	end(t, l.server)
	other = l.start("server.strange", append([]string{strange, "server", "--data-dir", l.path("server"), "--socket", l.Socket}, flags...)...)
	select {
	case <-other.done:
	case <-time.After(hanging):
		t.Error("it runs")
	}
	if said := other.said(); !strings.Contains(said, "the store has format 2 (servers share the store), and this server knows formats up to 1 only") {
		t.Errorf("it says %s", said)
	}
	if err := other.signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	l.startServer(flags...)
	l.eventually(time.Minute, "the node is back", func() error {
		if out, err := l.trySteadFor(time.Minute, "get", "nodes"); err != nil || !strings.Contains(lineWith(out, l.nodeName()), " Ready") {
			return errors.New(out)
		}
		return nil
	})
	l.assertStay(was)
	if after, _ := l.dump(); len(changed(before, after)) > 0 {
		t.Errorf("written were %q", changed(before, after))
	}
}
