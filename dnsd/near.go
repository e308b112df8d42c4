package dnsd

import (
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// near says who is served as a neighbour: members, and this host under any of
// its addresses.
type near struct {
	members netip.Prefix
	list    func() []netip.Addr // the host's addresses
	own     atomic.Pointer[ownAddresses]
}

// ownAddresses are those of this host as of a moment.
type ownAddresses struct {
	addrs []netip.Addr
	until time.Time // then they are read again; they are not read for each query
}

// has reports whether addr is near; an invalid address is not.
func (n *near) has(addr netip.Addr) bool {
	if !addr.IsValid() {
		return false
	}
	if addr.IsLoopback() || n.members.Contains(addr) {
		return true
	}
	own := n.own.Load()
	if own == nil || time.Now().After(own.until) {
		own = &ownAddresses{addrs: n.list(), until: time.Now().Add(time.Second)}
		n.own.Store(own)
	}
	return slices.Contains(own.addrs, addr)
}

// clientAddr is the address of the other end of a connection; zero if it has none.
func clientAddr(from net.Addr) netip.Addr {
	var addr netip.Addr
	switch from := from.(type) {
	case *net.UDPAddr:
		addr = from.AddrPort().Addr()
	case *net.TCPAddr:
		addr = from.AddrPort().Addr()
	}
	return addr.Unmap().WithZone("")
}

// hostAddresses are this host's addresses; none when they cannot be read.
func hostAddresses() []netip.Addr {
	own, _ := net.InterfaceAddrs()
	var addrs []netip.Addr
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			addrs = append(addrs, p.Addr())
		}
	}
	return addrs
}
