package network

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"golang.org/x/sys/unix"
)

// The host's end of its cable to a machine outside, and that machine.
var atHost, outside = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")

func port(protocol string, number uint16) spec.HostPort {
	return spec.HostPort{Protocol: protocol, Port: number, To: 7}
}

// withClient is two hosts, and a machine outside on a cable to the first.
func withClient(t *testing.T) (*two, string) {
	t.Helper()
	needsRoot(t)
	x, client := newTwo(t, ModeAuto, false), namespace(t)
	x.announce(t)
	cable(t, "out0", x.path[0], atHost, client, outside)
	return x, client
}

// publish gives a member of the first host, again, its host ports.
func (x *two) publish(t *testing.T, ports ...spec.HostPort) {
	t.Helper()
	must(t, x.net[0].Attach(t.Context(), member(0), x.member[0], x.address[0], ports...))
}

// call connects from inside a namespace, and returns what echo says.
func call(path string, to netip.AddrPort) (from string, err error) {
	err = inNamespace(path, func() error {
		c, err := net.DialTimeout("tcp4", to.String(), time.Minute)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		b, err := io.ReadAll(c)
		from = string(b)
		return err
	})
	return from, err
}

func answers(t *testing.T, who, path string, to netip.AddrPort, want netip.Addr) {
	t.Helper()
	if got, err := call(path, to); err != nil || got != want.String() {
		t.Errorf("%s calls %s: from %q, %v; want from %s", who, to, got, err, want)
	}
}

func refuses(t *testing.T, who, path string, to netip.AddrPort) {
	t.Helper()
	if got, err := call(path, to); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("%s calls %s: from %q, %v; want a refusal", who, to, got, err)
	}
}

func TestAHostPortLeadsToItsMember(t *testing.T) {
	x, client := withClient(t)
	echo(t, x.member[0], x.address[0])
	to := netip.AddrPortFrom(atHost, 8080)
	refuses(t, "a machine outside, before", client, to)
	before := picture(t, x.path[0])
	x.publish(t, port("TCP", 8080))
	x.publish(t, port("TCP", 8080))

	neighbour, addr := attach(t, x.net[0], 7)
	answers(t, "a machine outside", client, to, outside)
	answers(t, "a neighbour", neighbour, to, addr)
	answers(t, "a member of another host", x.member[1], netip.AddrPortFrom(x.host[0], 8080), x.host[1])
	answers(t, "the other host", x.path[1], netip.AddrPortFrom(x.host[0], 8080), x.host[1])
	answers(t, "the host itself", x.path[0], to, atHost)
	answers(t, "the member itself", x.member[0], to, x.net[0].cfg.Gateway)
	refuses(t, "a machine outside, another port", client, netip.AddrPortFrom(atHost, 8081))
	refuses(t, "the host itself, by loopback", x.path[0], netip.MustParseAddrPort("127.0.0.1:8080"))
	refuses(t, "a neighbour, by the gateway", neighbour, netip.AddrPortFrom(x.net[0].cfg.Gateway, 8080))
	refuses(t, "the other host's port", client, netip.AddrPortFrom(atHost, 7))
	must(t, x.net[0].Detach(t.Context(), member(7)))

	settings, err := x.net[0].Check(t.Context())
	want := Setting{"nft", "table ip stead-01234567-n1: host port 8080/TCP to 10.88.0.10:7 (default/db-0)", true}
	if err != nil || !slices.Contains(settings, want) {
		t.Errorf("check: %v, %v; want %v", settings, err, want)
	}

	// The next life has another port; the one after it none.
	x.publish(t, port("TCP", 8081))
	refuses(t, "a machine outside, the old port", client, to)
	answers(t, "a machine outside, the new port", client, netip.AddrPortFrom(atHost, 8081), outside)
	must(t, x.net[0].Detach(t.Context(), member(0)))
	refuses(t, "a machine outside, after", client, netip.AddrPortFrom(atHost, 8081))
	x.publish(t)
	after := picture(t, x.path[0])
	for _, line := range after {
		if strings.Contains(line, "hostports") && !strings.HasSuffix(line, ": 0 rules") {
			t.Errorf("left: %s", line)
		}
	}
	if len(after) != len(before)+len(x.net[0].nat.portChains()) {
		same(t, "the host after", before, after)
	}
}

func TestAHostPortStandsAtItsAddressAlone(t *testing.T) {
	x, client := withClient(t)
	echo(t, x.member[0], x.address[0])
	here := port("TCP", 8080)
	here.Address = atHost
	x.publish(t, here)
	answers(t, "a machine outside", client, netip.AddrPortFrom(atHost, 8080), outside)
	refuses(t, "the other host", x.path[1], netip.AddrPortFrom(x.host[0], 8080))

	// The same port at another address is another's.
	path, addr := attach(t, x.net[0], 5)
	echo(t, path, addr)
	there := port("TCP", 8080)
	there.Address = x.host[0]
	must(t, x.net[0].Attach(t.Context(), member(5), path, addr, there))
	answers(t, "the other host", x.path[1], netip.AddrPortFrom(x.host[0], 8080), x.host[1])

	foreign := port("TCP", 9090)
	foreign.Address = netip.MustParseAddr("203.0.113.9")
	if err := x.net[0].Attach(t.Context(), member(5), path, addr, foreign); !errors.Is(err, runtime.ErrPortTaken) || !strings.Contains(err.Error(), "203.0.113.9 is not an address of this host") {
		t.Errorf("an address of another host: %v", err)
	}
}

func TestHostPortsAreRepairedAndSurviveTheProcess(t *testing.T) {
	x, client := withClient(t)
	echo(t, x.member[0], x.address[0])
	to, ports := netip.AddrPortFrom(atHost, 8080), []spec.HostPort{port("TCP", 8080)}
	x.publish(t, ports...)
	must(t, x.net[0].dropTable(x.net[0].table()))
	refuses(t, "a machine outside, with the table flushed", client, to)
	must(t, x.net[0].Repair(t.Context(), []Assignment{{ID: member(0), NetNS: x.member[0], Address: x.address[0], Ports: ports}}))
	answers(t, "a machine outside, after the repair", client, to, outside)

	// The process dies; the next one leaves what stands, and takes it away with the life.
	next, err := New(x.net[0].cfg)
	must(t, err)
	before := picture(t, x.path[0])
	must(t, next.Setup(t.Context()))
	must(t, next.Attach(t.Context(), member(0), x.member[0], x.address[0], ports...))
	same(t, "the host", before, picture(t, x.path[0]))
	must(t, next.Detach(t.Context(), member(0)))
	refuses(t, "a machine outside, after the life", client, to)
}

func TestAHostPortThatIsTakenIsRefused(t *testing.T) {
	x, client := withClient(t)
	echo(t, x.member[0], x.address[0])
	to := netip.AddrPortFrom(atHost, 8080)
	listen := func(network, at string) io.Closer {
		var c io.Closer
		must(t, inNamespace(x.path[0], func() (err error) {
			if network == "udp4" {
				c, err = net.ListenPacket(network, at)
			} else {
				c, err = net.Listen(network, at)
			}
			return err
		}))
		t.Cleanup(func() { c.Close() })
		return c
	}
	try := func() error {
		return x.net[0].Attach(t.Context(), member(0), x.member[0], x.address[0], port("TCP", 8080), port("UDP", 8080))
	}
	for _, holder := range [][2]string{{"tcp4", "0.0.0.0:8080"}, {"tcp4", "192.0.2.1:8080"}, {"udp4", "192.0.2.1:8080"}} {
		c := listen(holder[0], holder[1])
		if err := try(); !errors.Is(err, runtime.ErrPortTaken) || !strings.Contains(err.Error(), "a process of the host has port 8080/"+strings.ToUpper(holder[0][:3])) {
			t.Errorf("held at %s: %v", holder, err)
		}
		if holder[1] == "192.0.2.1:8080" && holder[0] == "udp4" {
			refuses(t, "a machine outside: all ports or none", client, to)
		}
		must(t, c.Close())
	}
	listen("tcp4", "127.0.0.1:8080") // what the host offers to itself or to members alone is in nobody's way
	listen("tcp4", netip.AddrPortFrom(x.net[0].cfg.Gateway, 8080).String())
	must(t, try())
	answers(t, "a machine outside", client, to, outside)
	listen("tcp4", "192.0.2.1:8080") // who comes later takes nothing
	must(t, try())
	answers(t, "a machine outside, with a process that came later", client, to, outside)

	path, addr := attach(t, x.net[0], 5)
	err := x.net[0].Attach(t.Context(), member(5), path, addr, port("TCP", 8080))
	if !errors.Is(err, runtime.ErrPortTaken) || !strings.Contains(err.Error(), "host port 8080/TCP leads to default/db-0") {
		t.Errorf("another member's: %v", err)
	}
	must(t, x.net[0].Attach(t.Context(), member(5), path, addr, port("TCP", 8082)))
}

// A client of UDP goes on with one socket: it is led where the rules lead now, not where
// its first packet went.
func TestAHostPortOfUDPFollowsItsMember(t *testing.T) {
	x, client := withClient(t)
	second, addr := attach(t, x.net[0], 5)
	for name, at := range map[string]struct {
		path string
		addr netip.Addr
	}{"first": {x.member[0], x.address[0]}, "second": {second, addr}} {
		udpEcho(t, at.path, at.addr, name)
	}
	var c net.Conn
	must(t, inNamespace(client, func() (err error) {
		c, err = net.Dial("udp4", netip.AddrPortFrom(atHost, 5353).String())
		return err
	}))
	defer c.Close()
	// Nobody is there yet: what the client sends is refused, and remembered.
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Fatalf("before: %v, want a refusal", err)
	}
	lead := port("UDP", 5353)
	x.publish(t, lead)
	if got := chat(t, c); got != "first from 192.0.2.2" {
		t.Errorf("led: %q", got)
	}
	must(t, x.net[0].Detach(t.Context(), member(0)))
	must(t, x.net[0].Attach(t.Context(), member(5), second, addr, lead))
	if got := chat(t, c); got != "second from 192.0.2.2" {
		t.Errorf("led elsewhere: %q", got)
	}
}

// udpEcho answers each packet to addr:7 with its name and the sender.
func udpEcho(t *testing.T, path string, addr netip.Addr, name string) {
	t.Helper()
	var l net.PacketConn
	must(t, inNamespace(path, func() (err error) {
		l, err = net.ListenPacket("udp4", netip.AddrPortFrom(addr, 7).String())
		return err
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 64)
		for {
			_, from, err := l.ReadFrom(b)
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(from.String())
			l.WriteTo(fmt.Appendf(nil, "%s from %s", name, host), from)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// chat sends until something comes back.
func chat(t *testing.T, c net.Conn) string {
	t.Helper()
	b := make([]byte, 64)
	for range 20 {
		if _, err := c.Write([]byte("x")); err != nil && !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.EHOSTUNREACH) {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(3 * time.Second))
		if n, err := c.Read(b); err == nil {
			return string(b[:n])
		}
	}
	return "nothing"
}
