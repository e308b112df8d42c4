package proto

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTheKernelFindsOutThatAPeerIsGone: both sides of a connection have its options.
func TestTheKernelFindsOutThatAPeerIsGone(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err := dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	for side, c := range map[string]net.Conn{"client": ours, "server": theirs} {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = raw.Control(func(fd uintptr) {
			for _, o := range []struct {
				name         string
				level, which int
				want         int
			}{
				{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
				{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 10},
				{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
				{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 15000},
			} {
				if got, err := unix.GetsockoptInt(int(fd), o.level, o.which); err != nil || got != o.want {
					t.Errorf("%s: %s is %d, %v; want %d", side, o.name, got, err, o.want)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
