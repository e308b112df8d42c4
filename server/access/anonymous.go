package access

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/trust"
)

// What callers without a certificate may take of a server: so many connections at once, in
// all and of one host, and a message so long.
const (
	AnonymousAll   = 64
	AnonymousEach  = 16
	AnonymousBytes = 64 << 10

	anonymousCalls   = 4 // at once, on each connection
	anonymousHeaders = 8 << 10
	anonymousTime    = 30 * time.Second
)

// HandshakesEach bounds the handshakes under way at once with one host, handshakesAll with
// all: each holds some 10 KiB for at most connectTime.
const (
	HandshakesEach = 64
	handshakesAll  = 1024
)

// NodeBytes bounds a message of a node: its longest is that of all that lies in its trash.
const NodeBytes = 4 << 20

// innerListener hands over connections after their handshake to a gRPC server of their own:
// callers without a certificate, which get one service and little else, and nodes, which send
// shorter messages than people.
type innerListener struct {
	at     net.Addr
	conns  chan net.Conn
	limit  *limit        // of connections; nil: none
	closed chan struct{} // by Close
	once   sync.Once
}

func newInnerListener(at net.Addr, l *limit) *innerListener {
	return &innerListener{at: at, conns: make(chan net.Conn), limit: l, closed: make(chan struct{})}
}

// handshaken is a connection whose handshake is over.
type handshaken struct {
	net.Conn
	info    credentials.AuthInfo
	release func() // what the limit counts
}

// Close implements net.Conn.
func (h *handshaken) Close() error {
	h.release()
	return h.Conn.Close()
}

var errAnonymousFull = errors.New("too many connections without a certificate, of this host or in all")

// add hands a connection over, within the limit.
func (l *innerListener) add(conn net.Conn, info credentials.AuthInfo) error {
	h := &handshaken{conn, info, func() {}}
	if l.limit != nil {
		h.release = l.limit.take(hostOf(conn))
		if h.release == nil {
			return errAnonymousFull
		}
	}
	select {
	case l.conns <- h:
		return nil
	case <-l.closed:
		h.release()
		return net.ErrClosed
	}
}

// hostOf is where a connection comes from, without the port.
func hostOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

// Accept implements net.Listener.
func (l *innerListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *innerListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *innerListener) Addr() net.Addr { return l.at }

// handshakes are the credentials of the TCP listener: they pass each connection to the
// listener that serves it, and log handshakes that fail, once for each host and cause.
type handshakes struct {
	credentials.TransportCredentials
	authorizer *authorizer
	anonymous  *innerListener
	nodes      *innerListener
	limit      *limit
}

var errHandshakesFull = errors.New("too many handshakes are under way, with this host or in all")

// ServerHandshake implements credentials.TransportCredentials.
func (h handshakes) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	out, info, err := h.handshake(conn)
	if err == nil || errors.Is(err, credentials.ErrConnDispatched) {
		return out, info, err
	}
	cause := err
	switch op, isOp := errors.AsType[*net.OpError](err); {
	case errors.Is(err, errHandshakesFull):
		h.authorizer.refusals.count(limitHandshakes)
	case errors.Is(err, errAnonymousFull):
		h.authorizer.refusals.count(limitAnonymous)
	case isOp:
		cause = op.Err // without the ports, which would make a new cause of each
	}
	h.authorizer.logRefusal("somebody at "+hostOf(conn), "TLS handshake", cause)
	return nil, nil, err
}

func (h handshakes) handshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	release := h.limit.take(hostOf(conn))
	if release == nil {
		return nil, nil, errHandshakesFull
	}
	defer release()
	out, info, err := h.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		return nil, nil, err
	}
	inner := h.innerFor(info)
	if inner == nil {
		return out, info, nil
	}
	if err := inner.add(out, info); err != nil {
		return nil, nil, err
	}
	return nil, nil, credentials.ErrConnDispatched
}

// innerFor is the listener that serves a connection; nil: the one that accepted it.
func (h handshakes) innerFor(info credentials.AuthInfo) *innerListener {
	t, ok := info.(credentials.TLSInfo)
	if !ok || len(t.State.VerifiedChains) == 0 {
		return h.anonymous
	}
	if who, err := trust.SubjectOf(t.State.VerifiedChains[0][0]); err == nil && who.Role != trust.RoleNode {
		return nil
	}
	return h.nodes
}

// Clone implements credentials.TransportCredentials.
func (h handshakes) Clone() credentials.TransportCredentials {
	h.TransportCredentials = h.TransportCredentials.Clone()
	return h
}

// afterHandshake are the credentials of connections out of an innerListener.
type afterHandshake struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (afterHandshake) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	h, ok := conn.(*handshaken)
	if !ok {
		return nil, nil, errors.New("the connection comes from elsewhere")
	}
	return h, h.info, nil
}

// Clone implements credentials.TransportCredentials.
func (a afterHandshake) Clone() credentials.TransportCredentials {
	return afterHandshake{a.TransportCredentials.Clone()}
}

// newAnonymousServer serves joining, and an error for all else.
func (s *Server) newAnonymousServer(ctx context.Context, a *authorizer, secure credentials.TransportCredentials) *grpc.Server {
	g := newGRPC(ctx, s.cfg.Logger, nil, append(a.options(),
		grpc.Creds(afterHandshake{secure}), grpc.MaxRecvMsgSize(AnonymousBytes), grpc.MaxConcurrentStreams(anonymousCalls),
		grpc.MaxHeaderListSize(anonymousHeaders),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: never, MaxConnectionAge: anonymousTime, MaxConnectionAgeGrace: StopTime}),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.Unimplemented, "there is no such call") }))...)
	proto.RegisterJoinServer(g, &joinAPI{authority: a.authority, log: s.cfg.Logger})
	return g
}
