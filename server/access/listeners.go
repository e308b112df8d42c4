package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/audit"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

// CheckListen tells what is wrong with --listen and --advertise.
func CheckListen(listen string, advertise []string) error {
	if listen == "" {
		if len(advertise) > 0 {
			return errors.New("--advertise needs --listen")
		}
		return nil
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "" {
		return fmt.Errorf("listen on %q: write host:port", listen)
	}
	if ip, err := netip.ParseAddr(host); len(advertise) == 0 && (host == "" || err == nil && ip.IsUnspecified()) {
		return fmt.Errorf("listen on %q: that is every address of this host; say by --advertise host:port which one others shall use", listen)
	}
	for _, a := range advertise {
		if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" || port == "0" {
			return fmt.Errorf("advertise %q: write host:port", a)
		}
	}
	return nil
}

// Listeners are the open ways into a server; no call is answered before Run.
type Listeners struct {
	socket    net.Listener
	tcp       net.Listener // nil: other hosts are not listened to
	addresses []string
}

// Listen opens the unix socket and, unless listen is "", a TCP port for other hosts. The
// addresses that they use are advertise; none: listen, which then must be one.
func Listen(ctx context.Context, socket, listen string, advertise []string) (*Listeners, error) {
	l := &Listeners{addresses: advertise}
	var err error
	if l.socket, err = ListenSocket(socket); err != nil {
		return nil, err
	}
	if listen == "" {
		return l, nil
	}
	if l.tcp, err = proto.Listen(ctx, listen); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen for other hosts: %w", err)
	}
	if len(advertise) == 0 {
		host, _, _ := net.SplitHostPort(listen) // checked
		_, port, err := net.SplitHostPort(l.tcp.Addr().String())
		if err != nil {
			l.Close()
			return nil, err
		}
		l.addresses = []string{net.JoinHostPort(host, port)}
	}
	return l, nil
}

// Local has callers of l alone, a listener in memory: they count as those of the socket if
// its connections are of network "unix".
func Local(l net.Listener) *Listeners { return &Listeners{socket: l} }

// Addresses are those at which other hosts reach this server, host:port; none where only its
// socket is open.
func (l *Listeners) Addresses() []string { return l.addresses }

// Close ends what is open. gRPC closes it too; only the first time counts.
func (l *Listeners) Close() {
	_ = l.socket.Close() // there is nothing to do about it
	if l.tcp != nil {
		_ = l.tcp.Close()
	}
}

// Config is what a Server needs.
type Config struct {
	Listeners *Listeners
	// Authority knows certificates; nil: the socket is the only way in.
	Authority *Authority
	// Nodes answers nodes and other servers; its Run is called.
	Nodes interface {
		proto.NodesServer
		proto.PeersServer
		Run(context.Context) error
	}
	// Asked names the node that a pending request is for; false: no such request is pending.
	Asked   func(id string) (spec.NodeName, bool)
	Control proto.ControlServer
	// Servers knows the other servers; nil: there is no authority.
	Servers proto.ServersServer
	// Keyring rotates the key of Secrets.
	Keyring proto.KeyringServer
	// Authorities replaces the authority.
	Authorities proto.AuthorityServer
	// Lost says, for a call that failed for want of the store, what to do about one without a majority; "": it is not that.
	// nil: nobody knows.
	Lost  func(context.Context) string
	Cache cache.Reader
	// Refusals counts what is refused.
	Refusals *Refusals
	// Audit keeps what is asked, and Audits shows it; nil: nothing is kept.
	Audit  *audit.Trail
	Audits proto.AuditServer
	Logger *slog.Logger
}

// Server answers on the listeners, everything behind the authorizer.
type Server struct{ cfg Config }

// New starts nothing.
func New(cfg Config) *Server { return &Server{cfg} }

// Run answers until ctx ends: first the nodes' sessions end, then the calls that are under
// way, at the latest after StopTime. It returns the error of the first listener to end.
func (s *Server) Run(ctx context.Context) error {
	authorizer := newAuthorizer(s.cfg)
	servers := s.servers(ctx, authorizer)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = s.cfg.Nodes.Run(ctx) }) // it has no error of its own
	if s.cfg.Listeners.tcp != nil {
		wg.Go(func() { authorizer.watch(ctx) })
	}
	ends := make(chan error, len(servers))
	for lis, g := range servers {
		wg.Go(func() { ends <- g.Serve(lis) })
		wg.Go(func() {
			<-ctx.Done()
			timer := time.AfterFunc(StopTime, g.Stop)
			defer timer.Stop()
			g.GracefulStop()
		})
	}
	return <-ends // the first to end ends all
}

// servers are the gRPC servers, each with its listener: those of callers whose certificate
// says who they are, and apart from them, of nodes and of anonymous callers.
func (s *Server) servers(ctx context.Context, a *authorizer) map[net.Listener]*grpc.Server {
	l := s.cfg.Listeners
	servers := map[net.Listener]*grpc.Server{l.socket: s.newServer(ctx, a)}
	if l.tcp == nil {
		return servers
	}
	secure := credentials.NewTLS(s.cfg.Authority.TLS("h2"))
	anonymous, nodes := newInnerListener(l.tcp.Addr(), newLimit(AnonymousAll, AnonymousEach)), newInnerListener(l.tcp.Addr(), nil)
	servers[l.tcp] = s.newServer(ctx, a, grpc.Creds(handshakes{secure, a, anonymous, nodes, newLimit(handshakesAll, HandshakesEach)}))
	servers[nodes] = s.newServer(ctx, a, grpc.Creds(afterHandshake{secure}), grpc.MaxRecvMsgSize(NodeBytes))
	servers[anonymous] = s.newAnonymousServer(ctx, a, secure)
	return servers
}

// newServer serves everything, behind the authorizer.
func (s *Server) newServer(ctx context.Context, a *authorizer, more ...grpc.ServerOption) *grpc.Server {
	if a.authority == nil { // Join and Trust are not registered then
		more = append(more, grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return errSocketOnly }))
	}
	g := newGRPC(ctx, s.cfg.Logger, s.cfg.Lost, append(more, a.options()...)...)
	proto.RegisterNodesServer(g, s.cfg.Nodes)
	proto.RegisterPeersServer(g, s.cfg.Nodes)
	proto.RegisterControlServer(g, s.cfg.Control)
	proto.RegisterKeyringServer(g, s.cfg.Keyring)
	if s.cfg.Authorities != nil {
		proto.RegisterAuthorityServer(g, s.cfg.Authorities)
	}
	if s.cfg.Audits != nil {
		proto.RegisterAuditServer(g, s.cfg.Audits)
	}
	if a.authority != nil {
		proto.RegisterJoinServer(g, &joinAPI{authority: a.authority, log: s.cfg.Logger})
		proto.RegisterServersServer(g, s.cfg.Servers)
		proto.RegisterTrustServer(g, &trustAPI{authority: a.authority, cache: s.cfg.Cache})
	}
	return g
}
