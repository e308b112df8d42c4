package network

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// serviceMetric is that of the route by which the host itself comes to have packets to services.
func (n *node) serviceMetric() int { return 1<<28 | n.mark() }

// isServiceRoute reports whether a route is one of those of a range of services.
func (n *node) isServiceRoute(r netlink.Route) bool {
	return r.Protocol == protocol && r.Priority == n.serviceMetric() || n.isUnreachable(r) && prefixOf(r.Dst) != n.cfg.CIDR
}

// serviceRoutes are the routes of the range: one by which nothing leaves the host, and before it one to lo. By the
// first alone the host's own connections would fail before they are led. What goes to
// lo and was not led is rejected on its way; without the table it ends there. Packets of the host must fit
// into the tunnel, as it may be where they are led.
func (t *serviceTable) serviceRoutes(lo int) []*netlink.Route {
	nowhere := t.unreachable()
	nowhere.Dst = ipNet(t.rng)
	return []*netlink.Route{nowhere, {
		Dst: ipNet(t.rng), LinkIndex: lo, Scope: netlink.SCOPE_LINK, Src: t.cfg.Gateway.AsSlice(),
		Protocol: protocol, Table: unix.RT_TABLE_MAIN, Priority: t.serviceMetric(), MTU: t.cfg.MTU - vxlanOverhead,
	}}
}

// ensureRoutes makes the routes of services those of the range. It fails with ErrOverlap, and
// changes nothing, when the host uses a part of it.
func (t *serviceTable) ensureRoutes(h *netlink.Handle) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	all, err := routes(h, 0)
	if err != nil {
		return err
	}
	if err := t.checkRange(h, all); err != nil {
		return err
	}
	for _, r := range all {
		if !t.isServiceRoute(r) || prefixOf(r.Dst) == t.rng {
			continue
		}
		if err := h.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove route %s: %w", prefixOf(r.Dst), err)
		}
	}
	if !t.rng.IsValid() {
		return nil
	}
	for _, r := range t.serviceRoutes(lo.Attrs().Index) {
		if err := h.RouteReplace(r); err != nil {
			return fmt.Errorf("add route of services %s: %w", t.rng, err)
		}
	}
	return nil
}

// checkRange finds what of the host's uses a part of the range.
func (t *serviceTable) checkRange(h *netlink.Handle, all []netlink.Route) error {
	if !t.rng.IsValid() {
		return nil
	}
	addrs, err := addresses(h, nil)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if p := prefixOf(a.IPNet); p.Masked().Overlaps(t.rng) {
			return fmt.Errorf("address %s is in the range of services %s: %w", p, t.rng, ErrOverlap)
		}
	}
	for _, r := range all {
		if p := prefixOf(r.Dst); p.Bits() > 1 && p.Overlaps(t.rng) && !t.isServiceRoute(r) {
			return fmt.Errorf("route %s overlaps the range of services %s: %w", describe(r, nil), t.rng, ErrOverlap)
		}
	}
	return nil
}
