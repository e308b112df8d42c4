package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/trust"
)

// callTimeout bounds every unary call of the command line.
const callTimeout = 30 * time.Second

// cli is what all client verbs share: their options, and the server that these name. It
// connects with the first call, and bounds each unary call by callTimeout.
type cli struct {
	server    string // "": that of config, or this host's socket
	config    string // a client file; "": none
	namespace string
	words     []string // of the command line

	control proto.ControlClient
	trust   proto.TrustClient
	servers proto.ServersClient
	keyring proto.KeyringClient

	authority proto.AuthorityClient

	connecting sync.Mutex
	conn       *grpc.ClientConn // nil: no call yet

	telling     sync.WaitGroup // of what tells of a lost majority
	stopTelling context.CancelFunc
}

const socketScheme = "unix://"

// dialSocket connects to the server of this host behind address, unix:///path; "": the
// usual one.
func dialSocket(address string) (*grpc.ClientConn, error) {
	socket, ok := strings.CutPrefix(cmp.Or(address, socketScheme+server.DefaultSocket), socketScheme)
	if !ok {
		return nil, misuse("--server %q needs a client file (--config); without one use a socket of this host: unix:///path", address)
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
	if trust.Foreign(err) {
		err = fmt.Errorf("--config: %s is of another certificate authority than the servers, which may have been replaced: have a new file made with 'stead client create' (%w)", c.config, err)
	}
	return conn, err
}

// connect returns the connection, which close ends. When its server is lost, and others are known, it is one to these.
func (c *cli) connect(ctx context.Context) (_ *grpc.ClientConn, err error) {
	c.connecting.Lock()
	defer c.connecting.Unlock()
	if c.conn != nil && c.config != "" && c.conn.GetState() == connectivity.TransientFailure {
		next, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		c.conn.Close()
		c.conn = next
	}
	if c.conn == nil {
		c.conn, err = c.dial(ctx)
	}
	return c.conn, err
}

// dialed reports whether a server was ever called, by whatever goroutine.
func (c *cli) dialed() bool {
	c.connecting.Lock()
	defer c.connecting.Unlock()
	return c.conn != nil
}

func (c *cli) close() {
	if c.stopTelling != nil {
		c.stopTelling()
		c.telling.Wait()
	}
	if c.conn != nil {
		c.conn.Close()
	}
}

// Invoke implements grpc.ClientConnInterface.
func (c *cli) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return conn.Invoke(ctx, method, args, reply, options...)
}

// NewStream implements grpc.ClientConnInterface.
func (c *cli) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	return conn.NewStream(ctx, desc, method, options...)
}

// explain is the error of a verb, or, if no server answered, at which address that was.
func (c *cli) explain(err error) error {
	switch {
	case !c.dialed(), status.Code(err) != codes.Unavailable, !strings.Contains(err.Error(), "connect"):
		return err
	case c.config != "":
		return fmt.Errorf("connection to the server failed: %s", explainError(err))
	}
	return fmt.Errorf("no server answers at %s; start one with 'stead dev', or choose another with --server",
		cmp.Or(c.server, socketScheme+server.DefaultSocket))
}

// explainError is the text of an error for users: that of a gRPC status without its code.
func explainError(err error) string {
	text := err.Error()
	if s, ok := status.FromError(err); ok && s.Code() == codes.DeadlineExceeded {
		text = "the server did not answer in time; check it with 'stead version'"
	} else if ok && s.Code() != codes.Unknown {
		text = s.Message()
	}
	return plainLines(text)
}

type (
	shown[S, T any] = records.Shown[S, T]
	shownSet        = shown[spec.SetSpec, records.ShownSet]
	shownMember     = shown[records.Member, records.ShownMember]
	shownVolume     = shown[records.Volume, records.ShownVolume]
	shownNode       = shown[records.Node, records.ShownNode]
	shownRevision   = shown[records.Revision, any]
)

// decode reads what the server shows of one thing.
func decode[S, T any](o *proto.Object) (*shown[S, T], error) {
	out := &shown[S, T]{}
	if err := json.Unmarshal(o.GetJson(), out); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return out, nil
}

// list reads all that the server lists.
func list[S, T any](ctx context.Context, c *cli, r *proto.ListRequest) (out []*shown[S, T], err error) {
	got, err := c.control.List(ctx, r)
	for _, o := range got.GetObjects() {
		one, err := decode[S, T](o)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, err
}

// userName is the name of the user: of the one who called sudo, if sudo is used.
func userName() string {
	return cmp.Or(os.Getenv("SUDO_USER"), os.Getenv("USER"), os.Getenv("LOGNAME"))
}
