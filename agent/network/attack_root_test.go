package network

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// What members, and strangers on the hosts' network, try.

// six writes down what a namespace has of IPv6 beside lo: addresses and routes.
func six(t *testing.T, path string) (lines []string) {
	t.Helper()
	h := handle(t, path)
	all, err := links(h)
	must(t, err)
	for _, l := range all {
		if l.Attrs().Name == "lo" {
			continue
		}
		addrs, err := listed("addresses", func() ([]netlink.Addr, error) { return h.AddrList(l, netlink.FAMILY_V6) })
		must(t, err)
		for _, a := range addrs {
			lines = append(lines, fmt.Sprint(l.Attrs().Name, " address ", a.IPNet))
		}
		routes, err := listed("routes", func() ([]netlink.Route, error) { return h.RouteList(l, netlink.FAMILY_V6) })
		must(t, err)
		for _, r := range routes {
			lines = append(lines, fmt.Sprint(l.Attrs().Name, " route to ", r.Dst, " via ", r.Gw))
		}
	}
	return lines
}

// sum is the internet checksum.
func sum(parts ...[]byte) uint16 {
	var s uint32
	for _, b := range parts {
		for i := 0; i+1 < len(b); i += 2 {
			s += uint32(binary.BigEndian.Uint16(b[i:]))
		}
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

// routerAdvertisement is a frame that offers a default route and the prefix 2001:db8::/64.
func routerAdvertisement(src net.HardwareAddr) []byte {
	from, to := netip.MustParseAddr("fe80::bad"), netip.MustParseAddr("ff02::1")
	icmp := []byte{134, 0, 0, 0, 64, 0x08, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0} // preference high, an hour and more
	icmp = append(icmp, 3, 4, 64, 0xc0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)
	icmp = append(icmp, netip.MustParseAddr("2001:db8::").AsSlice()...)
	icmp = append(append(icmp, 1, 1), src...)
	pseudo := append(append(from.AsSlice(), to.AsSlice()...), 0, 0, 0, byte(len(icmp)), 0, 0, 0, unix.IPPROTO_ICMPV6)
	binary.BigEndian.PutUint16(icmp[2:], sum(pseudo, icmp))
	frame := append(net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, src...)
	frame = append(frame, 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(icmp)), unix.IPPROTO_ICMPV6, 255)
	return append(append(append(frame, from.AsSlice()...), to.AsSlice()...), icmp...)
}

// sendFrame puts a frame onto a namespace's eth0, as CAP_NET_RAW allows.
func sendFrame(path string, frame []byte) error {
	return inNamespace(path, func() error {
		eth, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: eth.Index, Halen: 6})
	})
}

// A member that advertises itself as a router would get all of the host's IPv6 traffic.
// A router on another link of the host shows that the frames are right.
func TestARouterAdvertisementOfAMemberChangesNothingOnItsHost(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, addrA := attach(t, n, 0)
	echo(t, h, n.cfg.Gateway)
	link := n.linkName(member(0))
	has := func(prefix string) bool {
		return slices.ContainsFunc(six(t, h), func(l string) bool { return strings.HasPrefix(l, prefix) })
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not in time: %s", what)
			}
		}
	}
	advertise := func(when string) {
		t.Helper()
		must(t, sendFrame(a, routerAdvertisement(memberMAC(addrA))))
		reaches(t, a, n.cfg.Gateway, addrA) // what was sent before it has arrived, too
		if has(link+" address 2001:") || has(link+" route to 2001:") || has(link+" route to ::/0") {
			t.Errorf("%s: the member changed its host: %q", when, six(t, h))
		}
	}
	hh := handle(t, h)
	until("the kernel sees the link's carrier", func() bool {
		l, err := hh.LinkByName(link)
		return err == nil && l.Attrs().OperState == netlink.OperUp
	})
	advertise("as attached")

	router := namespace(t)
	cable(t, "eth0", h, netip.MustParseAddr("172.31.9.1"), router, netip.MustParseAddr("172.31.9.2"))
	until("a router is heeded", func() bool {
		must(t, sendFrame(router, routerAdvertisement(net.HardwareAddr{2, 0, 0, 0, 0, 9})))
		return has("eth0 address 2001:db8:")
	})

	must(t, n.sysctl("net/ipv6/conf/"+link+"/disable_ipv6", "0")) // as `sysctl net.ipv6.conf.all.disable_ipv6=0` does
	until("the link has IPv6", func() bool { return has(link + " address fe80::") })
	advertise("with IPv6 switched on again")
	must(t, n.Repair(t.Context(), []Assignment{{ID: member(0), NetNS: a, Address: addrA}}))
	if has(link) {
		t.Errorf("after a repair the host has %q", six(t, h))
	}
	if got := six(t, a); len(got) > 0 {
		t.Errorf("the member has %q", got)
	}
}

// inTunnel is what a tunnel's end sends for a packet of UDP from one address to another.
func inTunnel(n *Network, host, from, to netip.Addr, port uint16, text string) []byte {
	number := n.vni()
	b := []byte{0x08, 0, 0, 0, byte(number >> 16), byte(number >> 8), byte(number), 0}
	b = append(append(b, tunnelMAC(host.AsSlice())...), 0x02, 0, 0, 0, 0, 1, 0x08, 0x00)
	ip := []byte{0x45, 0, 0, byte(28 + len(text)), 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	ip = append(append(ip, from.AsSlice()...), to.AsSlice()...)
	binary.BigEndian.PutUint16(ip[10:], sum(ip))
	udp := []byte{0x30, 0x39, 0, 0, 0, byte(8 + len(text)), 0, 0} // no checksum
	binary.BigEndian.PutUint16(udp[2:], port)
	return append(append(append(b, ip...), udp...), text...)
}

// Who could put packets into the tunnel would send from any address: a member by sending
// to its port on any host, a stranger on the hosts' network by sending there as well.
func TestNobodyButNodesPutsPacketsIntoTheTunnel(t *testing.T) {
	x := newTwo(t, ModeVXLAN, false)
	// A stranger behind the second host's other link, with a way to its address.
	stranger := namespace(t)
	cable(t, "side", stranger, netip.MustParseAddr("172.31.11.7"), x.path[1], netip.MustParseAddr("172.31.11.1"))
	must(t, handle(t, stranger).RouteAdd(&netlink.Route{Dst: hostPrefix(x.host[1]), Gw: net.IP{172, 31, 11, 1}}))
	x.announce(t)
	for _, n := range x.net {
		must(t, n.Admit(x.host[:]))
	}

	var l net.PacketConn
	must(t, inNamespace(x.member[1], func() (err error) { l, err = net.ListenPacket("udp4", ":9"); return err }))
	defer l.Close()
	send := func(path string, to netip.AddrPort, b []byte) {
		t.Helper()
		must(t, inNamespace(path, func() error {
			c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(b)
			return err
		}))
	}
	forged := []netip.Addr{address(200), x.address[0], x.host[0], netip.MustParseAddr("192.0.2.1")}
	end := netip.AddrPortFrom(x.host[1], vxlanPort)
	for _, from := range forged {
		// To the port of another host, and to that of its own, which would lead it there.
		send(x.member[0], end, inTunnel(x.net[0], x.host[1], from, x.address[1], 9, "by a member, from "+from.String()))
		send(x.member[0], netip.AddrPortFrom(x.host[0], vxlanPort),
			inTunnel(x.net[0], x.host[0], from, x.address[1], 9, "by way of its own host, from "+from.String()))
		send(x.member[1], end, inTunnel(x.net[0], x.host[1], from, x.address[1], 9, "by itself, from "+from.String()))
		send(stranger, end, inTunnel(x.net[0], x.host[1], from, x.address[1], 9, "by a stranger, from "+from.String()))
	}
	// The packets are right: from a node they arrive.
	send(x.path[0], end, inTunnel(x.net[0], x.host[1], x.address[0], x.address[1], 9, "by a node"))
	l.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 200)
	if m, _, err := l.ReadFrom(b); err != nil || string(b[:m]) != "by a node" {
		t.Errorf("first arrived %q (%v), want only what a node sent", b[:m], err)
	}
}

// The tunnel of another cluster takes what comes from a host, and may be on this one.
func TestMembersSendNothingToTheTunnelsOfOtherClusters(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, _ := attach(t, n, 0)
	other := namespace(t)
	at := netip.MustParseAddr("172.31.9.2")
	cable(t, "up0", h, netip.MustParseAddr("172.31.9.1"), other, at)
	heard := make(chan string, 2)
	for _, port := range []uint16{vxlanPort, vxlanPort + 1} {
		var l net.PacketConn
		must(t, inNamespace(other, func() (err error) {
			l, err = net.ListenPacket("udp4", netip.AddrPortFrom(at, port).String())
			return err
		}))
		t.Cleanup(func() { l.Close() })
		go func() {
			b := make([]byte, 200)
			if m, _, err := l.ReadFrom(b); err == nil {
				heard <- string(b[:m])
			}
		}()
	}
	for _, port := range []uint16{vxlanPort, vxlanPort + 1} {
		must(t, inNamespace(a, func() error {
			c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, port)))
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = fmt.Fprintf(c, "to port %d", port)
			return err
		}))
	}
	select {
	case got := <-heard:
		if got != "to port 4790" {
			t.Errorf("first arrived what was sent %s", got)
		}
	case <-time.After(time.Minute):
		t.Error("nothing arrived")
	}
}

func TestTheShieldOfTheTunnelComesBackAndFollowsTheNodes(t *testing.T) {
	x := newTwo(t, ModeVXLAN, false)
	n := x.net[0]
	stands := func() (marks []string, nodes []netip.Addr) {
		must(t, n.nft(func(c *nftables.Conn) (err error) { marks, nodes, err = n.shield.read(c); return err }))
		return marks, nodes
	}
	x.announce(t)
	if marks, nodes := stands(); len(marks) != 1 || len(nodes) != 0 {
		t.Errorf("before the nodes are known: %q, %v; want members kept out, and nobody else", marks, nodes)
	}
	third := netip.MustParseAddr("172.31.9.3")
	must(t, n.Admit([]netip.Addr{third, x.host[0]}))
	both := []string{fmt.Sprintf("stead:members:%d", n.group()), fmt.Sprintf("stead:strangers:%d", n.vni())}
	want := func(what string, hosts ...netip.Addr) {
		t.Helper()
		if marks, nodes := stands(); !slices.Equal(marks, both) || !slices.Equal(nodes, hosts) {
			t.Errorf("%s: %q, %v; want %q, %v", what, marks, nodes, both, hosts)
		}
	}
	want("all nodes, and whoever has a member", x.host[0], x.host[1], third)
	must(t, n.dropTable(n.shieldTable()))
	must(t, n.Setup(t.Context()))
	want("after it was flushed", x.host[0], x.host[1], third)
	next, err := New(n.cfg) // an agent that was started again and has not heard of the nodes
	must(t, err)
	must(t, next.Setup(t.Context()))
	want("after a restart", x.host[0], x.host[1], third)
	must(t, n.Reach(t.Context(), nil))
	want("without members elsewhere", x.host[0], third)
	must(t, n.Admit([]netip.Addr{x.host[0]}))
	want("after a node was removed", x.host[0])
}
