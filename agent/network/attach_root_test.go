package network

import (
	"errors"
	"net/netip"
	"os"
	"sync"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestRepairPutsBackWhatIsMissing(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, addrA := attach(t, n, 0)
	b, addrB := attach(t, n, 1)
	echo(t, b, addrB)
	hh := handle(t, h)
	before := picture(t, h)
	link := func(ordinal int) netlink.Link {
		l, err := hh.LinkByName(n.linkName(member(ordinal)))
		must(t, err)
		return l
	}
	damage := map[string]func(){
		"nothing":               func() {},
		"the unreachable route": func() { must(t, hh.RouteDel(n.unreachable())) },
		"a member's route": func() {
			must(t, hh.RouteDel(&netlink.Route{Dst: hostPrefix(addrB), LinkIndex: link(1).Attrs().Index, Scope: netlink.SCOPE_LINK}))
		},
		"the gateway": func() {
			lo, err := hh.LinkByName("lo")
			must(t, err)
			must(t, hh.AddrDel(lo, n.gateway()))
		},
		"the table":       func() { must(t, n.dropTable(n.table())) },
		"a link was down": func() { must(t, hh.LinkSetDown(link(1))) },
		"the MTU":         func() { must(t, hh.LinkSetMTU(link(0), 1300)) },
		"the member's default route": func() {
			inside := handle(t, a)
			must(t, inside.RouteDel(&netlink.Route{Dst: ipNet(netip.MustParsePrefix("0.0.0.0/0")), Gw: n.cfg.Gateway.AsSlice()}))
		},
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			harm()
			must(t, n.Repair(t.Context(), []Assignment{{ID: member(0), NetNS: a, Address: addrA}, {ID: member(1), NetNS: b, Address: addrB}}))
			same(t, "the host after repair", before, picture(t, h))
			reaches(t, a, addrB, addrA)
			reaches(t, h, addrB, n.cfg.Gateway)
		})
	}
}

func TestAttachIntoANewNamespace(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	b, addrB := attach(t, n, 1)
	old, addrA := attach(t, n, 0)

	// The old namespace is still pinned.
	next := namespace(t)
	must(t, n.Attach(t.Context(), member(0), next, addrA))
	echo(t, next, addrA)
	reaches(t, b, addrA, addrB)
	if _, err := handle(t, old).LinkByName("eth0"); !isGone(err) {
		t.Errorf("the old namespace still has eth0 (%v)", err)
	}
	// It was unpinned just now; the kernel removes its link later.
	unpin(t, old)
	another := namespace(t)
	must(t, n.Attach(t.Context(), member(0), another, addrA))
	echo(t, another, addrA)
	reaches(t, b, addrA, addrB)

	// A crash left the link without its alias.
	hh := handle(t, h)
	l, err := hh.LinkByName(n.linkName(member(0)))
	must(t, err)
	must(t, hh.LinkSetAlias(l, ""))
	must(t, n.Attach(t.Context(), member(0), another, addrA))
	if ids, err := n.Attached(t.Context()); err != nil || len(ids) != 2 {
		t.Errorf("attached: %v, %v; want both", ids, err)
	}
	// Another address of the same identity.
	must(t, n.Attach(t.Context(), member(0), another, address(99)))
	echo(t, another, address(99))
	reaches(t, b, address(99), addrB)
	if _, err := dial(b, addrA); !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("dial the old address: %v, want unreachable", err)
	}
	// Somebody flushed our routes: no member lives without the unreachable one.
	must(t, hh.RouteDel(n.unreachable()))
	must(t, n.Attach(t.Context(), member(0), another, address(99)))
	if _, err := dial(b, addrA); !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("dial an address that nobody has: %v, want unreachable", err)
	}
}

func TestAttachRefuses(t *testing.T) {
	n, h := host(t, nil)
	fresh := namespace(t)
	if err := n.Attach(t.Context(), member(0), fresh, address(10)); err == nil {
		t.Error("attached before setup: nothing would cover the range")
	}
	must(t, n.Setup(t.Context()))
	a, addrA := attach(t, n, 0)
	echo(t, a, addrA)
	before := picture(t, h)

	if err := n.Attach(t.Context(), member(1), fresh, addrA); !errors.Is(err, runtime.ErrExists) {
		t.Errorf("a second member at the same address: %v, want ErrExists", err)
	}
	if err := n.Attach(t.Context(), member(1), h, address(11)); err == nil {
		t.Error("the host's own namespace was taken for a member's")
	}
	if err := n.Attach(t.Context(), member(1), fresh, netip.MustParseAddr("10.89.0.1")); err == nil {
		t.Error("an address out of the range was given")
	}
	if err := n.Attach(t.Context(), member(1), fresh+".absent", address(11)); err == nil {
		t.Error("a namespace that is not there was attached")
	}
	same(t, "the host after refusals", before, picture(t, h))

	foreign := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: n.linkName(member(1))}}
	hh := handle(t, h)
	must(t, hh.LinkAdd(foreign))
	must(t, hh.LinkSetAlias(foreign, "stead:ffffffff:n1:default/x-0"))
	if err := n.Attach(t.Context(), member(1), fresh, address(11)); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("somebody else's link: %v, want ErrForeign", err)
	}
	if err := n.Detach(t.Context(), member(1)); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("detach of somebody else's link: %v, want ErrForeign", err)
	}
	reaches(t, h, addrA, n.cfg.Gateway)
}

func TestNobodyAsksForAMAC(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, addrA := attach(t, n, 0)
	b, addrB := attach(t, n, 1)
	for _, path := range []string{h, a, b} { // nobody answers ARP, as on hosts of load balancers
		must(t, inNamespace(path, func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/all/arp_ignore", []byte("8"), 0) }))
	}
	echo(t, a, addrA)
	reaches(t, b, addrA, addrB)
	reaches(t, h, addrA, n.cfg.Gateway)
}

func TestManyAtOnce(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	before := picture(t, h)
	const members = 20
	paths := make([]string, members)
	for i := range paths {
		paths[i] = namespace(t)
	}
	each := func(f func(i int) error) {
		t.Helper()
		errs := make([]error, members)
		var wg sync.WaitGroup
		for i := range members {
			wg.Go(func() { errs[i] = f(i) })
		}
		wg.Wait()
		must(t, errors.Join(errs...))
	}
	each(func(i int) error { return n.Attach(t.Context(), member(i), paths[i], address(byte(10+i))) })
	echo(t, paths[0], address(10))
	for i := 1; i < members; i++ {
		reaches(t, paths[i], address(10), address(byte(10+i)))
	}
	each(func(i int) error { return n.Detach(t.Context(), member(i)) })
	same(t, "the host after all have gone", before, picture(t, h))
}
