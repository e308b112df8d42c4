package box

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stead-project/stead/proto"
)

// bubble runs a test in a bubble of its own: its clock moves on when all that is in it waits,
// so that no machine is too slow for it. Nothing in it may use sockets or start programs.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// pipe is a server's listener in memory, for callers who count as root.
type pipe struct{ *bufconn.Listener }

func newPipe() *pipe { return &pipe{bufconn.Listen(1 << 20)} }

// Accept implements net.Listener.
func (p *pipe) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return local{conn}, nil
}

// local is a connection as of a unix socket, of which the server knows that root calls.
type local struct{ net.Conn }

// LocalAddr implements net.Conn.
func (local) LocalAddr() net.Addr { return &net.UnixAddr{Name: "box", Net: "unix"} }

func (p *pipe) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///box", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(proto.MaxMessageBytes), grpc.MaxCallSendMsgSize(proto.MaxMessageBytes)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.DialContext(ctx) }))
}
