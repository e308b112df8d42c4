package proto

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel finds out that the other side of a connection is gone. gRPC's own keepalive compares times of the wall
// clock (lastRead in its internal/transport), and cuts a good connection when that is set back.
const (
	// idleTime is how long nothing may come before the other side's kernel is asked, every probeTime.
	idleTime, probeTime = 10 * time.Second, 5 * time.Second
	// silentTime is how long the other side may leave unacknowledged what it was sent.
	silentTime = 15 * time.Second
)

var alive = net.KeepAliveConfig{Enable: true, Idle: idleTime, Interval: probeTime, Count: 1}

func dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTime, KeepAliveConfig: alive, Control: boundSilence}).DialContext(ctx, "tcp", address)
}

// Listen is net.Listen of TCP for servers that Connect reaches. A connection whose other side is gone ends
// after 15 s.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{KeepAliveConfig: alive, Control: boundSilence}).Listen(ctx, "tcp", address)
}

// boundSilence bounds how long a connection, or those of a listener, wait for acknowledgements.
func boundSilence(_, _ string, c syscall.RawConn) error {
	var err error
	control := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silentTime.Milliseconds()))
	})
	if control != nil {
		return control
	}
	return err
}
