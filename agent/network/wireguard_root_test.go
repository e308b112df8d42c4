package network

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/stead-project/stead/records"
)

// TestMembersReachEachOtherThroughWireGuard: and nobody on the way can read what they say. On a link that hosts share,
// they are reached by routes otherwise.
func TestMembersReachEachOtherThroughWireGuard(t *testing.T) {
	for _, tt := range []struct {
		name string
		far  bool
	}{{"on one link", false}, {"over a router", true}} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuarded(t, ModeAuto, tt.far)
			g.announce(t)
			for i := range g.member {
				echo(t, g.member[i], g.address[i])
			}
			said := func() bool {
				t.Helper()
				end := capture(t, g.path[0], "up0")
				reaches(t, g.member[0], g.address[1], g.address[0])
				text := []byte(g.address[0].String()) // what echo answers
				for _, frame := range end() {
					if bytes.Contains(frame, text) || bytes.Contains(frame, g.address[1].AsSlice()) {
						return true
					}
				}
				return false
			}
			if !said() {
				t.Fatal("what goes without WireGuard is not seen: the test sees nothing")
			}
			g.use(t, records.TunnelWireGuard)
			g.settle(t, wireOf)
			if said() {
				t.Error("members' traffic can be read on the way")
			}
			for i := range g.member {
				reaches(t, g.member[i], g.address[1-i], g.address[i])
				reaches(t, g.path[i], g.address[1-i], g.host[i]) // the host itself, as its probes and node ports do
				if g.tunnelled(t, i) {
					t.Error("the VXLAN stays")
				}
			}
			carriesMuch(t, g.two)
			whole := picture(t, g.path[0])
			must(t, g.net[0].Setup(t.Context()))
			same(t, "a repair without need", whole, picture(t, g.path[0]))
			must(t, g.net[0].Teardown(t.Context()))
			if left := g.remoteRoutes(t, 0); len(left) != 0 || strings.Contains(fmt.Sprint(picture(t, g.path[0])), "sw") {
				t.Errorf("after the teardown there are %q", picture(t, g.path[0]))
			}
		})
	}
}

// sendFrom has a host send a datagram from any address to a port 9, through its end of the tunnel.
func sendFrom(t *testing.T, h *netlink.Handle, path string, link string, from, to netip.Addr, text string) {
	t.Helper()
	l, err := h.LinkByName(link)
	must(t, err)
	ip := []byte{0x45, 0, 0, byte(28 + len(text)), 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	ip = append(append(ip, from.AsSlice()...), to.AsSlice()...)
	binary.BigEndian.PutUint16(ip[10:], sum(ip))
	udp := []byte{0x30, 0x39, 0, 9, 0, byte(8 + len(text)), 0, 0}
	packet := append(append(ip, udp...), text...)
	must(t, inNamespace(path, func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		at := &unix.SockaddrLinklayer{Protocol: 0x0008, Ifindex: l.Attrs().Index} // ETH_P_IP, in network order
		if peer := l.Attrs().HardwareAddr; len(peer) == 6 {
			at.Halen = 6
			copy(at.Addr[:], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		}
		return unix.Sendto(fd, packet, 0, at)
	}))
}

// TestAHostSendsInTheNameOfItsOwnMembersAlone: by whatever way it tries.
func TestAHostSendsInTheNameOfItsOwnMembersAlone(t *testing.T) {
	g := newGuarded(t, ModeVXLAN, false)
	g.announce(t)
	third := address(99) // a member of a third node
	for _, n := range g.net {
		must(t, n.Admit(append(g.host[:], netip.MustParseAddr("172.31.9.3"))))
	}
	places := map[netip.Addr]Location{
		g.address[0]: {Node: "n1", Host: g.host[0]}, third: {Node: "n3", Host: netip.MustParseAddr("172.31.9.3")},
	}
	must(t, g.net[1].Reach(t.Context(), places))
	var l net.PacketConn
	must(t, inNamespace(g.member[1], func() (err error) { l, err = net.ListenPacket("udp4", ":9"); return err }))
	defer l.Close()
	first := func(want string) {
		t.Helper()
		l.SetReadDeadline(time.Now().Add(time.Minute))
		b := make([]byte, 200)
		if m, _, err := l.ReadFrom(b); err != nil || string(b[:m]) != want {
			t.Errorf("arrived %q (%v), want %q", b[:m], err, want)
		}
	}
	h := handle(t, g.path[0])
	end := netip.AddrPortFrom(g.host[1], vxlanPort)
	byVXLAN := func(from netip.Addr, text string) {
		t.Helper()
		must(t, inNamespace(g.path[0], func() error {
			c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(end))
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(inTunnel(g.net[0], g.host[1], from, g.address[1], 9, text))
			return err
		}))
	}
	byVXLAN(third, "by VXLAN") // which cannot tell
	first("by VXLAN")

	key, err := wgtypes.GeneratePrivateKey()
	must(t, err)
	g.ends = append(g.ends, records.TunnelEnd{Node: "n3", Host: netip.MustParseAddr("172.31.9.3"), Port: 1, Key: key.PublicKey().String()})
	g.use(t, records.TunnelWireGuard)
	must(t, g.net[1].Reach(t.Context(), map[netip.Addr]Location{g.address[0]: {Node: "n1", Host: g.host[0]}}))
	g.settle(t, wireOf)
	must(t, g.net[1].Reach(t.Context(), places))
	echo(t, g.member[1], g.address[1])
	reaches(t, g.member[0], g.address[1], g.address[0])
	for _, from := range []netip.Addr{third, g.address[1], netip.MustParseAddr("172.31.9.3"), g.host[1], netip.MustParseAddr("192.0.2.1")} {
		sendFrom(t, h, g.path[0], g.net[0].wire.wireName(), from, g.address[1], "through WireGuard from "+from.String())
	}
	for _, from := range []netip.Addr{third, g.address[0]} {
		sendFrom(t, h, g.path[0], "up0", from, g.address[1], "beside it from "+from.String())
		byVXLAN(from, "by VXLAN from "+from.String())
	}
	reaches(t, g.member[0], g.address[1], g.address[0]) // what was sent before it has arrived, too
	sendFrom(t, h, g.path[0], g.net[0].wire.wireName(), g.address[0], g.address[1], "its own")
	first("its own")
	sendFrom(t, h, g.path[0], g.net[0].wire.wireName(), g.host[0], g.address[1], "the host")
	first("the host")
}

// TestChangesOfTheTunnelLoseNothing: each datagram is answered while the cluster changes from one tunnel to the other and back.
func TestChangesOfTheTunnelLoseNothing(t *testing.T) {
	g := newGuarded(t, ModeVXLAN, false)
	g.announce(t)
	for _, n := range g.net {
		must(t, n.Admit(g.host[:]))
	}
	echo(t, g.member[1], g.address[1])
	reaches(t, g.member[0], g.address[1], g.address[0])
	end := g.answered(t)
	for _, step := range []struct {
		kind string
		link func(*Network) string
	}{
		{records.TunnelVXLAN, vxlanOf}, {records.TunnelBoth, wireOf}, {records.TunnelWireGuard, wireOf}, {records.TunnelBoth, wireOf}, {records.TunnelVXLAN, vxlanOf},
	} {
		t.Logf("kind %s", step.kind)
		for i := range g.net { // one hears of it before the other
			must(t, g.net[i].UseTunnel(t.Context(), &records.HostTunnel{Kind: step.kind, Ends: g.ends}))
			must(t, g.net[1-i].Setup(t.Context()))
			time.Sleep(20 * time.Millisecond)
		}
		g.settle(t, step.link)
		must(t, g.net[0].UseTunnel(t.Context(), &records.HostTunnel{Ends: g.ends})) // of a server that says no kind
		g.settle(t, step.link)
	}
	if count := end(); count < 20 {
		t.Errorf("only %d datagrams were answered", count)
	}
	if g.net[0].Unsettled() {
		t.Error("nothing is waited for where VXLAN is used")
	}
}

// TestANodeThatCannotIsNamedAndReachedAsBefore until the cluster uses WireGuard alone.
func TestANodeThatCannotIsNamedAndReachedAsBefore(t *testing.T) {
	g := newGuarded(t, ModeVXLAN, false)
	g.announce(t)
	echo(t, g.member[1], g.address[1])
	g.net[1].cfg.WireGuard = &WireGuard{Missing: "no tun here"}
	g.ends = g.ends[:1]
	must(t, g.net[0].UseTunnel(t.Context(), &records.HostTunnel{Kind: records.TunnelBoth, Ends: g.ends}))
	if err := g.net[1].UseTunnel(t.Context(), &records.HostTunnel{Kind: records.TunnelBoth, Ends: g.ends}); err == nil || !strings.Contains(err.Error(), "no tun here") {
		t.Errorf("the node that cannot says %v", err)
	}
	reaches(t, g.member[0], g.address[1], g.address[0])
	err := g.net[0].UseTunnel(t.Context(), &records.HostTunnel{Kind: records.TunnelWireGuard, Ends: g.ends})
	if err == nil || !strings.Contains(err.Error(), "node n2 has no WireGuard") {
		t.Errorf("the other says %v", err)
	}
	if _, err := dial(g.member[0], g.address[1]); err == nil {
		t.Error("it is reached in the open")
	}
}

func TestPeersFollowMembersAndNodes(t *testing.T) {
	g := newGuarded(t, ModeAuto, false)
	g.announce(t)
	g.use(t, records.TunnelWireGuard)
	g.settle(t, wireOf)
	echo(t, g.member[1], g.address[1])
	reaches(t, g.member[0], g.address[1], g.address[0])
	has := func(what string, host int, key string, want ...netip.Addr) {
		t.Helper()
		have := g.mayUse(t, host, key)
		ok := len(have) == len(want)
		for _, a := range want {
			ok = ok && have[a]
		}
		if !ok {
			t.Errorf("%s: the peer may send from %v, want %v", what, have, want)
		}
	}
	has("at first", 1, g.ends[0].Key, g.host[0], g.address[0])

	more := map[netip.Addr]Location{g.address[0]: {Node: "n1", Host: g.host[0]}, address(50): {Node: "n1", Host: g.host[0]}}
	must(t, g.net[1].Reach(t.Context(), more))
	has("a member came", 1, g.ends[0].Key, g.host[0], g.address[0], address(50))
	next, err := New(g.net[1].cfg) // an agent that was started again, and knows nothing yet
	must(t, err)
	must(t, next.Setup(t.Context()))
	must(t, next.UseTunnel(t.Context(), &records.HostTunnel{Kind: records.TunnelWireGuard, Ends: g.ends}))
	has("after a restart", 1, g.ends[0].Key, g.host[0], g.address[0], address(50))
	reaches(t, g.member[0], g.address[1], g.address[0])
	g.announce(t)
	has("it left", 1, g.ends[0].Key, g.host[0], g.address[0])
	reaches(t, g.member[0], g.address[1], g.address[0])

	before := g.ends[0].Key
	g.rekey(t, 0)
	g.use(t, records.TunnelWireGuard)
	has("another key", 1, g.ends[0].Key, g.host[0], g.address[0])
	if have := g.mayUse(t, 1, before); have != nil {
		t.Errorf("the key before may send from %v", have)
	}
	reaches(t, g.member[0], g.address[1], g.address[0])

	// The first node is removed. It still has all it had, and sends.
	key := g.ends[0].Key
	g.ends = g.ends[1:]
	_ = g.net[1].UseTunnel(t.Context(), &records.HostTunnel{Kind: records.TunnelWireGuard, Ends: g.ends})
	if have := g.mayUse(t, 1, key); have != nil {
		t.Errorf("a node that was removed may send from %v", have)
	}
	if _, err := dialFor(g.member[0], g.address[1], 2*time.Second); err == nil {
		t.Error("a node that was removed reaches a member")
	}
}

// dialFor is dial with less patience.
func dialFor(path string, addr netip.Addr, most time.Duration) (from string, err error) {
	err = inNamespace(path, func() error {
		c, err := net.DialTimeout("tcp4", netip.AddrPortFrom(addr, 7).String(), most)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	return from, err
}
