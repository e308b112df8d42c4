package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
)

// Attach gives the namespace at path the address addr; see runtime.Network. It
// fails with runtime.ErrExists when another link holds the address's route: it
// never takes an address away from a member that may still live. With Config.Policies it waits a short while
// until it is known what policies say of a member that has no network yet, and fails if it is not known then.
func (n *Network) Attach(ctx context.Context, id spec.Identity, path string, addr netip.Addr, ports ...spec.HostPort) (err error) {
	defer wrap.Error(&err, "attach %s", id)
	if !n.isReady() {
		return errors.New("the host's network is not set up")
	}
	if n.cfg.Policies {
		if err := n.awaitPolicies(ctx, id, addr); err != nil {
			return err
		}
	}
	if err := n.links.attach(ctx, id, path, addr); err != nil || len(ports) == 0 {
		return err
	}
	return n.nat.publish(id, addr, ports) // once there is a link: by it a crash is cleared up after
}

// memberLinks are the links between the host and its members.
type memberLinks struct{ *node }

func (l memberLinks) attach(ctx context.Context, id spec.Identity, path string, addr netip.Addr) error {
	if !addr.Is4() || !l.cfg.CIDR.Contains(addr) {
		return fmt.Errorf("address %s is not in %s", addr, l.cfg.CIDR)
	}
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", path, err)
	}
	defer ns.Close()
	own, err := netns.GetFromPath(cmp.Or(l.cfg.NetNS, "/proc/thread-self/ns/net"))
	if err != nil {
		return fmt.Errorf("open the host's network namespace: %w", err)
	}
	defer own.Close()
	if ns.Equal(own) {
		return fmt.Errorf("%s is the host's own network namespace", path)
	}
	h, err := l.host()
	if err != nil {
		return err
	}
	defer h.Close()
	inside, err := open(path)
	if err != nil {
		return err
	}
	defer inside.Close()

	// Never without it, even if the routes were flushed meanwhile.
	if err := h.RouteReplace(l.unreachable()); err != nil {
		return fmt.Errorf("add unreachable route %s: %w", l.cfg.CIDR, err)
	}
	link, err := l.ensureLink(ctx, h, inside, ns, id, addr)
	if err != nil {
		return err
	}
	// The kernel takes no alias with a new link. Until it has one, only the
	// identity's name leads to it; it has no route yet.
	if link.Attrs().Alias == "" {
		if err := h.LinkSetAlias(link, l.alias(id)); err != nil {
			return fmt.Errorf("set alias of %s: %w", link.Attrs().Name, err)
		}
	}
	if err := l.configureMemberSide(inside, path, addr); err != nil {
		return err
	}
	return l.configureHostSide(h, link, addr)
}

func (n *Network) isReady() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ready
}

// ensureLink returns the host's end of the member's link, made again unless it is there
// and leads into this very namespace.
func (l memberLinks) ensureLink(ctx context.Context, h, inside *netlink.Handle, ns netns.NsHandle, id spec.Identity, addr netip.Addr) (netlink.Link, error) {
	link, err := l.find(h, id)
	if err != nil {
		return nil, err
	}
	if err := l.checkAddressFree(h, addr, link); err != nil {
		return nil, err
	}
	if link != nil {
		joined, err := leadsTo(h, inside, link, ns)
		if err != nil {
			return nil, err
		}
		if joined && routesOnly(h, link, addr) {
			return link, nil
		}
		// Of a namespace that is gone, of a life that is over, or of another address.
		if err := remove(ctx, h, link); err != nil {
			return nil, err
		}
	}
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{
			Name: l.linkName(id), MTU: l.cfg.MTU, TxQLen: -1, HardwareAddr: hostMAC, Group: l.group(),
		},
		PeerName: "eth0", PeerHardwareAddr: memberMAC(addr), PeerNamespace: netlink.NsFd(ns),
	}
	if err := h.LinkAdd(veth); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("add link: the namespace has an eth0 already: %w", runtime.ErrForeign)
		}
		return nil, fmt.Errorf("add link %s: %w", veth.Name, err)
	}
	made, err := h.LinkByName(veth.Name)
	if err != nil {
		return nil, fmt.Errorf("find link %s: %w", veth.Name, err)
	}
	return made, nil
}

// find returns the identity's link, or nil. A link of its name that says that it
// is another's is an error; one that says nothing was left by a crash.
func (l memberLinks) find(h *netlink.Handle, id spec.Identity) (netlink.Link, error) {
	link, err := h.LinkByName(l.linkName(id))
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find link %s: %w", l.linkName(id), err)
	}
	if alias := link.Attrs().Alias; alias != l.alias(id) && alias != "" {
		return nil, fmt.Errorf("link %s belongs to %q: %w", l.linkName(id), alias, runtime.ErrForeign)
	}
	return link, nil
}

// leadsTo reports whether the other end of link is eth0 of the namespace ns.
func leadsTo(h, inside *netlink.Handle, link netlink.Link, ns netns.NsHandle) (bool, error) {
	peer, err := inside.LinkByName("eth0")
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find eth0: %w", err)
	}
	nsid, err := h.GetNetNsIdByFd(int(ns))
	if err != nil {
		return false, fmt.Errorf("identify network namespace: %w", err)
	}
	host, member := link.Attrs(), peer.Attrs()
	return peer.Type() == "veth" && host.NetNsID == nsid &&
		host.ParentIndex == member.Index && member.ParentIndex == host.Index, nil
}

// routesOnly reports whether no other address than addr is routed to link.
func routesOnly(h *netlink.Handle, link netlink.Link, addr netip.Addr) bool {
	all, err := routes(h, link.Attrs().Index)
	return err == nil && !slices.ContainsFunc(all, func(r netlink.Route) bool {
		return r.Protocol == protocol && prefixOf(r.Dst).Addr() != addr
	})
}

// checkAddressFree fails if a route leads addr to anything here but link (nil: to anything). That it
// leads to another host still is news of before.
func (l memberLinks) checkAddressFree(h *netlink.Handle, addr netip.Addr, link netlink.Link) error {
	all, err := routes(h, 0)
	if err != nil {
		return err
	}
	for _, r := range all {
		if prefixOf(r.Dst) != netip.PrefixFrom(addr, 32) || link != nil && r.LinkIndex == link.Attrs().Index || l.isRemoteRoute(r) {
			continue
		}
		holder := fmt.Sprintf("link %d", r.LinkIndex)
		if link, err := h.LinkByIndex(r.LinkIndex); err == nil {
			holder = strings.TrimSpace(link.Attrs().Name + " " + link.Attrs().Alias)
		}
		return fmt.Errorf("address %s leads to %s: %w", addr, holder, runtime.ErrExists)
	}
	return nil
}

// configureMemberSide makes eth0, lo and the routes of the member's namespace right.
func (l memberLinks) configureMemberSide(h *netlink.Handle, path string, addr netip.Addr) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the member's lo: %w", err)
	}
	eth, err := h.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("find eth0: %w", err)
	}
	route := func(r *netlink.Route) step {
		r.LinkIndex, r.Protocol = eth.Attrs().Index, protocol
		return step{fmt.Sprintf("add the member's route %s", prefixOf(r.Dst)), func() error { return h.RouteReplace(r) }}
	}
	return inOrder(
		step{"bring the member's lo up", func() error { return h.LinkSetUp(lo) }},
		step{"", func() error { return l.setMACAndMTU(h, eth, memberMAC(addr)) }},
		step{"", func() error { return disableIPv6(path, "eth0") }},
		step{fmt.Sprintf("add %s to eth0", addr), func() error { return h.AddrReplace(eth, &netlink.Addr{IPNet: hostPrefix(addr)}) }},
		step{"bring eth0 up", func() error { return h.LinkSetUp(eth) }},
		step{"", func() error { return setNeighbour(h, eth, l.cfg.Gateway, hostMAC) }},
		route(&netlink.Route{Dst: hostPrefix(l.cfg.Gateway), Scope: netlink.SCOPE_LINK}),
		route(&netlink.Route{
			Dst: ipNet(netip.PrefixFrom(netip.IPv4Unspecified(), 0)), Gw: l.cfg.Gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK),
		}),
	)
}

// configureHostSide makes the host's end and the route to the member right. The route is
// last: who gets through it finds everything in place.
func (l memberLinks) configureHostSide(h *netlink.Handle, link netlink.Link, addr netip.Addr) error {
	name := link.Attrs().Name
	route := &netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: hostPrefix(addr), Scope: netlink.SCOPE_LINK,
		Src: l.cfg.Gateway.AsSlice(), Protocol: protocol, Table: unix.RT_TABLE_MAIN,
	}
	return inOrder(
		step{"", func() error { return l.setMACAndMTU(h, link, hostMAC) }},
		step{"set group of " + name, func() error {
			if link.Attrs().Group == l.group() {
				return nil
			}
			return h.LinkSetGroup(link, int(l.group())) // made by an earlier version
		}},
		step{"", func() error { return disableIPv6(l.cfg.NetNS, name) }},
		// Strict: a member cannot send from an address that is not its own.
		step{"", func() error { return l.sysctl("net/ipv4/conf/"+name+"/rp_filter", "1") }},
		step{"bring " + name + " up", func() error { return h.LinkSetUp(link) }},
		step{"", func() error { return setNeighbour(h, link, addr, memberMAC(addr)) }},
		step{fmt.Sprintf("add route %s dev %s", addr, name), func() error { return h.RouteReplace(route) }},
	)
}

// setMACAndMTU gives one end of a link its MAC address and MTU.
func (l memberLinks) setMACAndMTU(h *netlink.Handle, link netlink.Link, mac net.HardwareAddr) error {
	attrs := link.Attrs()
	if !slices.Equal(attrs.HardwareAddr, mac) {
		if err := h.LinkSetHardwareAddr(link, mac); err != nil {
			return fmt.Errorf("set MAC of %s: %w", attrs.Name, err)
		}
	}
	if attrs.MTU != l.cfg.MTU {
		if err := h.LinkSetMTU(link, l.cfg.MTU); err != nil {
			return fmt.Errorf("set MTU of %s: %w", attrs.Name, err)
		}
	}
	return nil
}

// setNeighbour sets a permanent MAC address, so that no ARP is needed.
func setNeighbour(h *netlink.Handle, link netlink.Link, addr netip.Addr, mac []byte) (err error) {
	defer wrap.Error(&err, "add neighbour %s of %s", addr, link.Attrs().Name)
	return h.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT,
		IP: addr.AsSlice(), HardwareAddr: mac,
	})
}
