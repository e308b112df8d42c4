package proto

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// MaxMessageBytes bounds one message in either direction.
const MaxMessageBytes = 64 << 20

// connectTime bounds how long one server may take to shake hands.
const connectTime = 5 * time.Second

// Connect returns a connection to the server at address, host:port, once it has shown
// that it is what secure demands. The caller closes it. It blocks a few seconds at most.
func Connect(ctx context.Context, address string, secure *tls.Config) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	// Once by hand: of the connections that gRPC makes nobody is told why they fail.
	asGRPC := secure.Clone()
	asGRPC.NextProtos = []string{"h2"}
	probe, err := (&tls.Dialer{Config: asGRPC}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("reach server %s: %w", address, err)
	}
	probe.Close()
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(secure)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageBytes), grpc.MaxCallSendMsgSize(MaxMessageBytes)))
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
