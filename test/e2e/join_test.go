package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// TestAHostJoinsOverTheNetwork: a second host knows the server by its address alone. It
// joins by a token, runs a member with a Secret, answers people's asks, and is taken up
// again by an agent without a token; a person there works with a client file.
func TestAHostJoinsOverTheNetwork(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 2)
	l, far := hosts[0], hosts[1]
	const address = "172.31.9.1:7443"
	l.startServer("--listen", address)
	l.startAgent()
	join := func(flags ...string) { // without the socket, which every namespace sees
		far.agent = far.start("agent", append(append([]string{steadBinary, "agent", "--join", address}, far.agentFlags()...), flags...)...)
	}
	join("--token", strings.TrimSpace(l.stead("token", "create")))
	l.eventually(time.Minute, "both nodes connect", func() error {
		out, err := l.trySteadFor(time.Minute, "get", "nodes")
		if err != nil || strings.Count(out, " Ready ") != 2 {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	l.stead("node", "cordon", l.nodeName())
	l.stead("image", "load", l.toolArchive(), "--node", far.nodeName())
	l.apply("show", showSet, "--wait", "--timeout", patience)
	was := l.mustMember("show-0")
	if was.Status.Node != far.nodeName() {
		t.Fatalf("it is on %s", was.Status.Node)
	}
	l.eventually(time.Minute, "the member shows its Secret", func() error {
		out, err := l.trySteadFor(time.Minute, "logs", "show-0")
		if err != nil || !strings.Contains(out, "tr0ub4dor-and-3") {
			return fmt.Errorf("it shows %s, %v", out, err)
		}
		return nil
	})

	end(t, far.agent)
	join()
	l.eventually(time.Minute, "the node is back", func() error {
		out, err := l.trySteadFor(time.Minute, "logs", "show-0", "--tail", "1")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if now := l.mustMember("show-0"); now.Status.Token != was.Status.Token {
		judge.Broken(t, "its life is %s, was %s", now.Status.Token, was.Status.Token)
	}

	file := l.path("ann.json")
	l.stead("client", "create", "-o", file, "--name", "ann")
	out, err := far.inside(time.Minute, steadBinary, "--config", file, "get", "members")
	if err != nil || !strings.Contains(out, "show-0") {
		t.Errorf("from the other host: %v %s", err, out)
	}
	out, err = far.inside(time.Minute, "curl", "-s", "-m", "20", "http://"+address+"/")
	if err == nil {
		judge.Broken(t, "in clear it answers %s", out)
	}
	for _, host := range hosts {
		if strings.Contains(host.logs(), "tr0ub4dor-and-3") {
			judge.Broken(t, "a log shows the Secret")
		}
	}
}
