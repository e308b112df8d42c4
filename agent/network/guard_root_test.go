package network

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestAMemberCannotSendFromAnAddressThatIsNotItsOwn(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, _ := attach(t, n, 0)
	forged := netip.MustParseAddr("10.88.0.200")
	inside := handle(t, a)
	eth, err := inside.LinkByName("eth0")
	must(t, err)
	must(t, inside.AddrAdd(eth, &netlink.Addr{IPNet: hostPrefix(forged)}))

	var l net.PacketConn
	must(t, inNamespace(h, func() (err error) { l, err = net.ListenPacket("udp4", "169.254.1.1:7"); return err }))
	defer l.Close()
	send := func(local string) {
		must(t, inNamespace(a, func() error {
			c, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(local), 0)), l.LocalAddr().(*net.UDPAddr))
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte(local))
			return err
		}))
	}
	send(forged.String())
	send(address(10).String())
	l.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 64)
	if m, _, err := l.ReadFrom(b); err != nil || string(b[:m]) != address(10).String() {
		t.Errorf("first arrived %q (%v), want only what has the member's own address", b[:m], err)
	}
}

func TestTrafficToTheOutsideHasTheHostsAddress(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, addrA := attach(t, n, 0)
	b, addrB := attach(t, n, 1)
	echo(t, b, addrB)

	outside := namespace(t)
	hostAddr, outsideAddr := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	hh, oh := handle(t, h), handle(t, outside)
	var fd int
	must(t, inNamespace(outside, func() (err error) {
		fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	}))
	defer unix.Close(fd)
	must(t, hh.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "uplink", TxQLen: -1}, PeerName: "eth0", PeerNamespace: netlink.NsFd(fd)}))
	for name, at := range map[string]struct {
		h    *netlink.Handle
		addr netip.Addr
	}{"uplink": {hh, hostAddr}, "eth0": {oh, outsideAddr}} {
		l, err := at.h.LinkByName(name)
		must(t, err)
		must(t, at.h.AddrAdd(l, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(at.addr, 24))}))
		must(t, at.h.LinkSetUp(l))
	}
	echo(t, outside, outsideAddr)
	reaches(t, a, outsideAddr, hostAddr)
	reaches(t, a, addrB, addrA)
	if got := masqueraded(t, n); got != 1 {
		t.Errorf("%d connections were masqueraded, want that to the outside", got)
	}
	must(t, n.Setup(t.Context()))
	if got := masqueraded(t, n); got != 1 {
		t.Errorf("counter is %d after another setup: the table was replaced needlessly", got)
	}
}

// masqueraded reads the counter of our rule.
func masqueraded(t *testing.T, n *Network) (packets uint64) {
	t.Helper()
	must(t, n.nft(func(c *nftables.Conn) error {
		rules, err := c.GetRules(n.table(), &nftables.Chain{Name: "postrouting", Table: n.table()})
		for _, r := range rules {
			for _, e := range r.Exprs {
				if counter, ok := e.(*expr.Counter); ok {
					packets = counter.Packets
				}
			}
		}
		return err
	}))
	return packets
}
