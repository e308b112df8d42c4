package network

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// HostAddress is the IPv4 address by which other hosts know this one, as far as its
// routes show: that of the default route, else the only one there is; zero when there
// is none or a choice.
func HostAddress() (netip.Addr, error) {
	h, err := open("")
	if err != nil {
		return netip.Addr{}, err
	}
	defer h.Close()
	return hostAddress(h)
}

func hostAddress(h *netlink.Handle) (netip.Addr, error) {
	all, err := links(h)
	if err != nil {
		return netip.Addr{}, err
	}
	ways, err := routes(h, 0)
	if err != nil {
		return netip.Addr{}, err
	}
	byLink := map[int][]netip.Addr{}
	var every []netip.Addr
	for _, link := range all {
		a := link.Attrs()
		if link.Type() == "dummy" || strings.HasPrefix(a.Alias, "stead:") {
			continue
		}
		addrs, err := addresses(h, link)
		if err != nil {
			return netip.Addr{}, err
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
			return src.Unmap(), nil
		}
		if of := byLink[r.LinkIndex]; len(of) > 0 {
			return of[0], nil
		}
	}
	if len(every) == 1 {
		return every[0], nil
	}
	return netip.Addr{}, nil
}
