package dnsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Sockets are the UDP and the TCP socket of one address, on the same port, as file descriptors that do not block.
// Whoever has them may serve them, give them to another process, or only hold them: questions wait in them until
// somebody reads.
type Sockets struct {
	Addr     netip.AddrPort
	UDP, TCP int
}

// BindSockets binds both sockets of an address, or none; port 0 picks one. The caller closes them.
func BindSockets(ctx context.Context, addr netip.AddrPort) (Sockets, error) {
	k, err := bind(ctx, addr)
	if err != nil {
		return Sockets{}, err
	}
	defer k.close()
	s := Sockets{Addr: k.addr}
	if s.UDP, err = duplicate(k.udp); err != nil {
		return Sockets{}, fmt.Errorf("listen on %s: %w", addr, err)
	}
	if s.TCP, err = duplicate(k.tcp); err != nil {
		return Sockets{}, errors.Join(fmt.Errorf("listen on %s: %w", addr, err), unix.Close(s.UDP))
	}
	return s, nil
}

// duplicate is another descriptor of a socket, which Go's poller does not know.
func duplicate(c syscall.Conn) (fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	err2 := raw.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(err, err2)
}

// Close gives these descriptors up; the sockets last while somebody else has them.
func (k Sockets) Close() {
	unix.Close(k.UDP)
	unix.Close(k.TCP)
}

// Adopt has the server answer on sockets that exist, in place of Config.Listen. The caller keeps, and closes, the
// descriptors that it gave.
func (s *Server) Adopt(list []Sockets) error {
	if s.sockets != nil {
		return errors.New("dns: already listening")
	}
	for _, given := range list {
		k, err := adopt(given)
		if err != nil {
			s.Close()
			return fmt.Errorf("take over the sockets of %s: %w", given.Addr, err)
		}
		s.sockets = append(s.sockets, k)
	}
	return nil
}

func adopt(given Sockets) (*pair, error) {
	udp, err := conn(given.UDP, net.FilePacketConn)
	if err != nil {
		return nil, err
	}
	tcp, err := conn(given.TCP, net.FileListener)
	if err != nil {
		return nil, errors.Join(err, udp.Close())
	}
	u, okUDP := udp.(*net.UDPConn)
	t, okTCP := tcp.(*net.TCPListener)
	if !okUDP || !okTCP {
		return nil, errors.Join(errors.New("they are not one of UDP and one of TCP"), udp.Close(), tcp.Close())
	}
	return &pair{addr: given.Addr, udp: u, tcp: t}, nil
}

// conn makes what Go reads from of a descriptor, which it leaves as it is.
func conn[T any](fd int, of func(*os.File) (T, error)) (out T, err error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return out, err
	}
	f := os.NewFile(uintptr(own), "dns")
	defer f.Close()
	return of(f)
}
