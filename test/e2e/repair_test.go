package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// repairSet runs two members, so that one can reach the other.
var repairSet = strings.NewReplacer("NAME", "net", "CLASS", "local", "replicas: 1", "replicas: 2").Replace(classSet)

func TestWhatSomebodyTakesFromTheNetworkComesBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("net", repairSet, "--wait", "--timeout", patience)
	was := l.mustMember("net-1")
	check := func() (string, error) {
		args := append([]string{steadBinary, "agent", "check"}, l.agentFlags()...)
		return l.inside(time.Minute, args[0], args[1:]...)
	}
	resolv := l.path("run/etc/default/net-1/resolv.conf")
	if _, err := os.Stat(resolv); err != nil {
		t.Fatal(err)
	}
	whole := func() error {
		if out, err := check(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if out, err := l.inside(time.Minute, "ip", "route", "get", was.Status.Address); err != nil || !strings.Contains(out, " dev st") {
			return fmt.Errorf("no way to the member: %v %s", err, out)
		}
		out, err := l.inside(time.Minute, "dig", "@"+gateway, "+short", "+time=5", "+tries=1", "net-1.net.default.svc.cluster.local")
		if err != nil || strings.TrimSpace(out) != was.Status.Address {
			return fmt.Errorf("DNS answers %q, %v", out, err)
		}
		_, err = os.Stat(resolv)
		return err
	}
	l.eventually(time.Minute, "all stands", whole)
	for _, harm := range []string{
		"ip route flush proto 83",
		"ip route flush table main",
		"ip addr flush dev lo scope link",
		"nft flush ruleset",
		"ip link set $(ip -o link | grep -o 'st[0-9a-f]\\{10\\}' | head -1) down",
		"for l in $(ip -o link | grep -o 'st[0-9a-f]\\{10\\}'); do ip link del $l; done",
		"rm " + resolv,
	} {
		t.Run(harm, func(t *testing.T) {
			if out, err := l.inside(time.Minute, "bash", "-c", harm); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			l.eventually(time.Minute, "it comes back", whole)
		})
	}
	if now := l.waitReady("net-1", nil); now.Status.Token != was.Status.Token || now.Status.Restarts != was.Status.Restarts {
		judge.Broken(t, "a repair touched the member: %+v, was %+v", now.Status, was.Status)
	}
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	l.startAgent("--metrics", "unix://"+l.path("agent.sock"))
	l.eventually(time.Minute, "the agent tells its metrics", func() error {
		out, err := l.inside(time.Minute, "curl", "-sf", "--unix-socket", l.path("agent.sock"), "http://agent/metrics")
		if err != nil || !strings.Contains(out, "\nstead_agent_session_margin_seconds ") {
			return fmt.Errorf("%v\n%s", err, out)
		}
		return nil
	})
	end(t, l.agent)
	args := append([]string{"agent", "check"}, l.agentFlags()...)
	if out, err := l.inside(time.Minute, steadBinary, args...); err != nil {
		t.Fatalf("all stands: %v\n%s", err, out)
	}
	if out, err := l.inside(time.Minute, "bash", "-c", "nft flush ruleset; ip route flush proto 83"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := l.inside(time.Minute, steadBinary, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("check ends with %v, want code 1", err)
	}
	for _, want := range []string{"route ", "nft "} {
		if line := lineWith(out, want); !strings.HasSuffix(strings.TrimSpace(line), " no") {
			t.Errorf("check says %q of %s in\n%s", line, want, out)
		}
	}
	if line := lineWith(out, "address "); !strings.HasSuffix(strings.TrimSpace(line), " yes") {
		t.Errorf("check says %q of the address", line)
	}
}
