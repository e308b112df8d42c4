package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/trust"
)

// callTimeout bounds every unary call of the command line.
const callTimeout = 30 * time.Second

// cli holds the options that all client verbs share.
type cli struct {
	server    string // "": that of config, or this host's socket
	config    string // a client file; "": none
	namespace string
}

const socketScheme = "unix://"

// dialSocket connects to the server of this host behind address, unix:///path; "": the
// usual one.
func dialSocket(address string) (*grpc.ClientConn, error) {
	if address == "" {
		address = socketScheme + server.DefaultSocket
	}
	socket, ok := strings.CutPrefix(address, socketScheme)
	if !ok {
		return nil, usageError{fmt.Errorf("--server %q needs a client file (--config); without one use a socket of this host: unix:///path", address)}
	}
	return server.Dial(socket)
}

// dial connects to the server that was named, to one of the client file, or to this host's.
func (c *cli) dial(ctx context.Context) (*grpc.ClientConn, error) {
	if c.config == "" || strings.HasPrefix(c.server, socketScheme) {
		return dialSocket(c.server)
	}
	mine, err := trust.Load(c.config)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	servers := mine.Servers
	if c.server != "" {
		servers = []string{c.server}
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("--config: %s contains no server address; add --server HOST:PORT", c.config)
	}
	conn, _, err := proto.ConnectAny(ctx, servers, 0, mine.TLS)
	return conn, err
}

// with calls f with a connected client.
func (c *cli) with(f func(proto.ControlClient) error) error {
	return c.connected(context.Background(), func(conn *grpc.ClientConn) error { return f(proto.NewControlClient(conn)) })
}

// connected calls f with a connection.
func (c *cli) connected(ctx context.Context, f func(*grpc.ClientConn) error) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = f(conn)
	if status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "connect") {
		at := c.server
		if at == "" {
			at = socketScheme + server.DefaultSocket
		}
		if c.config != "" {
			return fmt.Errorf("connection to the server failed: %s", explainError(err))
		}
		return fmt.Errorf("no server answers at %s; start one with 'stead dev', or choose another with --server", at)
	}
	return err
}

// call bounds one unary call.
func call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeout)
}

// explainError is the text of an error for users: that of a gRPC status without its code.
func explainError(err error) string { return plainLines(errorText(err)) }

func errorText(err error) string {
	if s, ok := status.FromError(err); ok && s.Code() != codes.Unknown {
		if s.Code() == codes.DeadlineExceeded {
			return "the server did not answer in time; check it with 'stead version'"
		}
		return s.Message()
	}
	return err.Error()
}

// object is what the server shows of one thing.
type object = records.Shown[json.RawMessage]

// decode reads an object and its spec and status into the given records (nil: skip).
func decode(o *proto.Object, spec, status any) (object, error) {
	var out object
	if err := json.Unmarshal(o.GetJson(), &out); err != nil {
		return out, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	for _, part := range []struct {
		raw  json.RawMessage
		into any
	}{{out.Spec, spec}, {out.Status, status}} {
		if part.into == nil || len(part.raw) == 0 {
			continue
		}
		if err := json.Unmarshal(part.raw, part.into); err != nil {
			return out, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return out, nil
}

// userName is the name of the user: of the one who called sudo, if anybody did.
func userName() string {
	for _, name := range []string{os.Getenv("SUDO_USER"), os.Getenv("USER"), os.Getenv("LOGNAME")} {
		if name != "" {
			return name
		}
	}
	return ""
}
