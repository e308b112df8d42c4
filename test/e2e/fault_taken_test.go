package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// refused runs a program of the lab that shall end at once by itself, and returns
// what it said.
func (l *Lab) refused(argv ...string) string {
	l.t.Helper()
	out, err := l.inside(time.Minute, argv[0], argv[1:]...)
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		l.t.Errorf("%s ends with %v, want code 1\n%s", strings.Join(argv, " "), err, out)
	}
	return out
}

func says(t *testing.T, out string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

func TestASocketThatIsTakenIsRefusedByNameAndLeftAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	foreign := l.path("foreign.sock")
	lis, err := net.Listen("unix", foreign)
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	server := []string{steadBinary, "server", "--data-dir", l.path("server2"), "--socket"}
	says(t, l.refused(append(server, foreign)...), foreign, "another program answers")
	if !alive(foreign) {
		t.Error("the other program's socket is gone")
	}
	file := l.path("precious")
	if err := os.WriteFile(file, []byte("not yours"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, l.refused(append(server, file)...), file, "is not a socket")
	if got, err := os.ReadFile(file); err != nil || string(got) != "not yours" {
		judge.Broken(t, "the file is %q, %v", got, err)
	}
	l.startServer("--metrics", "127.0.0.1:9464")
	says(t, l.refused(append(server, l.Socket)...), "another server answers on "+l.Socket)
	says(t, l.refused(append(server, l.path("other.sock"), "--metrics", "127.0.0.1:9464")...), "127.0.0.1:9464", "address already in use", "--metrics")
	says(t, l.refused(append([]string{steadBinary, "agent", "--server", "unix://" + l.Socket, "--metrics", "127.0.0.1:9464"}, l.agentFlags()...)...),
		"127.0.0.1:9464", "address already in use", "--metrics")
	if out := l.run("ip", "-n", l.Name, "route"); out != "" {
		t.Errorf("the refused agent changed routes:\n%s", out)
	}
	l.stead("get", "nodes") // the first goes on
}

func TestADNSAddressThatIsTakenIsNamedAndHealsWhenItIsFree(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	dns := l.start("other-dns", toolBinary, "hold", ":53")
	dns.waitSaid(l, "held")
	argv := append([]string{steadBinary, "agent", "--server", "unix://" + l.Socket}, l.agentFlags()...)
	l.agent = l.start("agent", argv...)
	l.eventually(time.Minute, "the agent names it", func() error {
		log := l.agent.said()
		if !strings.Contains(log, gateway+":53: another DNS server holds this address") || !strings.Contains(log, "--gateway") {
			return errors.New(log)
		}
		return nil
	})
	l.eventually(time.Minute, "status says it", func() error { return l.steadSays("has NetworkUnavailable: ", "status") })
	if err := dns.signal(15); err != nil {
		t.Fatal(err)
	}
	l.eventually(time.Minute, "the node takes members", func() error {
		if out, err := l.trySteadFor(time.Minute, "status"); err != nil || !strings.Contains(out, "1 of 1 have a session") || strings.Contains(out, "NetworkUnavailable") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}

func TestAMembersAddressOnTheHostIsNamedAndChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("net", repairSet, "--wait", "--timeout", patience)
	was := []member{l.mustMember("net-0"), l.mustMember("net-1")}
	l.stead("scale", "net", "--replicas", "1", "--wait", "--timeout", patience)
	l.run("ip", "-n", l.Name, "address", "add", was[1].Status.Address+"/32", "dev", "lo")
	l.stead("scale", "net", "--replicas", "2")
	m := l.waitCause("net-1", "NetworkError")
	says(t, m.Status.Message, was[1].Status.Address, "lo")
	l.eventually(time.Minute, "the agent names it", func() error {
		if log := l.agent.said(); !strings.Contains(log, "address "+was[1].Status.Address+"/32 of lo is in the members' range") {
			return errors.New(log)
		}
		return nil
	})
	if out := l.run("ip", "-n", l.Name, "address"); !strings.Contains(out, was[1].Status.Address+"/32") {
		t.Errorf("the host's address was taken away:\n%s", out)
	}
	if now := l.waitReady("net-0", nil); now.Status.Token != was[0].Status.Token {
		judge.Broken(t, "net-0 was touched: %+v", now.Status)
	}
	args := append([]string{steadBinary, "agent", "check"}, l.agentFlags()...)
	says(t, l.refused(args...), "conflict:", was[1].Status.Address)
	l.run("ip", "-n", l.Name, "address", "del", was[1].Status.Address+"/32", "dev", "lo")
	if now := l.waitReady("net-1", nil); now.Status.Address != was[1].Status.Address {
		t.Errorf("the address is %s, was %s", now.Status.Address, was[1].Status.Address)
	}
}

// A host that cannot give members a network is shown with the cause, takes no members, and keeps those that run.
func TestARouteThatOverlapsIsShownAndNothingChanges(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	l.run("ip", "-n", l.Name, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
	l.run("ip", "-n", l.Name, "link", "set", "v0", "up")
	for _, address := range []string{"10.3.0.2/24", "10.4.0.2/24"} {
		l.run("ip", "-n", l.Name, "address", "add", address, "dev", "v0")
	}
	overlap := func(verb string) { l.run("ip", "-n", l.Name, "route", verb, "10.88.7.0/24", "dev", "v0") }
	overlap("add")
	state := func() string {
		return l.run("ip", "-n", l.Name, "route", "show", "table", "all") + l.run("ip", "-n", l.Name, "-br", "address") +
			l.run("nsenter", "--net=/run/netns/"+l.Name, "nft", "list", "ruleset")
	}
	before := state()
	l.startAgent()
	says(t, l.stead("status"), "has NetworkUnavailable: ", "10.88.7.0/24", "dev v0", "--cidr", "stead agent check",
		"it has several addresses (10.3.0.2, 10.4.0.2)", "--address 10.3.0.2")
	says(t, l.stead("node", "ls", "-o", "wide"), "NetworkUnavailable")
	says(t, l.agent.said(), "10.88.7.0/24", "--address 10.3.0.2")
	l.stead("image", "load", l.toolArchive())
	l.apply("net", strings.Replace(repairSet, "replicas: 2", "replicas: 1", 1))
	l.eventually(time.Minute, "net-0 waits", func() error { return l.steadSays("NetworkUnavailable", "explain", "net-0") })
	if after := state(); after != before {
		t.Errorf("the host was changed from\n%s\nto\n%s", before, after)
	}
	overlap("del")
	was := l.waitReady("net-0", nil)
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	overlap("add")
	l.startAgent()
	says(t, l.stead("status"), "has NetworkUnavailable: ")
	if now := l.waitReady("net-0", nil); now.Status.Token != was.Status.Token || now.Status.Restarts != was.Status.Restarts {
		judge.Broken(t, "net-0 was touched: %+v, before %+v", now.Status, was.Status)
	}
	overlap("del")
	l.eventually(time.Minute, "the condition ends", func() error {
		if out := l.stead("status"); strings.Contains(out, "NetworkUnavailable") {
			return errors.New(out)
		}
		return nil
	})
}
