package network

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

func TestANodePortLeadsFromEveryAddressOfTheHost(t *testing.T) {
	x := withServices(t)
	x.lead(t, service(0, 10, 11, 15))
	gateway := x.net[0].cfg.Gateway
	// The client's address would be lost to the other host's answers; it is taken from it here, too.
	notMembers := map[string]netip.Addr{"m0": gateway, "m1": x.host[0], "m5": gateway}
	asks(t, "a machine outside", x.client, nodePort, notMembers)
	asks(t, "the other host", x.path[1], netip.AddrPortFrom(x.host[0], 30080), notMembers)
	asks(t, "the host itself", x.path[0], nodePort, notMembers)
	asks(t, "a member", x.neighbour, nodePort, map[string]netip.Addr{"m0": x.addr, "m1": x.addr, "m5": x.addr})
	asks(t, "an endpoint", x.member[0], nodePort, map[string]netip.Addr{"m0": gateway, "m1": x.address[0], "m5": x.address[0]})
	refuses(t, "the host itself, by loopback", x.path[0], netip.MustParseAddrPort("127.0.0.1:30080"))
	refuses(t, "a member, by the gateway", x.neighbour, netip.AddrPortFrom(gateway, 30080))
	refuses(t, "a machine outside, another port", x.client, netip.AddrPortFrom(atHost, 30081))

	x.lead(t, service(0), service(0).with(func(s *Service) { s.Protocol = "UDP" }))
	rejects(t, "a machine outside, without endpoints", x.client, nodePort)
	rejects(t, "the host itself, without endpoints", x.path[0], nodePort)
	x.lead(t)
	refuses(t, "a machine outside, without a node port", x.client, nodePort)
}

func TestAnAddressOfNoRangeLeadsToo(t *testing.T) {
	x := withServices(t)
	at := netip.MustParseAddr("198.51.100.7")
	h := handle(t, x.client)
	link, err := h.LinkByName("out0")
	must(t, err)
	must(t, h.RouteAdd(&netlink.Route{Dst: hostPrefix(at), Gw: atHost.AsSlice(), LinkIndex: link.Attrs().Index}))
	x.lead(t, service(1, 10, 11).with(func(s *Service) { s.Address = at }))
	to := netip.AddrPortFrom(at, 80)
	asks(t, "a machine outside", x.client, to, map[string]netip.Addr{"m0": x.net[0].cfg.Gateway, "m1": x.host[0]})
	asks(t, "a member", x.neighbour, to, map[string]netip.Addr{"m0": x.addr, "m1": x.addr})
	x.lead(t, service(1).with(func(s *Service) { s.Address = at }))
	refuses(t, "a machine outside, without endpoints", x.client, to)
}

func TestAClientStaysWithItsEndpoint(t *testing.T) {
	x := withServices(t)
	affine := func(s *Service) { s.Affinity = time.Hour }
	last := map[string]byte{"m0": 10, "m1": 11, "m5": 15}
	x.lead(t, service(1, 10, 11, 15).with(affine), service(0, 10, 11, 15).with(affine))
	stays := func(when, path string, to netip.AddrPort) string {
		t.Helper()
		first, _, err := ask(path, to)
		must(t, err)
		for range 30 {
			if name, _, err := ask(path, to); err != nil || name != first {
				t.Fatalf("%s: led to %q, %v, after %q", when, name, err, first)
			}
		}
		return first
	}
	stays("a machine outside", x.client, nodePort)
	stays("the host", x.path[0], atService)
	first := stays("at first", x.neighbour, atService)
	// Others come and go: the client stays.
	others := slices.DeleteFunc([]byte{10, 11, 15}, func(b byte) bool { return b == last[first] })
	x.lead(t, service(1, last[first], others[0]).with(affine))
	if now := stays("without another endpoint", x.neighbour, atService); now != first {
		t.Errorf("without another endpoint: %q, was %q", now, first)
	}
	// Its own goes: it is led to another one at once, and stays there while others come.
	x.lead(t, service(1, others[0]).with(affine))
	second := stays("without its endpoint", x.neighbour, atService)
	x.lead(t, service(1, others...).with(affine))
	if now := stays("with another one", x.neighbour, atService); now != second || second == first {
		t.Errorf("with another one: %q, was %q and %q before", now, second, first)
	}
	x.lead(t, service(1, others...).with(affine))
	for name, n := range chainsOf(t, x.net[0]) {
		if strings.HasPrefix(name, "pick-3-") || strings.HasPrefix(name, "port-") {
			t.Errorf("chain %s is left, with %d rules", name, n)
		}
	}
}

// chainsOf are the chains of services that have rules, and how many.
func chainsOf(t *testing.T, n *Network) map[string]int {
	t.Helper()
	marks, err := n.ruleMarks(n.serviceTable())
	must(t, err)
	out := map[string]int{}
	for name, list := range marks {
		out[name] = len(list)
	}
	return out
}

func TestAnAffinityIsRenewedAndEnds(t *testing.T) {
	x := withServices(t)
	lasts := func(d time.Duration) {
		x.lead(t, service(1, 10).with(func(s *Service) { s.Affinity = d }))
	}
	lasts(time.Hour)
	_, _, err := ask(x.neighbour, atService)
	must(t, err)
	left := func() time.Duration {
		list := x.affinities(t)
		if len(list) != 1 || list[0].Timeout != time.Hour {
			t.Fatalf("remembered: %+v; want one client for an hour", list)
		}
		return list[0].Expires
	}
	was := left()
	eventually(t, "time passes", func() bool { return left() < was-200*time.Millisecond })
	was = left()
	_, _, err = ask(x.neighbour, atService)
	must(t, err)
	if now := left(); now <= was {
		t.Errorf("%s were left of the time, and %s after another connection", was, now)
	}
	lasts(time.Second)
	_, _, err = ask(x.path[0], atService)
	must(t, err)
	eventually(t, "the client of a second is forgotten", func() bool { return len(x.affinities(t)) == 1 })
	lasts(0)
	asks(t, "a member", x.neighbour, atService, map[string]netip.Addr{"m0": x.addr})
}

// Others list the tables of a host, too: their nft must be able to read ours.
func TestNftReadsTheTable(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	affine := func(s *Service) { s.Affinity = time.Hour }
	must(t, n.SetServices(serviceRange, []Service{service(1, 10), service(2, 10, 11).with(affine), service(3),
		service(0, 10).with(affine).with(near(10)), service(4, 10).with(near()), service(5, 10).with(near(10)).with(onlyFrom("192.0.2.0/24", "0.0.0.0/0"))}))
	command(t, h, "nft", "list", "ruleset")
	command(t, h, "nft", "-j", "list", "ruleset")
}

func TestServicesAreTakenAwayWithTheNetwork(t *testing.T) {
	n, h := host(t, nil)
	found := picture(t, h)
	must(t, n.SetServices(serviceRange, []Service{service(1, 10), service(0, 10)})) // Setup does it
	same(t, "before the host is set up", found, picture(t, h))
	must(t, n.Setup(t.Context()))
	settings, err := n.Check(t.Context())
	must(t, err)
	for _, want := range []string{"unreachable 10.96.0.0/16", "10.96.0.0/16 dev lo", "table ip stead-01234567-n1-services: 2 services"} {
		if !slices.ContainsFunc(settings, func(s Setting) bool { return strings.HasPrefix(s.What, want) && s.Set }) {
			t.Errorf("check: %v; want %q", settings, want)
		}
	}
	whole := picture(t, h)
	must(t, n.SetServices(netip.Prefix{}, []Service{service(0, 10)}))
	must(t, n.SetServices(netip.Prefix{}, nil))
	must(t, n.SetServices(serviceRange, []Service{service(1, 10), service(0, 10)}))
	same(t, "after the services were away", whole, picture(t, h))

	again, err := New(n.cfg) // the process that purges knows no services
	must(t, err)
	must(t, again.Teardown(t.Context()))
	same(t, "the host after teardown", found, picture(t, h))
}

func TestARangeThatTheHostUsesIsRefused(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	hh := handle(t, h)
	must(t, hh.LinkAdd(br))
	must(t, hh.LinkSetUp(br))
	must(t, hh.AddrAdd(br, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("10.96.3.1/24"))}))
	before := picture(t, h)
	err := n.SetServices(serviceRange, []Service{service(1, 10)})
	if !errors.Is(err, ErrOverlap) || !strings.Contains(err.Error(), "10.96.3.1/24") {
		t.Errorf("got %v, want that the host has the address", err)
	}
	same(t, "the host after the refusal", before, picture(t, h))
	must(t, hh.LinkDel(br))
	must(t, n.Setup(t.Context())) // what was wanted is done when the address is away
	if after := strings.Join(picture(t, h), "\n"); !strings.Contains(after, "-services prerouting: 5 rules") {
		t.Errorf("after a repair: %s", after)
	}
}

func TestAServiceLeadsThroughTheTunnel(t *testing.T) {
	needsRoot(t)
	x := newTwo(t, ModeAuto, true)
	x.announce(t)
	serve(t, x.member[1], x.address[1], "m1")
	must(t, x.net[0].SetServices(serviceRange, []Service{service(1, 11), service(0, 11)}))
	asks(t, "a member", x.member[0], atService, map[string]netip.Addr{"m1": x.address[0]})
	asks(t, "the host", x.path[0], atService, map[string]netip.Addr{"m1": x.host[0]})
	asks(t, "the host, by its port", x.path[0], netip.AddrPortFrom(x.host[0], 30080), map[string]netip.Addr{"m1": x.host[0]})
}
