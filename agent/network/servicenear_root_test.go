package network

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// atBalancer is an address of no range, which a machine outside reaches by the first host.
var atBalancer = netip.MustParseAddrPort("198.51.100.7:80")

// toBalancer gives the machine outside and the first host a way to atBalancer.
func (x *serviceLab) toBalancer(t *testing.T) {
	t.Helper()
	h := handle(t, x.client)
	link, err := h.LinkByName("out0")
	must(t, err)
	must(t, h.RouteAdd(&netlink.Route{Dst: hostPrefix(atBalancer.Addr()), Gw: atHost.AsSlice(), LinkIndex: link.Attrs().Index}))
	must(t, handle(t, x.path[0]).RouteAdd(&netlink.Route{Dst: hostPrefix(atBalancer.Addr()), Gw: x.host[1].AsSlice()}))
}

// balanced is of atBalancer.
func balanced(endpoints ...byte) Service {
	return service(1, endpoints...).with(func(s *Service) { s.Address = atBalancer.Addr() })
}

// drops fails the test unless nothing answers, neither with a refusal.
func (x *serviceLab) drops(t *testing.T, who, path string, to netip.AddrPort) {
	t.Helper()
	c, err := dialFrom(path, "tcp4", to, 1500*time.Millisecond)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%s connects to %s: %v; want that nothing answers", who, to, err)
	}
	if err == nil {
		c.Close()
	}
}

func TestClientsOutsideAreLedToWhatIsNearWithTheirAddress(t *testing.T) {
	x := withServices(t)
	x.toBalancer(t)
	affine := func(s *Service) { s.Affinity = time.Hour }
	gateway := x.net[0].cfg.Gateway
	x.lead(t, service(0, 10, 11, 15).with(near(10, 15)), balanced(10, 11).with(near(10)),
		balanced(10, 11, 15).with(near(10, 15)).with(affine).with(func(s *Service) { s.Port = 81 }))
	here := map[string]netip.Addr{"m0": outside, "m5": outside}
	asks(t, "a machine outside", x.client, nodePort, here)
	asks(t, "the other host", x.path[1], netip.AddrPortFrom(x.host[0], 30080), map[string]netip.Addr{"m0": x.host[1], "m5": x.host[1]})
	asks(t, "a machine outside", x.client, atBalancer, map[string]netip.Addr{"m0": outside})
	// The host itself and members are led to all, as without it.
	asks(t, "the host itself", x.path[0], nodePort, map[string]netip.Addr{"m0": gateway, "m1": x.host[0], "m5": gateway})
	asks(t, "the host itself", x.path[0], atBalancer, map[string]netip.Addr{"m0": gateway, "m1": x.host[0]})
	asks(t, "a member", x.neighbour, nodePort, map[string]netip.Addr{"m0": x.addr, "m1": x.addr, "m5": x.addr})
	asks(t, "a member", x.neighbour, atBalancer, map[string]netip.Addr{"m0": x.addr, "m1": x.addr})
	asks(t, "an endpoint", x.member[0], atBalancer, map[string]netip.Addr{"m0": gateway, "m1": x.address[0]})

	to := netip.AddrPortFrom(atBalancer.Addr(), 81)
	first, _, err := ask(x.client, to)
	must(t, err)
	for range 30 {
		if name, from, err := ask(x.client, to); err != nil || name != first || from != outside.String() {
			t.Fatalf("with affinity: %q from %q, %v, after %q", name, from, err, first)
		}
	}

	// Nothing is near, nothing is ready at all, and the policy goes.
	x.lead(t, service(0, 11).with(near()), balanced(11).with(near()))
	for _, to := range []netip.AddrPort{nodePort, atBalancer} {
		x.drops(t, "a machine outside", x.client, to)
		asks(t, "the host itself", x.path[0], to, map[string]netip.Addr{"m1": x.host[0]})
		asks(t, "a member", x.neighbour, to, map[string]netip.Addr{"m1": x.addr})
	}
	x.lead(t, service(0).with(near()), balanced().with(near()))
	for _, to := range []netip.AddrPort{nodePort, atBalancer} {
		refuses(t, "a machine outside, without endpoints", x.client, to)
	}
	x.lead(t, service(0, 10, 11), balanced(10, 11))
	for _, to := range []netip.AddrPort{nodePort, atBalancer} {
		asks(t, "a machine outside, led to all", x.client, to, map[string]netip.Addr{"m0": gateway, "m1": x.host[0]})
	}
}

func TestAConnectionOfUDPFollowsWhatIsNear(t *testing.T) {
	x := withServices(t)
	udp := func(s *Service) { s.Protocol = "UDP" }
	x.lead(t, service(0, 11).with(udp))
	c, err := dialFrom(x.client, "udp4", nodePort, time.Minute)
	must(t, err)
	defer c.Close()
	ledTo(t, "as all are", c, "m1 from "+x.host[0].String())
	x.lead(t, service(0, 10, 11).with(udp).with(near(10)))
	ledTo(t, "as soon as only what is near counts", c, "m0 from "+outside.String())
}

func TestOnlySourcesReachAnAddress(t *testing.T) {
	x := withServices(t)
	x.toBalancer(t)
	gateway := x.net[0].cfg.Gateway
	x.lead(t, balanced(10).with(onlyFrom("203.0.113.0/24", outside.String()+"/32", "2001:db8::/32")), service(0, 10))
	asks(t, "a machine outside, of a range", x.client, atBalancer, map[string]netip.Addr{"m0": gateway})
	x.drops(t, "a member", x.neighbour, atBalancer)
	x.drops(t, "the host", x.path[0], atBalancer)
	asks(t, "a member, by the port of the node", x.neighbour, nodePort, map[string]netip.Addr{"m0": x.addr})

	c, err := dialFrom(x.client, "tcp4", atBalancer, time.Minute)
	must(t, err)
	defer c.Close()
	x.lead(t, balanced(10).with(onlyFrom(x.addr.String()+"/24")).with(near(10)), service(0, 10))
	x.drops(t, "a machine outside", x.client, atBalancer)
	asks(t, "a machine outside, by the port of the node", x.client, nodePort, map[string]netip.Addr{"m0": gateway})
	asks(t, "a member", x.neighbour, atBalancer, map[string]netip.Addr{"m0": x.addr})
	c.SetDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 64)
	if n, err := c.Read(b); err != nil || string(b[:2]) != "m0" {
		t.Errorf("a connection of before reads %q, %v", b[:n], err)
	}

	x.lead(t, balanced(10).with(onlyFrom("2001:db8::/32")))
	x.drops(t, "a machine outside, of no range", x.client, atBalancer)
	x.lead(t, balanced(10).with(onlyFrom("0.0.0.0/0")))
	asks(t, "a machine outside, of every range", x.client, atBalancer, map[string]netip.Addr{"m0": gateway})
	x.lead(t, balanced(10))
	asks(t, "a machine outside, without ranges", x.client, atBalancer, map[string]netip.Addr{"m0": gateway})
	for name := range chainsOf(t, x.net[0]) {
		if len(name) > 5 && name[:5] == "from-" && name != sources(balanced().with(onlyFrom("0.0.0.0/0")).Sources).name() {
			t.Errorf("chain %s is left", name)
		}
	}
}
