package network

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestAServiceLeadsToItsEndpoints(t *testing.T) {
	x := withServices(t)
	x.lead(t, service(1, 10, 11, 15), service(2, 15))
	gateway := x.net[0].cfg.Gateway
	asks(t, "a member", x.neighbour, atService, map[string]netip.Addr{"m0": x.addr, "m1": x.addr, "m5": x.addr})
	asks(t, "an endpoint", x.member[0], atService, map[string]netip.Addr{"m0": gateway, "m1": x.address[0], "m5": x.address[0]})
	asks(t, "the host", x.path[0], atService, map[string]netip.Addr{"m0": gateway, "m1": x.host[0], "m5": gateway})
	asks(t, "a member", x.neighbour, netip.MustParseAddrPort("10.96.0.2:80"), map[string]netip.Addr{"m5": x.addr})

	x.lead(t, service(1, 11), service(3, 10))
	asks(t, "a member", x.neighbour, atService, map[string]netip.Addr{"m1": x.addr})
	asks(t, "a member", x.neighbour, netip.MustParseAddrPort("10.96.0.3:80"), map[string]netip.Addr{"m0": x.addr})
	refuses(t, "a member, a service that is gone", x.neighbour, netip.MustParseAddrPort("10.96.0.2:80"))
}

func TestAServiceOfUDPBesideOneOfTCP(t *testing.T) {
	x := withServices(t)
	x.lead(t, service(1, 10), service(1, 15).with(func(s *Service) { s.Protocol = "UDP" }))
	asks(t, "a member", x.neighbour, atService, map[string]netip.Addr{"m0": x.addr})
	c, err := dialFrom(x.neighbour, "udp4", atService, time.Minute)
	must(t, err)
	defer c.Close()
	if got := chat(t, c); got != "m5 from "+x.addr.String() {
		t.Errorf("UDP: %q", got)
	}
}

// rejects fails the test unless connections of TCP and UDP are rejected, and soon.
func rejects(t *testing.T, who, path string, to netip.AddrPort) {
	t.Helper()
	began := time.Now()
	refuses(t, who, path, to)
	c, err := dialFrom(path, "udp4", to, time.Minute)
	must(t, err)
	defer c.Close()
	refusesUDP(t, who+" sends to "+to.String(), c)
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("%s was refused after %s", who, d)
	}
}

func TestWhatLeadsNowhereIsRejectedAndNeverLeavesTheHost(t *testing.T) {
	x := withServices(t)
	// Without a range the address of another machine is reached over the default route.
	elsewhere := netip.MustParseAddr("10.96.0.9")
	other, h := handle(t, x.path[1]), handle(t, x.path[0])
	lo, err := other.LinkByName("lo")
	must(t, err)
	must(t, other.AddrAdd(lo, &netlink.Addr{IPNet: hostPrefix(elsewhere)}))
	must(t, h.RouteAdd(&netlink.Route{Gw: x.host[1].AsSlice()}))
	echo(t, x.path[1], elsewhere)
	reaches(t, x.path[0], elsewhere, x.host[0])

	x.lead(t) // before the first service
	atElsewhere := netip.AddrPortFrom(elsewhere, 7)
	for who, path := range map[string]string{"a member": x.neighbour, "the host": x.path[0]} {
		rejects(t, who, path, atElsewhere)
	}
	x.lead(t, service(1), service(1).with(func(s *Service) { s.Protocol = "UDP" }), service(2, 10))
	for who, path := range map[string]string{"a member": x.neighbour, "the host": x.path[0]} {
		rejects(t, who+", without endpoints", path, atService)
		rejects(t, who+", another port", path, netip.MustParseAddrPort("10.96.0.2:81"))
		rejects(t, who+", another address", path, atElsewhere)
	}
	// Without the table, and then without the route to lo, it is not answered either.
	must(t, x.net[0].dropTable(x.net[0].serviceTable()))
	for who, path := range map[string]string{"a member": x.neighbour, "the host": x.path[0]} {
		if _, err := dialFrom(path, "tcp4", atElsewhere, 2*time.Second); err == nil {
			t.Errorf("%s: the packet left the host", who)
		}
	}
	routes := x.net[0].services.serviceRoutes(0)
	must(t, h.RouteDel(routes[1]))
	for who, path := range map[string]string{"a member": x.neighbour, "the host": x.path[0]} {
		if _, err := dialFrom(path, "tcp4", atElsewhere, time.Minute); !errors.Is(err, unix.EHOSTUNREACH) {
			t.Errorf("%s, by the unreachable route: %v", who, err)
		}
	}
}

func TestAConnectionSurvivesUnrelatedChanges(t *testing.T) {
	x := withServices(t)
	x.lead(t, service(1, 10, 11, 15))
	c, err := dialFrom(x.neighbour, "tcp4", atService, time.Minute)
	must(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Minute))
	lines := bufio.NewReader(c)
	hello, err := lines.ReadString('\n')
	must(t, err)
	talk := func(when string) {
		t.Helper()
		_, err := fmt.Fprintln(c, when)
		must(t, err)
		if got, err := lines.ReadString('\n'); err != nil || got != when+"\n" {
			t.Fatalf("%s: %q, %v", when, got, err)
		}
	}
	for i := range 100 {
		x.lead(t, service(1, 10, 11, 15), service(byte(2+i%7), 10, 11), service(0, byte(10+i)))
		talk(fmt.Sprint("change ", i))
	}
	// Its own endpoint is taken out, and others come: it stays where it is.
	rest := []byte{}
	for name, last := range map[string]byte{"m0": 10, "m1": 11, "m5": 15} {
		if !strings.HasPrefix(hello, name) {
			rest = append(rest, last)
		}
	}
	x.lead(t, service(1, rest...))
	talk("without its endpoint")
	for range 20 {
		if name, _, err := ask(x.neighbour, atService); err != nil || strings.HasPrefix(hello, name) {
			t.Errorf("a new connection is led to %q, %v, which was taken out", name, err)
		}
	}
}

func TestAConnectionOfUDPIsLedToWhatIsThere(t *testing.T) {
	x := withServices(t)
	udp := func(s *Service) { s.Protocol = "UDP" }
	c, err := dialFrom(x.neighbour, "udp4", atService, time.Minute)
	must(t, err)
	defer c.Close()
	x.lead(t, service(1, 10).with(udp))
	ledTo(t, "first", c, "m0 from "+x.addr.String())
	x.lead(t, service(1, 15).with(udp))
	ledTo(t, "after its endpoint has gone", c, "m5 from "+x.addr.String())
	x.lead(t, service(1).with(udp))
	refusesUDP(t, "after the last endpoint has gone", c)
	x.lead(t, service(1, 11).with(udp))
	ledTo(t, "with an endpoint on another host", c, "m1 from "+x.addr.String())
	x.lead(t)
	refusesUDP(t, "after the service has gone", c)

	// A client of a node port that began before there was one.
	out, err := dialFrom(x.client, "udp4", nodePort, time.Minute)
	must(t, err)
	defer out.Close()
	refusesUDP(t, "before there is a node port", out)
	x.lead(t, service(0, 11).with(udp))
	ledTo(t, "by the node port", out, "m1 from "+x.host[0].String())
	x.lead(t)
	refusesUDP(t, "after the node port has gone", out)
}

// ledTo sends until the answer is the one that is wanted: an answer of before may come late.
func ledTo(t *testing.T, when string, c net.Conn, want string) {
	t.Helper()
	var got string
	for range 10 {
		got = chat(t, c)
		if got == want {
			return
		}
	}
	t.Errorf("%s: %q, want %q", when, got, want)
}

// refusesUDP sends until that is refused: to the host itself already by the call that sends.
func refusesUDP(t *testing.T, when string, c net.Conn) {
	t.Helper()
	var got string
	for range 10 {
		_, err := c.Write([]byte("x"))
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ECONNREFUSED) {
			return
		}
		must(t, err)
		b := make([]byte, 64)
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := c.Read(b)
		if errors.Is(err, unix.ECONNREFUSED) {
			return
		}
		got = fmt.Sprint(string(b[:n]), err)
	}
	t.Errorf("%s: %q, want a refusal", when, got)
}

func TestServicesAreRepairedAndOutliveTheProcess(t *testing.T) {
	x := withServices(t)
	n, h := x.net[0], handle(t, x.path[0])
	foreign := &nftables.Table{Name: "other", Family: nftables.TableFamilyIPv4}
	must(t, n.nft(func(c *nftables.Conn) error { c.AddTable(foreign); return c.Flush() }))
	x.lead(t, service(1, 10).with(func(s *Service) { s.Affinity = time.Hour }), service(0, 10))
	asks(t, "a member", x.neighbour, atService, map[string]netip.Addr{"m0": x.addr})
	whole := picture(t, x.path[0])
	affine := service(1, 10).with(func(s *Service) { s.Affinity = time.Hour })
	set := &nftables.Set{Table: n.serviceTable(), Name: setServices, IsMap: true}
	for name, harm := range map[string]func(){
		"the table":  func() { must(t, n.dropTable(n.serviceTable())) },
		"the routes": func() { must(t, h.RouteDel(n.services.serviceRoutes(0)[1])) },
		"an element": func() {
			must(t, n.nft(func(c *nftables.Conn) error {
				return flushed(c, c.SetDeleteElements(set, []nftables.SetElement{{Key: []byte(service(1).id().bytes())}}))
			}))
		},
		"another's": func() {
			must(t, n.nft(func(c *nftables.Conn) error {
				return flushed(c, c.SetAddElements(set, []nftables.SetElement{{Key: []byte(service(9).id().bytes()), VerdictData: verdict(refuse)}}))
			}))
		},
		"a rule": func() {
			must(t, n.nft(func(c *nftables.Conn) error { return dropOne(c, n.serviceTable(), "prerouting") }))
		},
		"a pick's": func() {
			must(t, n.nft(func(c *nftables.Conn) error {
				return dropOne(c, n.serviceTable(), pickOf(affine, affine.Endpoints).name())
			}))
		},
		"all of ours": func() { must(t, n.dropTable(n.serviceTable())); must(t, n.dropTable(n.table())) },
	} {
		harm()
		must(t, n.Setup(t.Context()))
		asks(t, "a member, after "+name+" went", x.neighbour, atService, map[string]netip.Addr{"m0": x.addr})
		asks(t, "the host, after "+name+" went", x.path[0], atService, map[string]netip.Addr{"m0": n.cfg.Gateway})
		same(t, "after "+name+" went", whole, picture(t, x.path[0]))
	}

	// The process dies; the next one leaves what is whole, with what it remembers.
	before := generation(t, n)
	next, err := New(n.cfg)
	must(t, err)
	must(t, next.Setup(t.Context()))
	asks(t, "a member, before the first call", x.neighbour, atService, map[string]netip.Addr{"m0": x.addr})
	must(t, next.SetServices(serviceRange, []Service{service(1, 10).with(func(s *Service) { s.Affinity = time.Hour }), service(0, 10)}))
	same(t, "after the next process", whole, picture(t, x.path[0]))
	if now := generation(t, n); now != before {
		t.Errorf("rule %d before, and %d after the next process: the table was replaced", before, now)
	}
	must(t, next.SetServices(netip.MustParsePrefix("10.97.0.0/16"), nil))
	rejects(t, "a member, another range", x.neighbour, netip.MustParseAddrPort("10.97.0.1:80"))
	for _, line := range picture(t, x.path[0]) {
		if strings.Contains(line, "10.96.") {
			t.Errorf("left of the range before: %s", line)
		}
	}
}

func verdict(chain string) *expr.Verdict { return &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain} }

func flushed(c *nftables.Conn, err error) error { return errors.Join(err, c.Flush()) }

// dropOne removes the first rule of a chain.
func dropOne(c *nftables.Conn, table *nftables.Table, chain string) error {
	rules, err := rulesIn(c, table, chain)
	if err != nil {
		return err
	}
	rules[0].Table = table
	return flushed(c, c.DelRule(rules[0]))
}

// generation is the handle of a rule: another one was made again.
func generation(t *testing.T, n *Network) (handle uint64) {
	t.Helper()
	must(t, n.nft(func(c *nftables.Conn) error {
		rules, err := rulesIn(c, n.serviceTable(), "prerouting")
		if err == nil {
			handle = rules[0].Handle
		}
		return err
	}))
	return handle
}
