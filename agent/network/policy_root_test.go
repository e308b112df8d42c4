package network

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
)

// at7 is port 7 of a member, where it serves.
func at7(addr netip.Addr) netip.AddrPort { return netip.AddrPortFrom(addr, 7) }

// drops fails the test if a connection comes about: what policies forbid is not answered.
func drops(t *testing.T, who, path, network string, to netip.AddrPort) {
	t.Helper()
	c, err := dialFrom(path, network, to, time.Second)
	if err == nil && network == "udp4" {
		defer c.Close()
		_, err = c.Write([]byte("x"))
		must(t, err)
		c.SetReadDeadline(time.Now().Add(time.Second))
		_, err = c.Read(make([]byte, 64))
	}
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%s reaches %s over %s: %v; want no answer", who, to, network, err)
	}
}

// talks fails the test unless name answers, and sees the caller's own address.
func talks(t *testing.T, who, path string, to netip.AddrPort, name string, from netip.Addr) {
	t.Helper()
	asks(t, who, path, to, map[string]netip.Addr{name: from})
}

// enforce sets policies of the first host. Members that are not named are open.
func (x *serviceLab) enforce(t *testing.T, groups map[string][]netip.Addr, members ...PolicyMember) {
	t.Helper()
	p := Policies{Groups: groups, Members: members}
	for _, a := range []netip.Addr{address(10), address(15), x.addr} {
		named := false
		for _, m := range members {
			named = named || m.Address == a
		}
		if !named {
			p.Members = append(p.Members, PolicyMember{Address: a})
		}
	}
	must(t, x.net[0].SetPolicies(p))
}

func (x *serviceLab) policyChains(t *testing.T) (names []string) {
	t.Helper()
	n := x.net[0].node
	must(t, n.nft(func(c *nftables.Conn) error {
		all, err := c.ListChains()
		for _, chain := range all {
			if chain.Table.Name == n.policyTable().Name {
				names = append(names, chain.Name)
			}
		}
		return err
	}))
	return names
}

func TestIngressIsWhatPoliciesAllow(t *testing.T) {
	x := withServices(t)
	m0, m5, m1 := address(10), address(15), x.address[1]
	five := x.member[0]
	x.lead(t, service(1, 10))
	x.publish(t, port("TCP", 8080))
	groups := map[string][]netip.Addr{"front": {x.addr}}
	x.enforce(t, groups, PolicyMember{Address: m0, Ingress: from("front")})

	talks(t, "an allowed member", x.neighbour, at7(m0), "m0", x.addr)
	talks(t, "an allowed member, by the service", x.neighbour, atService, "m0", x.addr)
	talks(t, "its host", x.path[0], at7(m0), "m0", x.net[0].cfg.Gateway)
	talks(t, "itself, by the service", five, atService, "m0", x.net[0].cfg.Gateway)
	talks(t, "it, to a member that is open", five, at7(m5), "m5", m0)
	drops(t, "an allowed member, another protocol", x.neighbour, "udp4", at7(m0))
	drops(t, "an allowed member, another port", x.neighbour, "tcp4", netip.AddrPortFrom(m0, 8))
	drops(t, "a member of another host", x.member[1], "tcp4", at7(m0))
	drops(t, "another host", x.path[1], "tcp4", at7(m0))
	drops(t, "a machine outside, by a host port", x.client, "tcp4", netip.AddrPortFrom(atHost, 8080))

	x.enforce(t, map[string][]netip.Addr{"front": {m1}}, PolicyMember{Address: m0, Ingress: from("front")})
	talks(t, "a member of another host, allowed now", x.member[1], at7(m0), "m0", m1)
	drops(t, "a member that was allowed before", x.neighbour, "tcp4", at7(m0))
	drops(t, "by the service", x.neighbour, "tcp4", atService)

	block := Block{Range: netip.PrefixFrom(outside, 24).Masked()}
	x.enforce(t, nil, PolicyMember{Address: m0, Ingress: &Filter{[]Allow{{Blocks: []Block{block}, Ports: []PortRange{{"UDP", 0, 0}, {"TCP", 5, 7}}}}}})
	talks(t, "a machine outside, in a block", x.client, netip.AddrPortFrom(atHost, 8080), "m0", outside)
	block.Except = []netip.Prefix{netip.PrefixFrom(outside, 32)}
	x.enforce(t, nil, PolicyMember{Address: m0, Ingress: &Filter{[]Allow{{Blocks: []Block{block}}}}})
	drops(t, "a machine outside, an exception", x.client, "tcp4", netip.AddrPortFrom(atHost, 8080))

	x.enforce(t, nil, PolicyMember{Address: m0, Ingress: &Filter{}})
	drops(t, "anybody, when nothing is allowed", x.neighbour, "tcp4", at7(m0))
	x.enforce(t, nil, PolicyMember{Address: m0, Ingress: &Filter{[]Allow{{Anybody: true}}}})
	talks(t, "anybody", x.neighbour, at7(m0), "m0", x.addr)
	x.enforce(t, nil)
	talks(t, "anybody, without policies", x.client, netip.AddrPortFrom(atHost, 8080), "m0", outside)
	if left := x.policyChains(t); left != nil {
		t.Errorf("without policies there is %v", left)
	}
}

func TestEgressIsWhatPoliciesAllow(t *testing.T) {
	x := withServices(t)
	m0, m5, m1 := address(10), address(15), x.address[1]
	self := x.member[0]
	x.lead(t, service(1, 15), service(2, 11))
	serveDNS(t, x.path[0], x.net[0].cfg.Gateway)
	dns := netip.AddrPortFrom(x.net[0].cfg.Gateway, 53)
	x.enforce(t, map[string][]netip.Addr{"back": {m5}}, PolicyMember{Address: m0, Egress: from("back")})
	talks(t, "it, what is allowed", self, at7(m5), "m5", m0)
	talks(t, "it, what is allowed, by a service", self, atService, "m5", m0)
	talks(t, "somebody, it", x.neighbour, at7(m0), "m0", x.addr)
	drops(t, "it, another member here", self, "tcp4", at7(x.addr))
	drops(t, "it, a member elsewhere", self, "tcp4", at7(m1))
	drops(t, "it, by a service", self, "tcp4", netip.MustParseAddrPort("10.96.0.2:80"))
	drops(t, "it, a machine outside", self, "tcp4", at7(outside))
	drops(t, "it, DNS", self, "udp4", dns)
	drops(t, "it, DNS over TCP", self, "tcp4", dns)
	talks(t, "an open member, DNS", x.neighbour, dns, "dns", x.addr)

	udp := Allow{Anybody: true, Ports: []PortRange{{"UDP", 53, 53}, {"TCP", 53, 53}}}
	x.enforce(t, nil, PolicyMember{Address: m0, Egress: &Filter{[]Allow{udp}}})
	talks(t, "it, DNS that is allowed", self, dns, "dns", m0)
	c, err := dialFrom(self, "udp4", dns, time.Minute)
	must(t, err)
	defer c.Close()
	if got := chat(t, c); got != "dns from "+m0.String() {
		t.Errorf("DNS that is allowed: %q", got)
	}
	drops(t, "it, what was allowed before", self, "tcp4", at7(m5))

	// Both directions are judged.
	x.enforce(t, map[string][]netip.Addr{"a": {m0}, "b": {m5}},
		PolicyMember{Address: m0, Egress: from("b")}, PolicyMember{Address: m5, Ingress: &Filter{}})
	drops(t, "it, whom the other does not let in", self, "tcp4", at7(m5))
	x.enforce(t, map[string][]netip.Addr{"a": {m0}, "b": {m5}},
		PolicyMember{Address: m0, Egress: from("b")}, PolicyMember{Address: m5, Ingress: from("a")})
	talks(t, "it, whom the other lets in", self, at7(m5), "m5", m0)
}

// serveDNS answers as serve does, on port 53.
func serveDNS(t *testing.T, path string, addr netip.Addr) {
	t.Helper()
	var l net.Listener
	var p net.PacketConn
	at := netip.AddrPortFrom(addr, 53).String()
	must(t, inNamespace(path, func() (err error) {
		if l, err = net.Listen("tcp4", at); err == nil {
			p, err = net.ListenPacket("udp4", at)
		}
		return err
	}))
	t.Cleanup(func() { l.Close(); p.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			from, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			c.Write([]byte("dns from " + from + "\n"))
			c.Close()
		}
	}()
	go func() {
		for b := make([]byte, 64); ; {
			_, to, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			from, _, _ := net.SplitHostPort(to.String())
			p.WriteTo([]byte("dns from "+from), to)
		}
	}()
}

func TestPoliciesOutliveTheProcessAndAreRepaired(t *testing.T) {
	x := withServices(t)
	n, m0 := x.net[0], address(10)
	c, err := dialFrom(x.neighbour, "tcp4", at7(m0), time.Minute)
	must(t, err)
	defer c.Close()
	lines := bufio.NewReader(c)
	_, err = lines.ReadString('\n')
	must(t, err)
	closed := PolicyMember{Address: m0, Ingress: from("nobody")}
	x.enforce(t, map[string][]netip.Addr{"nobody": nil}, closed)
	drops(t, "a member", x.neighbour, "tcp4", at7(m0))
	_, err = c.Write([]byte("hello\n"))
	must(t, err)
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if line, err := lines.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("a connection of before: %q, %v", line, err)
	}

	before := picture(t, x.path[0])
	next, err := New(n.cfg) // the next process
	must(t, err)
	must(t, next.Setup(t.Context()))
	same(t, "another process sets up", before, picture(t, x.path[0]))
	drops(t, "a member, with another process", x.neighbour, "tcp4", at7(m0))
	must(t, n.Setup(t.Context()))
	same(t, "set up again", before, picture(t, x.path[0]))

	for what, damage := range map[string]func(c *nftables.Conn){
		"the table":   func(c *nftables.Conn) { c.DelTable(n.policyTable()) },
		"its rules":   func(c *nftables.Conn) { c.FlushTable(n.policyTable()) },
		"its members": func(c *nftables.Conn) { c.FlushSet(n.policies.set(mapIngress)) },
	} {
		must(t, n.nft(func(c *nftables.Conn) error { damage(c); return c.Flush() }))
		talks(t, "a member, without "+what, x.neighbour, at7(m0), "m0", x.addr)
		must(t, n.Setup(t.Context()))
		same(t, "without "+what+", set up again", before, picture(t, x.path[0]))
		drops(t, "a member, after "+what+" was repaired", x.neighbour, "tcp4", at7(m0))
	}

	// Who is attached and not named keeps what it had; who is gone does not.
	must(t, n.SetPolicies(Policies{Members: []PolicyMember{{Address: address(15), Egress: &Filter{}}}}))
	drops(t, "a member, who is not named", x.neighbour, "tcp4", at7(m0))
	must(t, n.Detach(t.Context(), member(0)))
	must(t, n.SetPolicies(Policies{Members: []PolicyMember{{Address: address(15)}}}))
	if left := x.policyChains(t); left != nil {
		t.Errorf("of a member that is gone there is %v", left)
	}
	settings, err := n.Check(t.Context())
	must(t, err)
	for _, s := range settings {
		if strings.Contains(s.What, "NetworkPolicies") {
			t.Errorf("Check lists %s", s.What)
		}
	}
}

func TestAMemberIsAttachedOnceItIsKnownWhatPoliciesSayOfIt(t *testing.T) {
	n, path := host(t, func(c *Config) { c.Policies = true })
	must(t, n.Setup(t.Context()))
	ns, addr := namespace(t), address(10)
	if err := n.Attach(t.Context(), member(0), ns, addr); err == nil || !strings.Contains(err.Error(), "what NetworkPolicies say of 10.88.0.10") {
		t.Fatalf("before: %v", err)
	}
	done := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := os.ErrInvalid
		for err != nil && ctx.Err() == nil {
			err = n.Attach(ctx, member(0), ns, addr)
		}
		done <- err
	}()
	must(t, n.SetPolicies(Policies{Members: []PolicyMember{{Address: address(11)}}}))
	must(t, n.SetPolicies(Policies{Members: []PolicyMember{{Address: addr, Ingress: &Filter{}}}}))
	must(t, <-done)

	// The next process repairs a member of which it knows nothing yet.
	next, err := New(n.cfg)
	must(t, err)
	must(t, next.Setup(t.Context()))
	before := picture(t, path)
	must(t, next.Attach(t.Context(), member(0), ns, addr))
	same(t, "repaired by the next process", before, picture(t, path))
}

func TestPoliciesThatComeBeforeSetupAreSetByIt(t *testing.T) {
	n, path := host(t, nil)
	empty := picture(t, path)
	must(t, n.SetPolicies(Policies{Members: []PolicyMember{{Address: address(10), Ingress: &Filter{}}}}))
	same(t, "before it is set up", empty, picture(t, path))
	must(t, n.Setup(t.Context()))
	settings, err := n.Check(t.Context())
	must(t, err)
	found := false
	for _, s := range settings {
		found = found || s.Set && strings.Contains(s.What, "NetworkPolicies for 1 members")
	}
	if !found {
		t.Errorf("Check lists %v", settings)
	}
	must(t, n.Teardown(t.Context()))
	same(t, "torn down", empty, picture(t, path))
}
