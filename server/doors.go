package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/auth"
	"github.com/stead-project/stead/server/control"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/seal"
)

// checkListen tells what is wrong with --listen and --advertise.
func checkListen(listen string, advertise []string) error {
	if listen == "" {
		if len(advertise) > 0 {
			return errors.New("addresses to advertise are of no use without one to listen on")
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

// openTCP opens the listener for other hosts; nil: none is wanted.
func (s *Server) openTCP() (net.Listener, error) {
	if s.cfg.Listen == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for other hosts: %w", err)
	}
	s.addresses = s.cfg.Advertise
	if len(s.addresses) == 0 {
		host, _, _ := net.SplitHostPort(s.cfg.Listen) // checked
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		s.addresses = []string{net.JoinHostPort(host, port)}
	}
	return l, nil
}

// Addresses are those at which other hosts reach this server, host:port; none where it
// listens on its socket only. Valid once Serving is closed.
func (s *Server) Addresses() []string { return s.addresses }

// openAuthority is the cluster's authority; nil where no other host is listened to.
func (s *Server) openAuthority(ctx context.Context, key *seal.Key) (*auth.Authority, error) {
	if s.cfg.Listen == "" {
		return nil, nil
	}
	return auth.Open(ctx, auth.Config{
		Store: s.cfg.Store, Key: key, Server: s.cfg.Name, Addresses: s.addresses, Life: s.cfg.CertificateLife, Logger: s.cfg.Logger,
	})
}

// reach connects to another server as this one; nil: no other host is reached.
func reach(a *auth.Authority) dispatch.Reach {
	if a == nil {
		return nil
	}
	return func(ctx context.Context, addresses []string) (*grpc.ClientConn, error) {
		conn, _, err := proto.ConnectAny(ctx, addresses, 0, a.CallTLS)
		return conn, err
	}
}

// serve answers on the socket and on tcp (nil: not there) until ctx ends: first the
// nodes' sessions end, then the calls that are under way, at the latest after stopTime.
func (s *Server) serve(ctx context.Context, socket, tcp net.Listener, a *auth.Authority, d *dispatch.Server, c *control.Server) error {
	gate := newGate(a, d.Broker().Asked, s.cfg.Logger)
	gate.book = &s.book
	doors := map[net.Listener]*grpc.Server{socket: s.door(ctx, gate, d, c)}
	if tcp != nil {
		secure := credentials.NewTLS(a.TLS())
		strange, nodes := newLobby(tcp.Addr(), newPlaces(strangers, strangersEach)), newLobby(tcp.Addr(), nil)
		doors[tcp] = s.door(ctx, gate, d, c, grpc.Creds(handshakes{secure, gate, strange, nodes, newPlaces(handshakesAll, handshakesEach)}))
		doors[nodes] = s.door(ctx, gate, d, c, grpc.Creds(introduced{secure}), grpc.MaxRecvMsgSize(nodeBytes))
		doors[strange] = s.strangersDoor(ctx, gate, secure)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = d.Run(ctx) }) // it has no error of its own
	if tcp != nil {
		wg.Go(func() { gate.watch(ctx) })
	}
	ends := make(chan error, len(doors))
	for lis, g := range doors {
		wg.Go(func() { ends <- g.Serve(lis) })
		wg.Go(func() {
			<-ctx.Done()
			timer := time.AfterFunc(stopTime, g.Stop)
			defer timer.Stop()
			g.GracefulStop()
		})
	}
	return <-ends // the first to end ends all
}

// door is one way in: all services behind the gate.
func (s *Server) door(ctx context.Context, gate *gate, d *dispatch.Server, c *control.Server, more ...grpc.ServerOption) *grpc.Server {
	g := newGRPC(ctx, s.cfg.Logger, append(more, gate.options()...)...)
	proto.RegisterNodesServer(g, d)
	proto.RegisterPeersServer(g, d)
	proto.RegisterControlServer(g, c)
	proto.RegisterJoinServer(g, &joins{authority: gate.authority, log: s.cfg.Logger})
	proto.RegisterTrustServer(g, &trusts{authority: gate.authority, cache: s.cache})
	return g
}
