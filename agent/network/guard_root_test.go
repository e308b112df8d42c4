package network

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

func TestAMemberCannotSendFromAnAddressThatIsNotItsOwn(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, _ := attach(t, n, 0)
	forged := netip.MustParseAddr("10.88.0.200")
	inside := handle(t, a)
	eth, err := inside.LinkByName("eth0")
	must(t, err)
	must(t, inside.AddrAdd(eth, &netlink.Addr{IPNet: single(forged)}))

	var l net.PacketConn
	must(t, within(h, func() (err error) { l, err = net.ListenPacket("udp4", "169.254.1.1:7"); return err }))
	defer l.Close()
	send := func(local string) {
		must(t, within(a, func() error {
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
	l.SetReadDeadline(time.Now().Add(3 * time.Second))
	b := make([]byte, 64)
	if m, _, err := l.ReadFrom(b); err != nil || string(b[:m]) != address(10).String() {
		t.Errorf("first arrived %q (%v), want only what has the member's own address", b[:m], err)
	}
}

func TestADroppingForwardPolicyIsNamed(t *testing.T) {
	n, _ := host(t, nil)
	must(t, n.Setup(t.Context()))
	if w, err := n.Warnings(); err != nil || len(w) != 0 {
		t.Errorf("got %v, %v; want no warning", w, err)
	}
	drop := nftables.ChainPolicyDrop
	must(t, n.nft(func(c *nftables.Conn) error {
		table := c.AddTable(&nftables.Table{Name: "filter", Family: nftables.TableFamilyIPv4})
		c.AddChain(&nftables.Chain{Name: "FORWARD", Table: table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &drop})
		return c.Flush()
	}))
	w, err := n.Warnings()
	if err != nil || len(w) != 1 || !strings.Contains(w[0], "FORWARD") || !strings.Contains(w[0], "filter") {
		t.Errorf("got %v, %v; want a warning that names the chain", w, err)
	}
}
