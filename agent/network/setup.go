package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
)

// ErrOverlap is wrapped by Setup's error when the host already uses a part of the
// members' range, or the gateway's address. Nothing was changed then.
var ErrOverlap = errors.New("overlaps the host's network")

// Setup prepares the host: first the unreachable route over the CIDR, then the
// gateway's address, forwarding and masquerading. It may be repeated, also by the
// next process, and puts back what is missing. Before the first change it looks
// for anything of the host's that overlaps (ErrOverlap).
func (n *Network) Setup(ctx context.Context) (err error) {
	defer wrap.Error(&err, "set up network")
	n.mu.Lock()
	defer n.mu.Unlock()
	h, err := n.host()
	if err != nil {
		return err
	}
	defer h.Close()
	if err := n.checkOverlap(h); err != nil {
		return err
	}
	if err := n.setUpHost(ctx, h); err != nil {
		return err
	}
	if !n.ready && n.cfg.Names != nil {
		if err := n.cfg.Names(ctx); err != nil {
			return err
		}
	}
	if !n.ready {
		n.cfg.Logger.Info("network set up", "cidr", n.cfg.CIDR.String(), "gateway", n.cfg.Gateway.String())
	}
	n.ready = true
	return errors.Join(n.updateRemoteRoutes(ctx, h), n.policies.repair(h), n.services.repair(h))
}

// setUpHost puts everything in place that is not a member's.
func (n *Network) setUpHost(ctx context.Context, h *netlink.Handle) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	return inOrder(
		step{"", ctx.Err},
		step{"add unreachable route " + n.cfg.CIDR.String(), func() error { return h.RouteReplace(n.unreachable()) }},
		step{"bring lo up", func() error { return h.LinkSetUp(lo) }},
		step{"add gateway " + n.cfg.Gateway.String() + " to lo", func() error { return h.AddrReplace(lo, n.gateway()) }},
		step{"", func() error { return n.sysctl("net/ipv4/ip_forward", "1") }},
		step{"", n.nat.masquerade},
	)
}

// unreachable is the route that no member's traffic falls through.
func (n *node) unreachable() *netlink.Route {
	return &netlink.Route{
		Dst: ipNet(n.cfg.CIDR), Type: unix.RTN_UNREACHABLE, Table: unix.RT_TABLE_MAIN,
		Protocol: protocol, Priority: n.metric(),
	}
}

func (n *node) isUnreachable(r netlink.Route) bool {
	return r.Protocol == protocol && r.Type == unix.RTN_UNREACHABLE && r.Priority == n.metric()
}

// gateway is the address on lo. Its scope keeps it from being chosen as the
// source of the host's own traffic to elsewhere.
func (n *node) gateway() *netlink.Addr {
	return &netlink.Addr{IPNet: hostPrefix(n.cfg.Gateway), Label: n.label(), Scope: int(netlink.SCOPE_LINK)}
}

// checkOverlap finds what on the host is not ours and collides.
func (n *Network) checkOverlap(h *netlink.Handle) error {
	all, err := links(h)
	if err != nil {
		return err
	}
	names, ours := map[int]string{}, map[int]bool{}
	for _, link := range all {
		names[link.Attrs().Index] = link.Attrs().Name
		ours[link.Attrs().Index] = strings.HasPrefix(link.Attrs().Alias, n.aliasPrefix())
	}
	addrs, err := addresses(h, nil)
	if err != nil {
		return err
	}
	ownGateway := false
	for _, a := range addrs {
		p := prefixOf(a.IPNet)
		own := a.Label == n.label() || a.Label == n.tunnelLabel() || a.Label == n.wire.wireLabel()
		ownGateway = ownGateway || own && p.Addr() == n.cfg.Gateway
		switch {
		case p.Addr() == n.cfg.Gateway && !own:
			return fmt.Errorf("gateway %s is an address of %s already: %w", n.cfg.Gateway, names[a.LinkIndex], ErrOverlap)
		case p.Masked().Overlaps(n.cfg.CIDR):
			return fmt.Errorf("address %s of %s is in the members' range %s; choose a free range with --cidr: %w",
				p, names[a.LinkIndex], n.cfg.CIDR, ErrOverlap)
		}
	}
	all4, err := routes(h, 0)
	if err != nil {
		return err
	}
	for _, r := range all4 {
		p := prefixOf(r.Dst)
		if n.isUnreachable(r) || n.isRemoteRoute(r) || n.isServiceRoute(r) || r.Table == (answerWays{n.node}).table() || r.Protocol == protocol && ours[r.LinkIndex] {
			continue
		}
		switch {
		case p == netip.PrefixFrom(n.cfg.Gateway, 32) && !ownGateway:
			return fmt.Errorf("route %s collides with the gateway %s: %w", describe(r, names), n.cfg.Gateway, ErrOverlap)
		case p.Bits() > 1 && p.Overlaps(n.cfg.CIDR): // /0, and /1 of VPNs, are default routes
			return fmt.Errorf("route %s overlaps the members' range %s; choose a free range with --cidr: %w",
				describe(r, names), n.cfg.CIDR, ErrOverlap)
		}
	}
	return nil
}

// describe writes a route as `ip route` does.
func describe(r netlink.Route, names map[int]string) string {
	s := prefixOf(r.Dst).String()
	if r.Gw != nil {
		s += " via " + r.Gw.String()
	}
	if name := names[r.LinkIndex]; name != "" {
		s += " dev " + name
	}
	s += fmt.Sprintf(" proto %d", r.Protocol)
	if r.Table != unix.RT_TABLE_MAIN {
		s += fmt.Sprintf(" table %d", r.Table)
	}
	return s
}

// Assignment is one member that should be attached.
type Assignment struct {
	ID      spec.Identity
	NetNS   string
	Address netip.Addr
	Ports   []spec.HostPort
}

// Repair puts back what is missing of the host's part and of the given members'.
// It continues after an error and returns all of them.
func (n *Network) Repair(ctx context.Context, wanted []Assignment) error {
	errs := []error{n.Setup(ctx)}
	for _, a := range wanted {
		errs = append(errs, n.Attach(ctx, a.ID, a.NetNS, a.Address, a.Ports...))
	}
	return errors.Join(errs...)
}

// Teardown removes everything of this node's: links, tunnel, tables, gateway, routes.
// net.ipv4.ip_forward stays as it is.
func (n *Network) Teardown(ctx context.Context) (err error) {
	defer wrap.Error(&err, "tear down network")
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready = false
	ids, err := n.Attached(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := n.Detach(ctx, id); err != nil {
			return err
		}
	}
	if err := n.dropTable(n.table()); err != nil {
		return err
	}
	h, err := n.host()
	if err != nil {
		return err
	}
	defer h.Close()
	n.remote, n.nodes, n.said = map[netip.Addr]Location{}, nil, nil
	if err := errors.Join(n.updateRemoteRoutes(ctx, h), n.tunnel.remove(h), n.wire.remove(h), n.dropTable(n.shieldTable()), n.services.remove(h), n.policies.remove()); err != nil {
		return err
	}
	addrs, err := addresses(h, nil)
	if err != nil {
		return err
	}
	for _, a := range slices.DeleteFunc(addrs, func(a netlink.Addr) bool { return a.Label != n.label() }) {
		lo, err := h.LinkByIndex(a.LinkIndex)
		if err == nil {
			err = h.AddrDel(lo, &a)
		}
		if err != nil {
			return fmt.Errorf("remove gateway: %w", err)
		}
	}
	if err := h.RouteDel(n.unreachable()); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("remove unreachable route: %w", err)
	}
	return nil
}

// Detach removes the identity's host ports, its link and with it its route; see
// runtime.Network.
// It waits at most 5 s for the kernel.
func (n *Network) Detach(ctx context.Context, id spec.Identity) (err error) {
	defer wrap.Error(&err, "detach %s", id)
	h, err := n.host()
	if err != nil {
		return err
	}
	defer h.Close()
	if err := n.nat.unpublish(id); err != nil { // before the link, by which the next process knows of them
		return err
	}
	link, err := n.links.find(h, id)
	if err != nil || link == nil {
		return err
	}
	return remove(ctx, h, link)
}

// remove deletes a link and returns when it and its routes are gone.
func remove(ctx context.Context, h *netlink.Handle, link netlink.Link) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	attrs := link.Attrs()
	if err := h.LinkDel(link); err != nil && !isGone(err) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete link %s: %w", attrs.Name, err)
	}
	for {
		left, err := routes(h, attrs.Index)
		if err != nil {
			return err
		}
		now, err := h.LinkByName(attrs.Name)
		if err != nil && !isGone(err) {
			return fmt.Errorf("find link %s: %w", attrs.Name, err)
		}
		if len(left) == 0 && (err != nil || now.Attrs().Index != attrs.Index) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("link %s is still there: %w", attrs.Name, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// Attached lists the identities that have a link on this host, sorted.
func (n *Network) Attached(_ context.Context) (ids []spec.Identity, err error) {
	defer wrap.Error(&err, "list attached members")
	h, err := n.host()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	all, err := links(h)
	for _, link := range all {
		if id, ours := n.identityOf(link.Attrs().Alias); ours {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b spec.Identity) int { return strings.Compare(a.String(), b.String()) })
	return ids, err
}
