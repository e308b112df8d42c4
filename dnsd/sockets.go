package dnsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"
)

// pair is the UDP and TCP socket of one address, on the same port.
type pair struct {
	addr netip.AddrPort
	udp  *net.UDPConn
	tcp  *net.TCPListener
}

// bind binds both sockets, or none.
func bind(ctx context.Context, addr netip.AddrPort) (*pair, error) {
	const tries = 8 // port 0: the port that UDP got may be taken for TCP
	var k *pair
	var err error
	for range tries {
		k, err = bindOnce(ctx, addr)
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

func bindOnce(ctx context.Context, addr netip.AddrPort) (*pair, error) {
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
	return &pair{addr: bound, udp: udp.(*net.UDPConn), tcp: tcp.(*net.TCPListener)}, nil
}

func (k *pair) close() {
	k.udp.Close()
	k.tcp.Close()
}

// servers are what serves the two sockets. Usual questions over UDP are answered
// from the zone (nil: none) as packed, and counted; h has the rest. On an unspecified address h
// has all: there each answer needs the address that it comes from.
func (k *pair) servers(h dns.Handler, zone *atomic.Pointer[Zone], count *tally, maxConns int) ([]*dns.Server, error) {
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
		{Listener: netutil.LimitListener(k.tcp, maxConns), Handler: h},
	}, nil
}

// waitingBytes of questions may wait for us in the kernel, some thousand of them.
// One that is lost is asked again only after seconds.
const waitingBytes = 1 << 20

// batch is how many datagrams one system call reads or writes at most.
const batch = 64

// packedConn is a UDP socket that answers usual questions from the zone by itself,
// many with one system call. Who reads from it gets only the others.
type packedConn struct {
	*net.UDPConn
	raw   syscall.RawConn
	zone  *atomic.Pointer[Zone]
	tally *tally

	// What follows belongs to the one goroutine that reads.
	slots   [batch]slot
	in, out [batch]mmsghdr // those of out point into slots that were read
	got     int            // datagrams of in that were read
	at      int            // how many of them are done
	answers int            // of out that wait
	sent    int            // of them that are gone

	receive, send func(fd uintptr) bool // made once: closures are allocated
	errno         syscall.Errno         // of the last call

	mu      sync.Mutex
	stopped bool // nothing more is read
}

// stop ends the reading: what was read is answered, and ReadFrom then returns errStopped.
func (c *packedConn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	_ = c.UDPConn.SetReadDeadline(time.Unix(1, 0)) // else the socket is closed
}

// SetReadDeadline implements net.PacketConn; one that is stopped keeps its own.
func (c *packedConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	return c.UDPConn.SetReadDeadline(t)
}

func (c *packedConn) isStopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}

// slot is one datagram: its bytes and its sender.
type slot struct {
	buf  [maxUDP]byte
	from unix.RawSockaddrInet6 // room for IPv4, too
	vec  unix.Iovec
}

// mmsghdr is the kernel's struct of the same name.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

func newPackedConn(udp *net.UDPConn, zone *atomic.Pointer[Zone], count *tally) (*packedConn, error) {
	raw, err := udp.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := raw.Control(widen); err != nil {
		return nil, err
	}
	c := &packedConn{UDPConn: udp, raw: raw, zone: zone, tally: count}
	c.receive = func(fd uintptr) bool {
		n, errno := transfer(unix.SYS_RECVMMSG, fd, c.in[:])
		c.got, c.errno = n, errno
		return errno != unix.EAGAIN
	}
	c.send = func(fd uintptr) bool {
		n, errno := transfer(unix.SYS_SENDMMSG, fd, c.out[c.sent:c.answers])
		c.sent, c.errno = c.sent+n, errno
		return errno != unix.EAGAIN
	}
	return c, nil
}

// widen makes room for what waits, or as much as the kernel grants without root.
func widen(fd uintptr) {
	if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, waitingBytes) != nil {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, waitingBytes)
	}
}

// transfer is recvmmsg or sendmmsg; it does not block.
func transfer(call, fd uintptr, msgs []mmsghdr) (int, syscall.Errno) {
	for {
		n, _, errno := unix.Syscall6(call, fd, uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(n), 0
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// ReadFrom returns the next datagram that is not a usual question; the others that
// came before it are answered by then. One goroutine at a time may read.
func (c *packedConn) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		z := c.zone.Load()
		for c.at < c.got {
			i := c.at
			c.at++
			s, n := &c.slots[i], int(c.in[i].len)
			if z != nil {
				if size, kind := z.respond(s.buf[:], n); size > 0 {
					c.tally.add(kind, int(s.buf[3]&0xf))
					c.queue(i, size)
					continue
				}
			}
			if err := c.flush(); err != nil {
				return 0, nil, err
			}
			return copy(p, s.buf[:n]), s.addr(), nil
		}
		if err := c.flush(); err != nil {
			return 0, nil, err
		}
		if err := c.fetch(); err != nil {
			return 0, nil, err
		}
	}
}

// queue makes the first bytes of a slot an answer to its sender.
func (c *packedConn) queue(i, size int) {
	s := &c.slots[i]
	s.vec.SetLen(size)
	out := &c.out[c.answers].hdr
	out.Name, out.Namelen = c.in[i].hdr.Name, c.in[i].hdr.Namelen
	out.Iov = &s.vec
	out.SetIovlen(1)
	c.answers++
}

// flush sends the answers that wait. One that cannot be sent (to port 0, through
// a firewall) is lost alone.
func (c *packedConn) flush() error {
	for c.sent < c.answers {
		if err := c.raw.Write(c.send); err != nil {
			return err
		}
		if c.errno != 0 {
			c.sent++
		}
	}
	c.answers, c.sent = 0, 0
	return nil
}

// fetch waits for datagrams; all slots are free again.
func (c *packedConn) fetch() error {
	for i := range c.in {
		s, in := &c.slots[i], &c.in[i].hdr
		s.vec.Base = &s.buf[0]
		s.vec.SetLen(len(s.buf))
		in.Name, in.Namelen = (*byte)(unsafe.Pointer(&s.from)), unix.SizeofSockaddrInet6
		in.Iov = &s.vec
		in.SetIovlen(1)
	}
	c.at, c.got = 0, 0
	if err := c.raw.Read(c.receive); err != nil {
		c.got = 0
		if c.isStopped() {
			return errStopped
		}
		return err
	}
	if c.errno != 0 {
		return &net.OpError{Op: "read", Net: "udp", Err: os.NewSyscallError("recvmmsg", c.errno)}
	}
	return nil
}

// addr is the sender of the datagram.
func (s *slot) addr() net.Addr {
	if s.from.Family == unix.AF_INET {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(&s.from))
		return &net.UDPAddr{IP: net.IP(append([]byte(nil), four.Addr[:]...)), Port: port(&four.Port)}
	}
	a := &net.UDPAddr{IP: net.IP(append([]byte(nil), s.from.Addr[:]...)), Port: port(&s.from.Port)}
	if s.from.Scope_id != 0 {
		a.Zone = strconv.Itoa(int(s.from.Scope_id))
	}
	return a
}

// port reads a port as the kernel writes it: high byte first.
func port(p *uint16) int {
	b := (*[2]byte)(unsafe.Pointer(p))
	return int(b[0])<<8 | int(b[1])
}
