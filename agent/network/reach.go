package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// The ways to members of other hosts (Config.Mode).
const (
	// ModeAuto: by a route to a host on a link of ours, through the tunnel to others.
	ModeAuto = "auto"
	// ModeRoutes: by routes alone; a host that is on none of our links is an error.
	ModeRoutes = "routes"
	// ModeVXLAN: through the tunnel alone.
	ModeVXLAN = "vxlan"
)

// Location is where a member is.
type Location struct {
	Node spec.NodeName
	Host netip.Addr // the host's address
}

// UseTunnel takes what servers say of the tunnel between hosts, and makes the ways to members elsewhere so. It remembers it for
// Setup. nil: nothing new; it looks again who is reached.
func (n *Network) UseTunnel(ctx context.Context, t *records.HostTunnel) error {
	take := func() {
		if t != nil {
			n.said = t.After(n.said)
		}
	}
	return n.enforce(take, func(h *netlink.Handle) error { return n.updateRemoteRoutes(ctx, h) })
}

// kind is the tunnel between hosts that this one uses.
func (n *Network) kind() string {
	if n.said == nil || n.cfg.Mode == ModeRoutes || !slices.Contains(records.TunnelKinds, n.said.Kind) {
		return records.TunnelVXLAN
	}
	return n.said.Kind
}

// Unsettled reports whether a peer has not exchanged keys yet that may do so at any moment.
func (n *Network) Unsettled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unsettled
}

// Reach leads the addresses of members elsewhere, given with the address of their
// host, there, and all that were given before and are not now nowhere. It remembers
// them for Setup, which restores what was removed. It continues after an error and returns all
// of them, each host's once.
func (n *Network) Reach(ctx context.Context, members map[netip.Addr]Location) error {
	own := map[netip.Addr]Location{}
	maps.Copy(own, members)
	return n.enforce(func() { n.remote = own }, func(h *netlink.Handle) error { return n.updateRemoteRoutes(ctx, h) })
}

// updateRemoteRoutes makes the routes to members elsewhere those that are remembered; mu is held.
// Before the first Reach it leaves existing routes alone: the previous process knew them.
func (n *Network) updateRemoteRoutes(ctx context.Context, h *netlink.Handle) error {
	kind := n.kind()
	errs := []error{n.shield.ensure(n.admitted(), kind == records.TunnelWireGuard)}
	var wire *wireState
	if n.said != nil {
		var err error
		wire, err = n.wire.update(ctx, h, kind, n.said, n.remote)
		errs = append(errs, err)
	}
	n.unsettled = kind == records.TunnelBoth && wire.waits()
	if n.remote == nil {
		return errors.Join(errs...)
	}
	existing, err := n.remoteRoutes(h)
	if err != nil {
		return fmt.Errorf("reach members elsewhere: %w", err)
	}
	errs = append(errs, n.leadTo(ctx, h, existing, kind, wire))
	for addr, list := range existing {
		if _, wanted := n.remote[addr]; !wanted {
			errs = append(errs, removeRoutes(h, list))
		}
	}
	if kind == records.TunnelWireGuard && ctx.Err() == nil {
		errs = append(errs, n.tunnel.remove(h))
	}
	return errors.Join(errs...)
}

// leadTo makes the routes to members elsewhere, of which those that exist are given.
func (n *Network) leadTo(ctx context.Context, h *netlink.Handle, existing map[netip.Addr][]netlink.Route, kind string, wire *wireState) error {
	var errs []error
	hops := map[Location]*netlink.Route{} // nil: there is no way
	for _, addr := range slices.SortedFunc(maps.Keys(n.remote), netip.Addr.Compare) {
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		at := n.remote[addr]
		hop, known := hops[at]
		if !known {
			var err error
			hop, err = n.nextHop(h, at, kind, wire)
			if err != nil {
				errs = append(errs, fmt.Errorf("reach members of host %s: %w", at.Host, err))
			}
			hops[at] = hop
		}
		if hop == nil {
			if kind == records.TunnelWireGuard {
				errs = append(errs, removeRoutes(h, n.wire.beside(h, existing[addr])))
			}
			continue // an existing route may lead there again
		}
		want := *hop
		want.Dst = hostPrefix(addr)
		if have := existing[addr]; len(have) == 1 && have[0].LinkIndex == want.LinkIndex && have[0].Gw.Equal(want.Gw) && have[0].Src.Equal(want.Src) {
			continue
		}
		if err := h.RouteReplace(&want); err != nil {
			errs = append(errs, fmt.Errorf("add route %s via %s: %w", addr, at.Host, err))
		}
	}
	return errors.Join(errs...)
}

// remoteRoutes are the routes to members elsewhere that there are, by address.
func (n *Network) remoteRoutes(h *netlink.Handle) (map[netip.Addr][]netlink.Route, error) {
	all, err := routes(h, 0)
	if err != nil {
		return nil, err
	}
	existing := map[netip.Addr][]netlink.Route{}
	for _, r := range all {
		if n.isRemoteRoute(r) {
			addr := prefixOf(r.Dst).Addr()
			existing[addr] = append(existing[addr], r)
		}
	}
	return existing, nil
}

func removeRoutes(h *netlink.Handle, list []netlink.Route) error {
	var errs []error
	for _, r := range list {
		if err := h.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("remove route %s: %w", r.Dst, err))
		}
	}
	return errors.Join(errs...)
}

// remoteMetric marks our routes to members elsewhere. It is weaker than that of a member
// here: who arrives is reached at once, who left as soon as its route here is gone.
func (n *node) remoteMetric() int { return 1<<29 | n.mark() }

func (n *node) isRemoteRoute(r netlink.Route) bool {
	return r.Protocol == protocol && r.Priority == n.remoteMetric()
}

// nextHop is the way to the members of a node, but for their address.
func (n *Network) nextHop(h *netlink.Handle, at Location, kind string, wire *wireState) (*netlink.Route, error) {
	if kind == records.TunnelWireGuard {
		if r := n.wire.route(wire, at.Node); r != nil || wire == nil { // without any, it is said already why
			return r, nil
		}
		return nil, fmt.Errorf("node %s has no WireGuard, and the cluster uses nothing else between hosts", at.Node)
	}
	r, err := n.plainHop(h, at.Host) // also where it is not taken: packets may still come by it
	if kind == records.TunnelBoth && wire != nil && wire.reached(at.Node) {
		return n.wire.route(wire, at.Node), nil
	}
	return r, err
}

// plainHop is the way without WireGuard.
func (n *Network) plainHop(h *netlink.Handle, host netip.Addr) (*netlink.Route, error) {
	if !host.Is4() {
		return nil, fmt.Errorf("%s is not an IPv4 address", host)
	}
	r := &netlink.Route{
		Gw: host.AsSlice(), Protocol: protocol, Table: unix.RT_TABLE_MAIN, Priority: n.remoteMetric(),
		Flags: int(netlink.FLAG_ONLINK),
	}
	way, err := h.RouteGet(host.AsSlice())
	if err != nil || len(way) == 0 {
		return nil, fmt.Errorf("no route to it: %w", err)
	}
	near := way[0].Gw == nil && way[0].Type == unix.RTN_UNICAST
	switch {
	case way[0].Type == unix.RTN_LOCAL:
		return nil, errors.New("that is an address of this host")
	case near && n.cfg.Mode != ModeVXLAN:
		r.LinkIndex = way[0].LinkIndex
		return r, nil
	case n.cfg.Mode == ModeRoutes:
		return nil, fmt.Errorf("it is on none of this host's links, and --network-mode %s does not use a tunnel", ModeRoutes)
	}
	link, err := n.tunnel.ensure(h, way[0].Src)
	if err != nil {
		return nil, err
	}
	if err := n.tunnel.addHost(h, link, host); err != nil {
		return nil, err
	}
	r.LinkIndex = link.Attrs().Index
	return r, nil
}

// HostAddress is the IPv4 address by which other hosts know this one, as far as its
// routes show: that of the default route, else the only one there is; zero when there
// is none or a choice. every are all that might be, ascending.
func HostAddress() (shown netip.Addr, every []netip.Addr, err error) {
	h, err := open("")
	if err != nil {
		return netip.Addr{}, nil, err
	}
	defer h.Close()
	shown, every, err = addressVia(h)
	slices.SortFunc(every, netip.Addr.Compare)
	return shown, slices.Compact(every), err
}

func addressVia(h *netlink.Handle) (shown netip.Addr, every []netip.Addr, err error) {
	all, err := links(h)
	if err != nil {
		return netip.Addr{}, nil, err
	}
	ways, err := routes(h, 0)
	if err != nil {
		return netip.Addr{}, nil, err
	}
	byLink := map[int][]netip.Addr{}
	for _, link := range all {
		a := link.Attrs()
		if link.Type() == "dummy" || strings.HasPrefix(a.Alias, "stead:") {
			continue
		}
		addrs, err := addresses(h, link)
		if err != nil {
			return netip.Addr{}, nil, err
		}
		for _, x := range addrs {
			if p := prefixOf(x.IPNet).Addr(); x.Scope == unix.RT_SCOPE_UNIVERSE && !p.IsLoopback() {
				byLink[a.Index] = append(byLink[a.Index], p)
				every = append(every, p)
			}
		}
	}
	slices.SortStableFunc(ways, func(a, b netlink.Route) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, r := range ways {
		if prefixOf(r.Dst).Bits() != 0 || r.Type != unix.RTN_UNICAST {
			continue
		}
		if src, ok := netip.AddrFromSlice(r.Src); ok {
			return src.Unmap(), every, nil
		}
		if of := byLink[r.LinkIndex]; len(of) > 0 {
			return of[0], every, nil
		}
	}
	if len(every) == 1 {
		return every[0], every, nil
	}
	return netip.Addr{}, every, nil
}
