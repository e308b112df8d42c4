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

	"github.com/stead-project/stead/spec"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// two are hosts with members 0 and 1: on one link, or with a router between them.
type two struct {
	net     [2]*Network
	path    [2]string
	host    [2]netip.Addr
	member  [2]string
	address [2]netip.Addr
}

// cable lays a link between two namespaces and gives its ends addresses of /24.
func cable(t *testing.T, name, a string, addrA netip.Addr, b string, addrB netip.Addr) {
	t.Helper()
	ha, hb := handle(t, a), handle(t, b)
	ns, err := netns.GetFromPath(b)
	must(t, err)
	defer ns.Close()
	must(t, ha.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, TxQLen: -1}, PeerName: name, PeerNamespace: netlink.NsFd(ns)}))
	for _, end := range []struct {
		h    *netlink.Handle
		addr netip.Addr
	}{{ha, addrA}, {hb, addrB}} {
		link, err := end.h.LinkByName(name)
		must(t, err)
		must(t, end.h.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: end.addr.AsSlice(), Mask: net.CIDRMask(24, 32)}}))
		must(t, end.h.LinkSetUp(link))
	}
}

func newTwo(t *testing.T, mode string, far bool, edits ...func(*Config)) *two {
	t.Helper()
	x := &two{host: [2]netip.Addr{netip.MustParseAddr("172.31.9.1"), netip.MustParseAddr("172.31.9.2")}}
	if far {
		x.host[1] = netip.MustParseAddr("172.31.10.1")
	}
	for i, name := range []spec.NodeName{"n1", "n2"} {
		x.net[i], x.path[i] = host(t, func(c *Config) {
			c.Node, c.Mode = name, mode
			for _, edit := range edits {
				edit(c)
			}
		})
	}
	if far {
		router := namespace(t)
		gates := [2]netip.Addr{netip.MustParseAddr("172.31.9.9"), netip.MustParseAddr("172.31.10.9")}
		for i, name := range []string{"up0", "up1"} {
			cable(t, name, x.path[i], x.host[i], router, gates[i])
		}
		rt := &node{cfg: Config{NetNS: router}}
		must(t, rt.sysctl("net/ipv4/ip_forward", "1"))
		for i := range x.path {
			h := handle(t, x.path[i])
			must(t, h.RouteAdd(&netlink.Route{Dst: hostPrefix(x.host[1-i]), Gw: gates[i].AsSlice()}))
		}
	} else {
		cable(t, "up0", x.path[0], x.host[0], x.path[1], x.host[1])
	}
	for i := range x.net {
		must(t, x.net[i].Setup(t.Context()))
		x.member[i], x.address[i] = attach(t, x.net[i], i)
	}
	return x
}

// announce tells each host of the other's member.
func (x *two) announce(t *testing.T) {
	t.Helper()
	for i := range x.net {
		must(t, x.net[i].Reach(t.Context(), map[netip.Addr]Location{x.address[1-i]: {Host: x.host[1-i]}}))
	}
}

// tunnelled reports whether a host has its end of the tunnel.
func (x *two) tunnelled(t *testing.T, i int) bool {
	t.Helper()
	_, err := handle(t, x.path[i]).LinkByName(x.net[i].tunnelName())
	if err != nil && !isGone(err) {
		t.Fatal(err)
	}
	return err == nil
}

// remoteRoutes are the routes to members elsewhere on a host.
func (x *two) remoteRoutes(t *testing.T, i int) (list []netlink.Route) {
	t.Helper()
	all, err := routes(handle(t, x.path[i]), 0)
	must(t, err)
	for _, r := range all {
		if x.net[i].isRemoteRoute(r) {
			list = append(list, r)
		}
	}
	return list
}

func TestMembersOfTwoHostsReachEachOther(t *testing.T) {
	for _, tt := range []struct {
		name, mode  string
		far, tunnel bool
	}{
		{"on one link by routes", ModeAuto, false, false},
		{"on one link through the tunnel", ModeVXLAN, false, true},
		{"over a router through the tunnel", ModeAuto, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newTwo(t, tt.mode, tt.far)
			for i := range x.member {
				echo(t, x.member[i], x.address[i])
			}
			if _, err := dial(x.member[0], x.address[1]); err == nil {
				t.Fatal("reached before anybody told where it is")
			}
			x.announce(t)
			for i := range x.member {
				reaches(t, x.member[i], x.address[1-i], x.address[i])
				reaches(t, x.path[i], x.address[1-i], x.host[i])
				if x.tunnelled(t, i) != tt.tunnel {
					t.Errorf("host %d has a tunnel: %v; want %v", i, !tt.tunnel, tt.tunnel)
				}
			}
			carriesMuch(t, x)
		})
	}
}

// carriesMuch sends what needs many full packets from one member to the other: the way
// between them may carry smaller ones than their links.
func carriesMuch(t *testing.T, x *two) {
	t.Helper()
	const size = 4 << 20
	var l net.Listener
	must(t, inNamespace(x.member[1], func() (err error) {
		l, err = net.Listen("tcp4", netip.AddrPortFrom(x.address[1], 9).String())
		return err
	}))
	defer l.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		n, _ := io.Copy(io.Discard, c)
		got <- n
	}()
	must(t, inNamespace(x.member[0], func() error {
		c, err := net.DialTimeout("tcp4", netip.AddrPortFrom(x.address[1], 9).String(), time.Minute)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		_, err = c.Write(make([]byte, size))
		return err
	}))
	if n := <-got; n != size {
		t.Errorf("%d of %d bytes came over", n, size)
	}
}

func TestWaysToMembersElsewhereComeBackAndGo(t *testing.T) {
	for _, mode := range []string{ModeRoutes, ModeVXLAN} {
		t.Run(mode, func(t *testing.T) {
			x := newTwo(t, mode, false)
			before := picture(t, x.path[0])
			echo(t, x.member[1], x.address[1])
			x.announce(t)
			h := handle(t, x.path[0])

			for _, r := range x.remoteRoutes(t, 0) {
				must(t, h.RouteDel(&r))
			}
			must(t, x.net[0].Setup(t.Context()))
			reaches(t, x.member[0], x.address[1], x.address[0])
			if mode == ModeVXLAN {
				link, err := h.LinkByName(x.net[0].tunnelName())
				must(t, err)
				must(t, h.LinkDel(link))
				must(t, x.net[0].Setup(t.Context()))
				reaches(t, x.member[0], x.address[1], x.address[0])
			}
			whole := picture(t, x.path[0])
			must(t, x.net[0].Setup(t.Context()))
			same(t, "a repair without need", whole, picture(t, x.path[0]))

			// The next process knows nobody yet, and takes nothing away.
			next, err := New(x.net[0].cfg)
			must(t, err)
			must(t, next.Setup(t.Context()))
			same(t, "the next process", whole, picture(t, x.path[0]))

			must(t, next.Reach(t.Context(), nil))
			if got := x.remoteRoutes(t, 0); len(got) != 0 {
				t.Errorf("%v are left of a member that is nowhere", got)
			}
			if _, err := dial(x.member[0], x.address[1]); err == nil {
				t.Error("a member that is nowhere is reached")
			}
			must(t, next.tunnel.remove(h))
			same(t, "without members elsewhere", before, picture(t, x.path[0]))
			x.announce(t)
			must(t, x.net[0].Teardown(t.Context()))
			if left := x.remoteRoutes(t, 0); len(left) != 0 || x.tunnelled(t, 0) {
				t.Errorf("after the teardown there are %v", left)
			}
		})
	}
}

// TestAMemberThatMovesIsReachedWhereItIs: with its address, whoever hears of it first.
func TestAMemberThatMovesIsReachedWhereItIs(t *testing.T) {
	x := newTwo(t, ModeAuto, false)
	x.announce(t)
	must(t, x.net[1].Detach(t.Context(), member(1)))
	path := namespace(t)
	must(t, x.net[0].Attach(t.Context(), member(1), path, x.address[1])) // while it is told to be elsewhere
	echo(t, path, x.address[1])
	reaches(t, x.member[0], x.address[1], x.address[0])
	must(t, x.net[0].Reach(t.Context(), map[netip.Addr]Location{}))
	must(t, x.net[1].Reach(t.Context(), map[netip.Addr]Location{x.address[1]: {Host: x.host[0]}, x.address[0]: {Host: x.host[0]}}))
	reaches(t, x.member[0], x.address[1], x.address[0])
	reaches(t, x.path[1], x.address[1], x.host[1])
}

func TestAHostThatCannotBeReachedIsNamedAndHoldsNobodyUp(t *testing.T) {
	x := newTwo(t, ModeRoutes, true)
	nowhere := netip.MustParseAddr("172.31.77.7")
	for _, tt := range []struct {
		host netip.Addr
		want string
	}{
		{nowhere, "reach members of host 172.31.77.7: no route to it"},
		{x.host[1], "reach members of host 172.31.10.1: it is on none of this host's links"},
		{x.host[0], "reach members of host 172.31.9.1: that is an address of this host"},
	} {
		err := x.net[0].Reach(t.Context(), map[netip.Addr]Location{address(77): {Host: tt.host}, address(78): {Host: tt.host}})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Count(err.Error(), "reach members of host") != 1 {
			t.Errorf("got %v; want once %s", err, tt.want)
		}
	}
	near := newTwo(t, ModeAuto, false)
	echo(t, near.member[1], near.address[1])
	err := near.net[0].Reach(t.Context(), map[netip.Addr]Location{near.address[1]: {Host: near.host[1]}, address(77): {Host: nowhere}})
	if err == nil {
		t.Error("a host that is nowhere is not told")
	}
	must(t, near.net[1].Reach(t.Context(), map[netip.Addr]Location{near.address[0]: {Host: near.host[0]}}))
	reaches(t, near.member[0], near.address[1], near.address[0])
}

func TestOverlapsWithWaysToMembersAreOurOwn(t *testing.T) {
	x := newTwo(t, ModeVXLAN, false)
	x.announce(t)
	if _, err := x.net[0].Check(t.Context()); err != nil {
		t.Errorf("a check finds its own: %v", err)
	}
	settings, err := x.net[0].Check(t.Context())
	must(t, err)
	if !slices.ContainsFunc(settings, func(s Setting) bool {
		return s.Kind == "link" && strings.Contains(s.What, fmt.Sprint("VXLAN ", x.net[0].vni()))
	}) {
		t.Errorf("%v does not tell of the tunnel", settings)
	}
	other, err := New(Config{ClusterID: "0123456789abcdef", Node: "x", NetNS: x.path[0]})
	must(t, err)
	if err := other.Setup(t.Context()); !errors.Is(err, ErrOverlap) {
		t.Errorf("another cluster of the same range: %v", err)
	}
}
