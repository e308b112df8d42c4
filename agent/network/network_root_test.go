package network

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestMembersHostAndGatewayReachEachOther(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, addrA := attach(t, n, 0)
	b, addrB := attach(t, n, 1)
	echo(t, a, addrA)
	echo(t, b, addrB)
	echo(t, h, n.cfg.Gateway)
	reaches(t, b, addrA, addrB)
	reaches(t, a, addrB, addrA)
	reaches(t, a, addrA, addrA)
	reaches(t, h, addrA, n.cfg.Gateway)
	reaches(t, a, n.cfg.Gateway, addrA)
	ids, err := n.Attached(t.Context())
	if want := []spec.Identity{member(0), member(1)}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("attached: %v, %v; want %v", ids, err, want)
	}
}

func TestAStoppedMemberIsUnreachableAtOnceAndReturnsAtOnce(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, addrA := attach(t, n, 0)
	b, addrB := attach(t, n, 1)
	echo(t, a, addrA)
	reaches(t, b, addrA, addrB) // warms every cache
	reaches(t, h, addrA, n.cfg.Gateway)

	before := picture(t, h)
	must(t, n.Detach(t.Context(), member(0)))
	for _, from := range []string{b, h} {
		began := time.Now()
		_, err := dial(from, addrA)
		if !errors.Is(err, unix.EHOSTUNREACH) || time.Since(began) > time.Minute {
			t.Errorf("dial a stopped member: %v after %v, want unreachable at once", err, time.Since(began))
		}
	}
	for _, line := range picture(t, h) {
		if strings.Contains(line, n.linkName(member(0))) || strings.Contains(line, addrA.String()+"/32") {
			t.Errorf("left after detach: %s", line)
		}
	}
	must(t, n.Detach(t.Context(), member(0)))

	again := namespace(t)
	must(t, n.Attach(t.Context(), member(0), again, addrA))
	echo(t, again, addrA)
	reaches(t, b, addrA, addrB)
	reaches(t, h, addrA, n.cfg.Gateway)
	if after := picture(t, h); len(after) != len(before) {
		same(t, "the host after the member's return", before, after)
	}
}

func TestEverythingMayBeRepeated(t *testing.T) {
	n, h := host(t, nil)
	found := picture(t, h)
	must(t, n.Setup(t.Context()))
	a, addrA := attach(t, n, 0)
	host, inside := picture(t, h), picture(t, a)
	again, err := New(n.cfg) // the next process
	must(t, err)
	for range 2 {
		must(t, again.Setup(t.Context()))
		must(t, again.Attach(t.Context(), member(0), a, addrA))
	}
	same(t, "the host after repeating", host, picture(t, h))
	same(t, "the member after repeating", inside, picture(t, a))

	settings, err := again.Check(t.Context())
	if err != nil || len(settings) != 8 {
		t.Errorf("check: %v, %v; want 8 settings", settings, err)
	}
	for _, s := range settings {
		if !s.Set {
			t.Errorf("check says that %s %s is missing", s.Kind, s.What)
		}
	}
	must(t, again.Teardown(t.Context()))
	must(t, again.Teardown(t.Context()))
	same(t, "the host after teardown", found, picture(t, h))
	settings, err = again.Check(t.Context())
	if err != nil || len(settings) != 5 || settings[0].Set || settings[1].Set || settings[3].Set || settings[4].Set {
		t.Errorf("check after teardown: %v, %v; want nothing of ours", settings, err)
	}
}

func TestOverlapIsRefusedAndNothingChanged(t *testing.T) {
	bridge := func(t *testing.T, h *netlink.Handle, addr string) netlink.Link {
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
		must(t, h.LinkAdd(br))
		must(t, h.LinkSetUp(br))
		a, err := netlink.ParseAddr(addr)
		must(t, err)
		must(t, h.AddrAdd(br, a))
		return br
	}
	via := func(t *testing.T, h *netlink.Handle, dst string, table int) {
		br := bridge(t, h, "192.0.2.1/24")
		_, n, err := net.ParseCIDR(dst)
		must(t, err)
		must(t, h.RouteAdd(&netlink.Route{LinkIndex: br.Attrs().Index, Dst: n, Gw: net.IPv4(192, 0, 2, 9), Table: table, Protocol: unix.RTPROT_STATIC}))
	}
	tests := []struct {
		name string
		make func(*testing.T, *netlink.Handle)
		want []string // in the error; none: no error
	}{
		{"a network of the host's within ours", func(t *testing.T, h *netlink.Handle) { bridge(t, h, "10.88.7.1/24") }, []string{"10.88.7.1/24", "br0", "--cidr"}},
		{"ours within a network of the host's", func(t *testing.T, h *netlink.Handle) { bridge(t, h, "10.1.1.1/8") }, []string{"10.1.1.1/8", "br0", "--cidr"}},
		{"a route", func(t *testing.T, h *netlink.Handle) { via(t, h, "10.88.128.0/17", 0) }, []string{"10.88.128.0/17 via 192.0.2.9 dev br0", "--cidr"}},
		{"a route that holds ours", func(t *testing.T, h *netlink.Handle) { via(t, h, "10.0.0.0/8", 0) }, []string{"10.0.0.0/8", "--cidr"}},
		{"a route of another table", func(t *testing.T, h *netlink.Handle) { via(t, h, "10.88.0.0/16", 52) }, []string{"table 52", "--cidr"}},
		{"a route of our protocol that is another's", func(t *testing.T, h *netlink.Handle) {
			br := bridge(t, h, "192.0.2.1/24")
			must(t, h.RouteAdd(&netlink.Route{LinkIndex: br.Attrs().Index, Dst: hostPrefix(address(10)), Scope: netlink.SCOPE_LINK, Protocol: protocol}))
		}, []string{"10.88.0.10/32 dev br0 proto 83", "--cidr"}},
		{"another node's unreachable route", func(t *testing.T, h *netlink.Handle) {
			must(t, h.RouteAdd(&netlink.Route{Dst: ipNet(netip.MustParsePrefix(DefaultCIDR)), Type: unix.RTN_UNREACHABLE, Protocol: protocol, Priority: 1<<30 | 1}))
		}, []string{"10.88.0.0/16 proto 83", "--cidr"}},
		{"the gateway is somebody's", func(t *testing.T, h *netlink.Handle) { bridge(t, h, "169.254.1.1/16") }, []string{"gateway 169.254.1.1", "br0"}},
		{"a default route is none", func(t *testing.T, h *netlink.Handle) { via(t, h, "0.0.0.0/0", 0) }, nil},
		{"a VPN's half of everything is none", func(t *testing.T, h *netlink.Handle) { via(t, h, "0.0.0.0/1", 0) }, nil},
		{"a link-local network is none", func(t *testing.T, h *netlink.Handle) { bridge(t, h, "169.254.9.9/16") }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, h := host(t, nil)
			tt.make(t, handle(t, h))
			before := picture(t, h)
			err := n.Setup(t.Context())
			if tt.want == nil {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !errors.Is(err, ErrOverlap) {
				t.Fatalf("got %v, want an overlap", err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v does not name %q", err, w)
				}
			}
			if err := n.Attach(t.Context(), member(0), namespace(t), address(10)); err == nil {
				t.Error("a member was attached in spite of it")
			}
			if on, err := n.sysctlIs("net/ipv4/ip_forward", "0"); err != nil || !on {
				t.Errorf("forwarding was switched on (%v)", err)
			}
			same(t, "the host after the refusal", before, picture(t, h))
		})
	}
}

func TestTwoNodesOfOneNamespaceLeaveEachOtherAlone(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, addrA := attach(t, n, 0)
	echo(t, a, addrA)
	before := picture(t, h)

	c := n.cfg
	c.Node = "n2"
	second, err := New(c)
	must(t, err)
	if err := second.Setup(t.Context()); !errors.Is(err, ErrOverlap) {
		t.Errorf("a second node on the same range: %v, want an overlap", err)
	}
	same(t, "the first node after the refusal", before, picture(t, h))

	c.CIDR, c.Gateway = netip.MustParsePrefix("10.99.0.0/24"), netip.MustParseAddr("169.254.1.2")
	second, err = New(c)
	must(t, err)
	must(t, second.Setup(t.Context()))
	other := spec.Identity{Namespace: "default", Set: "other"}
	must(t, second.Attach(t.Context(), other, namespace(t), netip.MustParseAddr("10.99.0.1")))
	if ids, err := n.Attached(t.Context()); err != nil || !slices.Equal(ids, []spec.Identity{member(0)}) {
		t.Errorf("the first node lists %v, %v", ids, err)
	}
	must(t, second.Teardown(t.Context()))
	same(t, "the first node after the second has gone", before, picture(t, h))
	reaches(t, h, addrA, n.cfg.Gateway)
}

func TestNoNamespaceIsEnteredOnTheMainThread(t *testing.T) {
	needsRoot(t)
	const threads = 50 // at once, so that the main one would be among them
	var here, all sync.WaitGroup
	here.Add(threads)
	for range threads {
		all.Go(func() {
			if err := inNamespace("/proc/thread-self/ns/net", func() error {
				if unix.Gettid() == unix.Getpid() {
					t.Error("the main thread is in a foreign namespace for ever")
				}
				here.Done()
				here.Wait()
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
