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
	"github.com/stead-project/stead/trust"
)

// What those without a certificate may take of a server.
const (
	strangers       = 64 // connections at once
	strangersEach   = 16 // of one host
	strangerCalls   = 4  // at once, on each
	strangerBytes   = 64 << 10
	strangerHeaders = 8 << 10
	strangerTime    = 30 * time.Second
)

// Handshakes under way at once, in all and with one host: each holds some 10 KiB for at most
// connectTime.
const (
	handshakesAll  = 1024
	handshakesEach = 64
)

// nodeBytes bounds a message of a node: its longest is that of all that lies in its trash.
const nodeBytes = 4 << 20

// lobby is where connections go after their handshake when a gRPC server of their own
// answers them: those without a certificate, which get one service and little else, and
// those of nodes, which send shorter messages than people. It is that server's listener.
type lobby struct {
	at     net.Addr
	came   chan net.Conn
	places *places       // one for each connection; nil: as many as come
	over   chan struct{} // closed by Close
	once   sync.Once
}

func newLobby(at net.Addr, p *places) *lobby {
	return &lobby{at: at, came: make(chan net.Conn), places: p, over: make(chan struct{})}
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

// errStrangers: the lobby is full.
var errStrangers = errors.New("too many without a certificate are here at once, of this host or in all")

// enter takes a connection over, if there is a place for it.
func (l *lobby) enter(conn net.Conn, info credentials.AuthInfo) error {
	m := &met{conn, info, func() {}}
	if l.places != nil {
		if m.left = l.places.take(hostOf(conn)); m.left == nil {
			return errStrangers
		}
	}
	select {
	case l.came <- m:
		return nil
	case <-l.over:
		m.left()
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

// handshakes sends each connection to its door, and logs handshakes that fail, once for
// each host and cause.
type handshakes struct {
	credentials.TransportCredentials
	gate      *gate
	strangers *lobby
	nodes     *lobby
	places    *places
}

// errHandshakes: there are too many already.
var errHandshakes = errors.New("too many handshakes are under way, with this host or in all")

// ServerHandshake implements credentials.TransportCredentials.
func (h handshakes) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	out, info, err := h.shake(conn)
	if err == nil || errors.Is(err, credentials.ErrConnDispatched) {
		return out, info, err
	}
	cause := err
	switch op, isOp := errors.AsType[*net.OpError](err); {
	case errors.Is(err, errHandshakes):
		h.gate.book.count(limitHandshakes)
	case errors.Is(err, errStrangers):
		h.gate.book.count(limitStrangers)
	case isOp:
		cause = op.Err // without the ports, which would make a new cause of each
	}
	h.gate.refused("somebody at "+hostOf(conn), "TLS handshake", cause)
	return nil, nil, err
}

func (h handshakes) shake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	leave := h.places.take(hostOf(conn))
	if leave == nil {
		return nil, nil, errHandshakes
	}
	defer leave()
	out, info, err := h.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		return nil, nil, err
	}
	if door := h.door(info); door != nil {
		if err = door.enter(out, info); err == nil {
			err = credentials.ErrConnDispatched
		}
		return nil, nil, err
	}
	return out, info, nil
}

// door is the lobby in which a connection is answered; nil: where it came.
func (h handshakes) door(info credentials.AuthInfo) *lobby {
	t, ok := info.(credentials.TLSInfo)
	if !ok || len(t.State.VerifiedChains) == 0 {
		return h.strangers
	}
	if who, err := trust.SubjectOf(t.State.VerifiedChains[0][0]); err == nil && who.Role != trust.RoleNode {
		return nil
	}
	return h.nodes
}

// Clone implements credentials.TransportCredentials.
func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{h.TransportCredentials.Clone(), h.gate, h.strangers, h.nodes, h.places}
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
		grpc.MaxHeaderListSize(strangerHeaders),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: strangerTime, MaxConnectionAgeGrace: stopTime}),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.Unimplemented, "there is no such call") }))...)
	proto.RegisterJoinServer(g, &joins{authority: gate.authority, log: s.cfg.Logger})
	return g
}
