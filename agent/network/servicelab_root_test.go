package network

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
)

var (
	serviceRange = netip.MustParsePrefix("10.96.0.0/16")
	atService    = netip.MustParseAddrPort("10.96.0.1:80") // of service(1)
	nodePort     = netip.AddrPortFrom(atHost, 30080)       // of service(0)
)

// serviceLab is a host with the members m0 and m5, that serve, and a neighbour, another host with
// the member m1, and a machine outside on a cable to the first.
type serviceLab struct {
	*two
	client    string
	neighbour string
	addr      netip.Addr // the neighbour's
}

func withServices(t *testing.T) *serviceLab {
	t.Helper()
	x, client := withClient(t)
	l := &serviceLab{two: x, client: client}
	m5, addr := attach(t, x.net[0], 5)
	l.neighbour, l.addr = attach(t, x.net[0], 7)
	must(t, x.net[1].Reach(t.Context(), map[netip.Addr]Location{x.address[0]: {Host: x.host[0]}, addr: {Host: x.host[0]}, l.addr: {Host: x.host[0]}}))
	serve(t, x.member[0], x.address[0], "m0")
	serve(t, x.member[1], x.address[1], "m1")
	serve(t, m5, addr, "m5")
	return l
}

// lead makes the first host lead these services alone.
func (x *serviceLab) lead(t *testing.T, services ...Service) {
	t.Helper()
	must(t, x.net[0].SetServices(serviceRange, services))
}

// serve answers on port 7 of TCP and UDP inside a namespace: "NAME from SENDER". A connection of TCP then
// gets back each line.
func serve(t *testing.T, path string, addr netip.Addr, name string) {
	t.Helper()
	udpEcho(t, path, addr, name)
	var l net.Listener
	must(t, inNamespace(path, func() (err error) {
		l, err = net.Listen("tcp4", netip.AddrPortFrom(addr, 7).String())
		return err
	}))
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				from, _, _ := net.SplitHostPort(c.RemoteAddr().String())
				fmt.Fprintf(c, "%s from %s\n", name, from)
				for s := bufio.NewScanner(c); s.Scan(); {
					fmt.Fprintln(c, s.Text())
				}
			}()
		}
	}()
	t.Cleanup(func() { l.Close() })
}

// dialFrom connects from inside a namespace; the caller closes it.
func dialFrom(path, network string, to netip.AddrPort, wait time.Duration) (c net.Conn, err error) {
	err = inNamespace(path, func() (err error) {
		c, err = net.DialTimeout(network, to.String(), wait)
		return err
	})
	return c, err
}

// ask connects, and returns who answered and whom it saw.
func ask(path string, to netip.AddrPort) (name, from string, err error) {
	c, err := dialFrom(path, "tcp4", to, time.Minute)
	if err != nil {
		return "", "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	line, err := bufio.NewReader(c).ReadString('\n')
	name, from, _ = strings.Cut(strings.TrimSpace(line), " from ")
	return name, from, err
}

// asks connects until everybody has answered who is to, and nobody else; each sees the address it is to see.
func asks(t *testing.T, who, path string, to netip.AddrPort, want map[string]netip.Addr) {
	t.Helper()
	seen := map[string]netip.Addr{}
	for range 200 {
		name, from, err := ask(path, to)
		if addr, wanted := want[name]; err != nil || !wanted || addr.String() != from {
			t.Errorf("%s asks %s: %q from %q, %v; want one of %v", who, to, name, from, err, want)
			return
		}
		seen[name] = want[name]
		if maps.Equal(seen, want) {
			return
		}
	}
	t.Errorf("%s asks %s: only %v answered", who, to, seen)
}

// affinities are what the kernel remembers of clients.
func (x *serviceLab) affinities(t *testing.T) (list []nftables.SetElement) {
	t.Helper()
	n := x.net[0].node
	must(t, n.nft(func(c *nftables.Conn) (err error) {
		list, err = c.GetSetElements(&nftables.Set{Table: n.serviceTable(), Name: setAffinity})
		return err
	}))
	return list
}

// eventually waits at most a minute until done holds.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}
