package server

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
)

// What those without a certificate may take of a server.
const (
	strangers     = 64 // connections at once
	strangerCalls = 4  // at once, on each
	strangerBytes = 64 << 10
	strangerTime  = 30 * time.Second
)

// lobby is where connections without a certificate go after their handshake: to a gRPC
// server of their own, which has one service and takes little. It is that server's
// listener.
type lobby struct {
	at     net.Addr
	came   chan net.Conn
	places chan struct{} // holds one for each connection
	over   chan struct{} // closed by Close
	once   sync.Once
}

func newLobby(at net.Addr) *lobby {
	return &lobby{at: at, came: make(chan net.Conn), places: make(chan struct{}, strangers), over: make(chan struct{})}
}

// met is a connection whose handshake is over.
type met struct {
	net.Conn
	info credentials.AuthInfo
	left func() // gives the place free
}

// Close implements net.Conn.
func (m *met) Close() error {
	m.left()
	return m.Conn.Close()
}

// enter takes a connection over, if there is a place for it.
func (l *lobby) enter(conn net.Conn, info credentials.AuthInfo) error {
	select {
	case l.places <- struct{}{}:
	default:
		return errors.New("too many without a certificate are here at once")
	}
	m := &met{conn, info, sync.OnceFunc(func() { <-l.places })}
	select {
	case l.came <- m:
		return nil
	case <-l.over:
		m.left()
		return net.ErrClosed
	}
}

// Accept implements net.Listener.
func (l *lobby) Accept() (net.Conn, error) {
	select {
	case conn := <-l.came:
		return conn, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *lobby) Close() error {
	l.once.Do(func() { close(l.over) })
	return nil
}

// Addr implements net.Listener.
func (l *lobby) Addr() net.Addr { return l.at }

// handshakes sends those without a certificate into the lobby, and logs handshakes that
// fail, once for each host and cause.
type handshakes struct {
	credentials.TransportCredentials
	gate  *gate
	lobby *lobby
}

// ServerHandshake implements credentials.TransportCredentials.
func (h handshakes) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	out, info, err := h.TransportCredentials.ServerHandshake(conn)
	if t, ok := info.(credentials.TLSInfo); err == nil && (!ok || len(t.State.VerifiedChains) == 0) {
		if err = h.lobby.enter(out, info); err == nil {
			return nil, nil, credentials.ErrConnDispatched
		}
	}
	if err != nil {
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		cause := err
		if op, ok := errors.AsType[*net.OpError](err); ok {
			cause = op.Err // without the ports, which would make a new cause of each
		}
		h.gate.refused("somebody at "+host, "TLS handshake", cause)
		return nil, nil, err
	}
	return out, info, nil
}

// Clone implements credentials.TransportCredentials.
func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{h.TransportCredentials.Clone(), h.gate, h.lobby}
}

// introduced are the credentials of connections that come out of a lobby.
type introduced struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (introduced) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	m, ok := conn.(*met)
	if !ok {
		return nil, nil, errors.New("the connection comes from elsewhere")
	}
	return m, m.info, nil
}

// Clone implements credentials.TransportCredentials.
func (i introduced) Clone() credentials.TransportCredentials {
	return introduced{i.TransportCredentials.Clone()}
}

// strangersDoor serves the lobby: joining, and a word for all else.
func (s *Server) strangersDoor(ctx context.Context, gate *gate, secure credentials.TransportCredentials) *grpc.Server {
	g := newGRPC(ctx, s.cfg.Logger, append(gate.options(),
		grpc.Creds(introduced{secure}), grpc.MaxRecvMsgSize(strangerBytes), grpc.MaxConcurrentStreams(strangerCalls),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: strangerTime, MaxConnectionAgeGrace: stopTime}),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.Unimplemented, "there is no such call") }))...)
	proto.RegisterJoinServer(g, &joins{authority: gate.authority})
	return g
}
