package dnsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"
)

// sockets are the UDP and TCP sockets of one address, on the same port.
type sockets struct {
	addr netip.AddrPort
	udp  *net.UDPConn
	tcp  net.Listener
}

// bind binds both sockets, or none.
func bind(ctx context.Context, addr netip.AddrPort, maxConns int) (*sockets, error) {
	const tries = 8 // port 0: the port that UDP got may be taken for TCP
	var k *sockets
	var err error
	for range tries {
		k, err = bindOnce(ctx, addr, maxConns)
		if err == nil || addr.Port() != 0 {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: another DNS server holds this address: %w", addr, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("listen on %s: it is not an address of this host (yet): %w", addr, err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return k, nil
}

func bindOnce(ctx context.Context, addr netip.AddrPort, maxConns int) (*sockets, error) {
	var lc net.ListenConfig
	udp, err := lc.ListenPacket(ctx, "udp", addr.String())
	if err != nil {
		return nil, err
	}
	bound := netip.AddrPortFrom(addr.Addr(), udp.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	tcp, err := lc.Listen(ctx, "tcp", bound.String())
	if err != nil {
		return nil, errors.Join(err, udp.Close())
	}
	return &sockets{addr: bound, udp: udp.(*net.UDPConn), tcp: netutil.LimitListener(tcp, maxConns)}, nil
}

func (k *sockets) close() {
	k.udp.Close()
	k.tcp.Close()
}

// servers are what serves the two sockets. Usual questions over UDP are answered
// from the zone (nil: none) as packed, and counted; h has the rest. On an unspecified address h
// has all: there each answer needs the address that it comes from.
func (k *sockets) servers(h dns.Handler, zone *atomic.Pointer[Zone], count *tally) ([]*dns.Server, error) {
	udp := net.PacketConn(k.udp)
	if zone != nil && !k.addr.Addr().IsUnspecified() {
		p, err := newPackedConn(k.udp, zone, count)
		if err != nil {
			return nil, fmt.Errorf("serve %s: %w", k.addr, err)
		}
		udp = p
	}
	return []*dns.Server{
		{PacketConn: udp, Handler: h, UDPSize: maxUDP},
		{Listener: k.tcp, Handler: h},
	}, nil
}
