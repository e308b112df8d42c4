package network

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"github.com/stead-project/stead/internal/wrap"
)

// Setting is one thing that Setup or Attach makes on the host.
type Setting struct {
	// Kind is route, address, sysctl, nft or link.
	Kind string
	// What it is, as ip, sysctl and nft write it.
	What string
	// Set: it is there now.
	Set bool
}

// Check lists everything Setup makes on the host, and the link, sysctl and host ports of
// each member that is attached, without changing anything. If Setup would refuse, its
// ErrOverlap is returned with the list.
func (n *Network) Check(ctx context.Context) ([]Setting, error) {
	h, err := n.host()
	if err != nil {
		return nil, fmt.Errorf("check network: %w", err)
	}
	defer h.Close()
	settings, err := n.settings(ctx, h)
	if err != nil {
		return nil, err
	}
	return settings, n.checkOverlap(h)
}

func (n *Network) settings(ctx context.Context, h *netlink.Handle) (_ []Setting, err error) {
	defer wrap.Error(&err, "check network")
	all, err := routes(h, 0)
	if err != nil {
		return nil, err
	}
	addrs, err := addresses(h, nil)
	if err != nil {
		return nil, err
	}
	forward, err := n.sysctlIs("net/ipv4/ip_forward", "1")
	if err != nil {
		return nil, err
	}
	var table bool
	var shield []string
	err = n.nft(func(c *nftables.Conn) (err error) {
		table, err = n.nat.isComplete(c)
		if err == nil {
			shield, _, err = n.shield.read(c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	covered := slices.ContainsFunc(all, func(r netlink.Route) bool {
		return n.isUnreachable(r) && prefixOf(r.Dst) == n.cfg.CIDR
	})
	gateway := slices.ContainsFunc(addrs, func(a netlink.Addr) bool {
		return a.Label == n.label() && prefixOf(a.IPNet).Addr() == n.cfg.Gateway
	})
	settings := []Setting{
		{"route", fmt.Sprintf("unreachable %s proto %d metric %d", n.cfg.CIDR, protocol, n.metric()), covered},
		{"address", fmt.Sprintf("%s/32 dev lo label %s", n.cfg.Gateway, n.label()), gateway},
		{"sysctl", "net.ipv4.ip_forward = 1", forward},
		{"nft", fmt.Sprintf("table ip %s: ip saddr %s ip daddr != %s masquerade", n.table().Name, n.cfg.CIDR, n.cfg.CIDR), table},
		{"nft", fmt.Sprintf("table ip %s: from members udp dport %d drop", n.shieldTable().Name, vxlanPort), len(shield) > 0},
	}
	if len(shield) > 1 {
		settings = append(settings, Setting{"nft", fmt.Sprintf("table ip %s: udp dport %d VXLAN %d not from a node drop",
			n.shieldTable().Name, vxlanPort, n.vni()), true})
	}
	if link, err := h.LinkByName(n.tunnelName()); err == nil {
		settings = append(settings, Setting{"link", fmt.Sprintf("%s alias %s: VXLAN %d to other hosts, UDP port %d",
			link.Attrs().Name, n.tunnelAlias(), n.vni(), vxlanPort), true})
	}
	ports, err := n.nat.portSettings()
	if err != nil {
		return nil, err
	}
	members, err := n.memberSettings(ctx)
	return slices.Concat(settings, ports, members), err
}

// memberSettings are the links of attached members, and their sysctls.
func (n *Network) memberSettings(ctx context.Context) (settings []Setting, err error) {
	ids, err := n.Attached(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		strict, err := n.sysctlIs("net/ipv4/conf/"+n.linkName(id)+"/rp_filter", "1")
		if err != nil {
			return nil, err
		}
		six, err := hasIPv6(n.cfg.NetNS, n.linkName(id))
		if err != nil {
			return nil, err
		}
		settings = append(settings,
			Setting{"link", n.linkName(id) + " alias " + n.alias(id), true},
			Setting{"sysctl", "net.ipv4.conf." + n.linkName(id) + ".rp_filter = 1", strict},
			Setting{"sysctl", "net.ipv6.conf." + n.linkName(id) + ".disable_ipv6 = 1", !six})
	}
	return settings, nil
}

// portSettings are the host ports that are set.
func (t *natTable) portSettings() (list []Setting, err error) {
	err = t.nft(func(c *nftables.Conn) error {
		have, err := t.portRules(c)
		var listed []published
		for _, r := range have {
			if slices.Contains(listed, r.published) {
				continue
			}
			listed = append(listed, r.published)
			list = append(list, Setting{"nft", fmt.Sprintf("table ip %s: host port %s to %s (%s)",
				t.table().Name, r.port, netip.AddrPortFrom(r.addr, r.port.To), r.id), true})
		}
		return err
	})
	return list, err
}
