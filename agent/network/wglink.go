package network

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/stead-project/stead/agent/wireguard"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// wireGuardOverhead is what a packet grows by in WireGuard: IPv4, UDP and WireGuard's own headers.
const wireGuardOverhead = 60

// idleTime is how long the link stays that the cluster does not use any more, after the last exchange of keys with anybody.
const idleTime = 5 * time.Minute

// wireName is that of this node's end of the WireGuard tunnel, which has the alias of a link of this node that is not a member's.
func (w wireLink) wireName() string  { return fmt.Sprintf("sw%06x", w.mark()) }
func (w wireLink) wireAlias() string { return w.aliasPrefix() + "wireguard" }
func (w wireLink) wireLabel() string { return w.wireName() + ":gw" }

// wireLink is this node's end of the WireGuard tunnel.
type wireLink struct{ *node }

// wireState is what is known of it after an update.
type wireState struct {
	link netlink.Link
	own  netip.Addr // this host's address; zero: not known
	// peers are the nodes that it leads to, and when keys were last exchanged with them; hosts those of their hosts from
	// which they may send.
	peers map[spec.NodeName]time.Time
	hosts map[spec.NodeName]netip.Addr
}

// reached reports whether a peer answered just now.
func (s *wireState) reached(node spec.NodeName) bool { return time.Since(s.peers[node]) < freshTime }

// waits reports whether keys were not exchanged with each peer just now; s may be nil.
func (s *wireState) waits() bool {
	return s != nil && slices.ContainsFunc(slices.Collect(maps.Keys(s.peers)), func(node spec.NodeName) bool { return !s.reached(node) })
}

// update makes the link and its peers as t and members say, for the kind of tunnel that is in use. nil: there is none.
func (w wireLink) update(
	ctx context.Context, h *netlink.Handle, kind string, t *records.HostTunnel, members map[netip.Addr]Location,
) (s *wireState, err error) {
	defer wrap.Error(&err, "WireGuard")
	link, err := h.LinkByName(w.wireName())
	switch {
	case isGone(err):
		link = nil
	case err != nil:
		return nil, err
	case link.Attrs().Alias != w.wireAlias() && link.Attrs().Alias != "":
		return nil, fmt.Errorf("link %s belongs to %q", w.wireName(), link.Attrs().Alias)
	}
	if kind == records.TunnelVXLAN && (link == nil || w.isIdle()) {
		return nil, w.remove(h)
	}
	if w.cfg.WireGuard == nil || w.cfg.WireGuard.Missing != "" {
		return nil, w.cfg.WireGuard.err()
	}
	if link, err = w.ensure(ctx, h, link); err != nil {
		return nil, err
	}
	s = &wireState{link: link, own: w.ownAddress(h, t), peers: map[spec.NodeName]time.Time{}, hosts: map[spec.NodeName]netip.Addr{}}
	peers := w.peersOf(t, members)
	if err := w.set(s, t, peers, members != nil, kind == records.TunnelBoth); err != nil {
		return nil, err
	}
	if err := w.configure(h, s); err != nil {
		return nil, err
	}
	hosts := map[netip.Addr]bool{}
	for node, host := range s.hosts {
		if kind == records.TunnelWireGuard || kind == records.TunnelBoth && s.reached(node) {
			hosts[host] = true
		}
	}
	return s, answerWays(w).ensure(h, link, hosts)
}

// ensure returns the link, made unless it is there: by the kernel, or by a process.
func (w wireLink) ensure(ctx context.Context, h *netlink.Handle, link netlink.Link) (netlink.Link, error) {
	name := w.wireName()
	if link != nil && link.Type() == "wireguard" {
		return link, nil
	}
	if link == nil {
		err := h.LinkAdd(&netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: w.wireMTU(), TxQLen: -1}})
		if err == nil {
			return h.LinkByName(name)
		}
		if !errors.Is(err, unix.EOPNOTSUPP) {
			return nil, fmt.Errorf("add link %s: %w", name, err)
		}
	}
	if err := inNamespace(w.cfg.NetNS, func() error { return w.cfg.WireGuard.Process.Ensure(ctx, name) }); err != nil {
		return nil, err
	}
	return h.LinkByName(name)
}

func (w wireLink) wireMTU() int { return w.cfg.MTU - wireGuardOverhead }

// set sets key, port and peers where they differ, and fills in s. The key changes only once the servers have named it to all.
func (w wireLink) set(s *wireState, t *records.HostTunnel, peers map[wgtypes.Key]*wgPeer, membersKnown, greet bool) error {
	d, err := w.device()
	if err != nil {
		return fmt.Errorf("read %s: %w", w.wireName(), err)
	}
	var cfg wgtypes.Config
	key, port := w.cfg.WireGuard.Key, int(w.cfg.WireGuard.Port)
	named := slices.ContainsFunc(t.Ends, func(e records.TunnelEnd) bool {
		return e.Node == w.cfg.Node && e.Key == key.PublicKey().String()
	})
	if d.PrivateKey != key && (named || d.PrivateKey == wgtypes.Key{}) {
		cfg.PrivateKey = &key
	}
	if d.ListenPort != port {
		cfg.ListenPort = &port
	}
	cfg.Peers = wgDifference(d.Peers, peers, membersKnown, greet, time.Now())
	if cfg.PrivateKey != nil || cfg.ListenPort != nil || len(cfg.Peers) > 0 {
		_, err := w.control(func(c *wgctrl.Client) (*wgtypes.Device, error) { return nil, c.ConfigureDevice(w.wireName(), cfg) })
		if err != nil {
			return fmt.Errorf("set keys and peers of %s: %w", w.wireName(), err)
		}
	}
	for _, p := range peers {
		s.peers[p.node] = time.Time{}
		if host := p.endpoint.Addr(); p.allowed[host] {
			s.hosts[p.node] = host
		}
	}
	for i := range d.Peers { // as they were: who is new has exchanged nothing yet
		if p := peers[d.Peers[i].PublicKey]; p != nil {
			s.peers[p.node] = d.Peers[i].LastHandshakeTime
		}
	}
	return nil
}

// configure marks the link as ours and brings it up.
func (w wireLink) configure(h *netlink.Handle, s *wireState) error {
	name, mtu, a := w.wireName(), w.wireMTU(), s.link.Attrs()
	// Who connects through the link without an address of its own has this host's, as others know it: no other is taken there.
	address := w.gateway()
	if s.own.IsValid() {
		address = &netlink.Addr{IPNet: hostPrefix(s.own)}
	}
	address.Label = w.wireLabel()
	return inOrder(
		step{"set alias of " + name, func() error {
			if a.Alias != "" {
				return nil
			}
			return h.LinkSetAlias(s.link, w.wireAlias())
		}},
		step{"set MTU of " + name, func() error {
			if a.MTU == mtu {
				return nil
			}
			return h.LinkSetMTU(s.link, mtu)
		}},
		step{"", func() error { return disableIPv6(w.cfg.NetNS, name) }},
		// Loose, as that of the VXLAN. Here a packet's address is checked by the key it came with.
		step{"", func() error { return w.sysctl("net/ipv4/conf/"+name+"/rp_filter", "2") }},
		step{"", func() error { return replaceAddress(h, s.link, address) }},
		step{"bring " + name + " up", func() error { return h.LinkSetUp(s.link) }},
	)
}

// replaceAddress makes address the only one of a link.
func replaceAddress(h *netlink.Handle, link netlink.Link, address *netlink.Addr) error {
	name := link.Attrs().Name
	if err := h.AddrReplace(link, address); err != nil {
		return fmt.Errorf("add %s to %s: %w", address.IPNet, name, err)
	}
	all, err := addresses(h, link)
	if err != nil {
		return err
	}
	for _, a := range all {
		if !a.IP.Equal(address.IP) {
			if err := h.AddrDel(link, &a); err != nil {
				return fmt.Errorf("remove %s from %s: %w", a.IPNet, name, err)
			}
		}
	}
	return nil
}

// ownAddress is this host's address as other nodes know it; zero: they know none, or the host has it on no other link.
func (w wireLink) ownAddress(h *netlink.Handle, t *records.HostTunnel) netip.Addr {
	for _, e := range t.Ends {
		if e.Node != w.cfg.Node || !w.mayBeHost(e.Host) {
			continue
		}
		all, err := addresses(h, nil)
		if err != nil {
			return netip.Addr{}
		}
		for _, a := range all {
			if prefixOf(a.IPNet).Addr() == e.Host {
				return e.Host
			}
		}
	}
	return netip.Addr{}
}

// route is the way through the link to a node's members, but for their address; nil: it does not lead there.
func (w wireLink) route(s *wireState, node spec.NodeName) *netlink.Route {
	if s == nil {
		return nil
	}
	if _, known := s.peers[node]; !known {
		return nil
	}
	r := &netlink.Route{
		LinkIndex: s.link.Attrs().Index, Protocol: protocol, Table: unix.RT_TABLE_MAIN, Priority: w.remoteMetric(), Scope: netlink.SCOPE_LINK,
	}
	if s.own.IsValid() {
		r.Src = s.own.AsSlice()
	}
	return r
}

// beside are those of the routes that do not lead through the link: they would show the network what members send.
func (w wireLink) beside(h *netlink.Handle, list []netlink.Route) []netlink.Route {
	link, err := h.LinkByName(w.wireName())
	return slices.DeleteFunc(slices.Clone(list), func(r netlink.Route) bool { return err == nil && r.LinkIndex == link.Attrs().Index })
}

// isIdle reports whether nobody uses the link any more.
func (w wireLink) isIdle() bool {
	d, err := w.device()
	return err != nil || !slices.ContainsFunc(d.Peers, func(p wgtypes.Peer) bool { return time.Since(p.LastHandshakeTime) < idleTime })
}

// remove removes the link, if there is one; its process ends by that.
func (w wireLink) remove(h *netlink.Handle) error {
	if err := answerWays(w).ensure(h, nil, nil); err != nil {
		return err
	}
	link, err := h.LinkByName(w.wireName())
	if isGone(err) {
		return nil
	}
	if err == nil && link.Attrs().Alias == w.wireAlias() {
		err = errors.Join(h.LinkDel(link), wireguard.Forget(w.wireName()))
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", w.wireName(), err)
	}
	return nil
}
