package proto

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// MaxMessageBytes bounds one message in either direction.
const MaxMessageBytes = 64 << 20

const (
	// dialTime bounds how long one server may take to be there at all, connectTime with
	// all that makes it known.
	dialTime    = 5 * time.Second
	connectTime = 15 * time.Second
)

// Connect returns a connection to the server at address, host:port, once it has shown
// that it is what secure demands. The caller closes it. It blocks 15 s at most.
func Connect(ctx context.Context, address string, secure *tls.Config) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if err := probe(ctx, address, secure); err != nil {
		return nil, fmt.Errorf("reach server %s: %w", address, err)
	}
	return NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(secure)), grpc.WithContextDialer(dial))
}

// NewClient returns a connection for calls of a server at target, with options of its own. The caller closes it.
func NewClient(target string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	options = append(options, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageBytes), grpc.MaxCallSendMsgSize(MaxMessageBytes)))
	return grpc.NewClient(target, append(options, checksServer()...)...)
}

// probe connects once by hand: of the connections that gRPC makes nobody is told why they
// fail. A server speaks first, and what it says to a certificate that it does not take
// comes after the handshake.
func probe(ctx context.Context, address string, secure *tls.Config) error {
	asGRPC := secure.Clone()
	asGRPC.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTime}, Config: asGRPC}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	if err := conn.SetReadDeadline(end); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// ConnectAny is Connect to the first of addresses that can be reached, from the at-th on and
// around. Which it was is returned, too. The error has all causes.
func ConnectAny(ctx context.Context, addresses []string, at int, secure func(address string) (*tls.Config, error)) (*grpc.ClientConn, int, error) {
	causes := []error{errors.New("no server can be reached")}
	for i := range addresses {
		n := (at + i) % len(addresses)
		config, err := secure(addresses[n])
		var conn *grpc.ClientConn
		if err == nil {
			conn, err = Connect(ctx, addresses[n], config)
		}
		if err == nil {
			return conn, n, nil
		}
		causes = append(causes, err)
	}
	return nil, at, errors.Join(causes...)
}
