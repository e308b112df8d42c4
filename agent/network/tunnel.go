package network

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/wrap"
)

// vxlanPort is that of RFC 7348; vxlanOverhead is what a packet grows by in the tunnel:
// IPv4, UDP, VXLAN and Ethernet headers.
const (
	vxlanPort     = 4789
	vxlanOverhead = 50
)

// tunnelName is that of this node's end of the tunnel, which has the alias of a link of
// this node that is not a member's.
func (n *node) tunnelName() string  { return fmt.Sprintf("sx%06x", n.mark()) }
func (n *node) tunnelAlias() string { return n.aliasPrefix() + "tunnel" }
func (n *node) tunnelLabel() string { return n.tunnelName() + ":gw" }

// vni is the number of the VXLAN: the same on all nodes of a cluster, and never 0.
func (n *node) vni() int {
	sum := sha256.Sum256([]byte(n.cfg.ClusterID))
	return (int(sum[0])<<16 | int(sum[1])<<8 | int(sum[2])) | 1
}

// tunnel is this node's end of the VXLAN between hosts.
type tunnel struct{ *node }

// ensure returns the tunnel's link, made unless it is there as it should be. Packets leave
// from the address src.
func (t tunnel) ensure(h *netlink.Handle, src net.IP) (netlink.Link, error) {
	name := t.tunnelName()
	link, err := h.LinkByName(name)
	if isGone(err) {
		return t.make(h, src)
	}
	if err != nil {
		return nil, fmt.Errorf("find tunnel %s: %w", name, err)
	}
	if alias := link.Attrs().Alias; alias != t.tunnelAlias() && alias != "" {
		return nil, fmt.Errorf("link %s belongs to %q", name, alias)
	}
	v, ok := link.(*netlink.Vxlan)
	if ok && v.VxlanId == t.vni() && v.Port == vxlanPort && v.SrcAddr.Equal(src) && slices.Equal(v.HardwareAddr, tunnelMAC(src)) {
		return link, t.configure(h, link)
	}
	if err := h.LinkDel(link); err != nil {
		return nil, fmt.Errorf("delete tunnel %s, whose settings have changed: %w", name, err)
	}
	return t.make(h, src)
}

func (t tunnel) make(h *netlink.Handle, src net.IP) (netlink.Link, error) {
	made := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: t.tunnelName(), MTU: t.cfg.MTU - vxlanOverhead, TxQLen: -1, HardwareAddr: tunnelMAC(src)},
		VxlanId:   t.vni(), SrcAddr: src, Port: vxlanPort,
	}
	if err := h.LinkAdd(made); err != nil {
		return nil, fmt.Errorf("add tunnel %s: %w", made.Name, err)
	}
	link, err := h.LinkByName(made.Name)
	if err != nil {
		return nil, fmt.Errorf("find tunnel %s: %w", made.Name, err)
	}
	return link, t.configure(h, link)
}

// configure marks the tunnel as ours and brings it up. Its MTU is less than that of members'
// links: this host answers whoever sends more than fits, as any router does.
func (t tunnel) configure(h *netlink.Handle, link netlink.Link) error {
	name, mtu := link.Attrs().Name, t.cfg.MTU-vxlanOverhead
	gateway := t.gateway()
	gateway.Label = t.tunnelLabel()
	return inOrder(
		step{"set alias of " + name, func() error {
			if link.Attrs().Alias != "" {
				return nil
			}
			return h.LinkSetAlias(link, t.tunnelAlias())
		}},
		step{"set MTU of " + name, func() error {
			if link.Attrs().MTU == mtu {
				return nil
			}
			return h.LinkSetMTU(link, mtu)
		}},
		step{"", func() error { return disableIPv6(t.cfg.NetNS, name) }},
		// Loose: a host's own packets to members elsewhere come through the tunnel and are
		// answered beside it. Members' addresses are checked where the members are.
		step{"", func() error { return t.sysctl("net/ipv4/conf/"+name+"/rp_filter", "2") }},
		// On a link without any address the kernel checks strictly all the same.
		step{fmt.Sprintf("add gateway %s to %s", t.cfg.Gateway, name), func() error { return h.AddrReplace(link, gateway) }},
		step{"bring " + name + " up", func() error { return h.LinkSetUp(link) }},
	)
}

// remove removes this node's end, if there is one.
func (t tunnel) remove(h *netlink.Handle) (err error) {
	defer wrap.Error(&err, "remove tunnel %s", t.tunnelName())
	link, err := h.LinkByName(t.tunnelName())
	if isGone(err) {
		return nil
	}
	if err == nil && link.Attrs().Alias == t.tunnelAlias() {
		err = h.LinkDel(link)
	}
	return err
}

// addHost says where a host's end is: no host has to ask, and nothing is learnt.
func (t tunnel) addHost(h *netlink.Handle, link netlink.Link, host netip.Addr) (err error) {
	mac := tunnelMAC(host.AsSlice())
	if err := setNeighbour(h, link, host, mac); err != nil {
		return err
	}
	defer wrap.Error(&err, "add forwarding entry %s of %s", host, link.Attrs().Name)
	return h.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF, State: netlink.NUD_PERMANENT,
		IP: host.AsSlice(), HardwareAddr: mac,
	})
}

// tunnelMAC is 02:54 (locally administered) and the host's address.
func tunnelMAC(host net.IP) net.HardwareAddr {
	return append(net.HardwareAddr{0x02, 0x54}, host.To4()...)
}
