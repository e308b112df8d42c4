package network

import (
	"crypto/sha256"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
)

// vxlanPort is that of RFC 7348; vxlanOverhead is what a packet grows by in the tunnel:
// IPv4, UDP, VXLAN and Ethernet headers.
const (
	vxlanPort     = 4789
	vxlanOverhead = 50
)

// tunnelName is that of this node's end of the tunnel, which has the alias of a link of
// this node that is no member's.
func (n *Network) tunnelName() string  { return fmt.Sprintf("sx%06x", n.mark()) }
func (n *Network) tunnelAlias() string { return n.aliasPrefix() + "tunnel" }
func (n *Network) tunnelLabel() string { return n.tunnelName() + ":gw" }

// network is the VXLAN's number: the same on all nodes of a cluster, and never 0.
func (n *Network) network() int {
	sum := sha256.Sum256([]byte(n.cfg.ClusterID))
	return (int(sum[0])<<16 | int(sum[1])<<8 | int(sum[2])) | 1
}

// tunnel is this node's end of the tunnel between hosts, made unless it stands. Packets
// leave from the address src.
func (n *Network) tunnel(h *netlink.Handle, src net.IP) (netlink.Link, error) {
	name := n.tunnelName()
	link, err := h.LinkByName(name)
	if err != nil && !isGone(err) {
		return nil, fmt.Errorf("find tunnel %s: %w", name, err)
	}
	if err == nil {
		if link.Attrs().Alias != n.tunnelAlias() && link.Attrs().Alias != "" {
			return nil, fmt.Errorf("link %s is that of %q", name, link.Attrs().Alias)
		}
		v, ok := link.(*netlink.Vxlan)
		if ok && v.VxlanId == n.network() && v.Port == vxlanPort && v.SrcAddr.Equal(src) && slices.Equal(v.HardwareAddr, tunnelMAC(src)) {
			return link, n.raise(h, link)
		}
		if err := h.LinkDel(link); err != nil {
			return nil, fmt.Errorf("delete tunnel %s, which is another now: %w", name, err)
		}
	}
	made := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: name, MTU: n.cfg.MTU - vxlanOverhead, TxQLen: -1, HardwareAddr: tunnelMAC(src)},
		VxlanId:   n.network(), SrcAddr: src, Port: vxlanPort,
	}
	if err := h.LinkAdd(made); err != nil {
		return nil, fmt.Errorf("add tunnel %s: %w", name, err)
	}
	if link, err = h.LinkByName(name); err != nil {
		return nil, fmt.Errorf("find tunnel %s: %w", name, err)
	}
	return link, n.raise(h, link)
}

// raise marks the tunnel as ours and brings it up. Its MTU is less than that of members'
// links: whoever sends more than fits is told so by this host, as on any path.
func (n *Network) raise(h *netlink.Handle, link netlink.Link) error {
	name := link.Attrs().Name
	if link.Attrs().Alias == "" {
		if err := h.LinkSetAlias(link, n.tunnelAlias()); err != nil {
			return fmt.Errorf("set alias of %s: %w", name, err)
		}
	}
	if mtu := n.cfg.MTU - vxlanOverhead; link.Attrs().MTU != mtu {
		if err := h.LinkSetMTU(link, mtu); err != nil {
			return fmt.Errorf("set MTU of %s: %w", name, err)
		}
	}
	if err := noIPv6(n.cfg.NetNS, name); err != nil {
		return err
	}
	// Loose: a host's own packets to members elsewhere come through the tunnel and are
	// answered beside it. Members' addresses are checked where the members are.
	if err := n.sysctl("net/ipv4/conf/"+name+"/rp_filter", "2"); err != nil {
		return err
	}
	// On a link without any address the kernel checks strictly all the same.
	gateway := n.gateway()
	gateway.Label = n.tunnelLabel()
	if err := h.AddrReplace(link, gateway); err != nil {
		return fmt.Errorf("add gateway %s to %s: %w", n.cfg.Gateway, name, err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring %s up: %w", name, err)
	}
	return nil
}

// removeTunnel removes this node's end, if there is one.
func (n *Network) removeTunnel(h *netlink.Handle) error {
	link, err := h.LinkByName(n.tunnelName())
	if isGone(err) {
		return nil
	}
	if err == nil && link.Attrs().Alias == n.tunnelAlias() {
		err = h.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("remove tunnel %s: %w", n.tunnelName(), err)
	}
	return nil
}
