package server

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/auth"
	"github.com/stead-project/stead/server/control"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
	"github.com/stead-project/stead/trust"
)

// newAuthority is one of a cluster of its own.
func newAuthority(t *testing.T, s store.Store) *auth.Authority {
	t.Helper()
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.ClusterKey, []byte("0123456789abcdef"))}}); err != nil {
		t.Fatal(err)
	}
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	a, err := auth.Open(t.Context(), auth.Config{Store: s, Key: key, Server: "s1", Addresses: []string{"127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// credential is one that a signed for this subject and time.
func credential(t *testing.T, a *auth.Authority, s trust.Subject, life time.Duration) *trust.Credential {
	t.Helper()
	c, err := trust.NewCredential(nil)
	if err != nil {
		t.Fatal(err)
	}
	request, err := c.Request()
	if err != nil {
		t.Fatal(err)
	}
	der, err := a.Issue(request, s, life)
	if err == nil {
		err = c.Take(der, a.Certificate())
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// from is the context of a call by the holder of c; nil: by a stranger.
func from(t *testing.T, c *trust.Credential) context.Context {
	t.Helper()
	var info credentials.TLSInfo
	if c != nil {
		leaf, err := x509.ParseCertificate(c.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		info.State.VerifiedChains = [][]*x509.Certificate{{leaf}}
	}
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	return peer.NewContext(t.Context(), &peer.Peer{Addr: at, LocalAddr: at, AuthInfo: info})
}

func TestEveryMethodHasItsRule(t *testing.T) {
	s := memstore.New()
	server := &Server{cfg: Config{Logger: slog.New(slog.DiscardHandler)}}
	g := newGate(newAuthority(t, s), nil, slog.New(slog.DiscardHandler))
	known := map[string]bool{}
	for service, info := range server.door(t.Context(), g, &dispatch.Server{}, &control.Server{}).GetServiceInfo() {
		for _, m := range info.Methods {
			method := "/" + service + "/" + m.Name
			known[method] = true
			if allowed[method] == 0 {
				t.Errorf("nothing says who may call %s: add it to allowed in server/caller.go", method)
			}
		}
	}
	if len(known) < 20 {
		t.Errorf("only %d methods were found", len(known))
	}
	for method, may := range allowed {
		if !known[method] {
			t.Errorf("%s is no method", method)
		}
		if strings.HasPrefix(method, "/stead.v1.Control/") && may&(stranger|aNode) != 0 {
			t.Errorf("%s is not for people alone", method)
		}
	}
}

func TestWhoMayCallWhat(t *testing.T) {
	a := newAuthority(t, memstore.New())
	g := newGate(a, nil, slog.New(slog.DiscardHandler))
	node := credential(t, a, trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "u1"}, time.Hour)
	admin := credential(t, a, trust.Subject{Role: trust.RoleAdmin, Name: "ann", UID: "id1"}, time.Hour)
	socket := &net.UnixAddr{Name: "s", Net: "unix"}
	for name, c := range map[string]struct {
		ctx  context.Context
		role role
		want codes.Code // when refused
	}{
		"stranger": {from(t, nil), stranger, codes.Unauthenticated},
		"node":     {from(t, node), aNode, codes.PermissionDenied},
		"admin":    {from(t, admin), anAdmin, codes.PermissionDenied},
		"root":     {peer.NewContext(t.Context(), &peer.Peer{Addr: socket, LocalAddr: socket}), root, codes.PermissionDenied},
	} {
		for method, may := range allowed {
			_, got, err := g.let(c.ctx, method)
			switch {
			case got.role != c.role:
				t.Errorf("%s is taken for %d", name, got.role)
			case may&c.role != 0 && err != nil:
				t.Errorf("%s, %s: got %v", name, method, err)
			case may&c.role == 0 && status.Code(err) != c.want:
				t.Errorf("%s, %s: got %v", name, method, err)
			}
		}
		if _, _, err := g.let(c.ctx, "/stead.v1.Control/Unheard"); status.Code(err) != c.want {
			t.Errorf("%s, a method without a rule: got %v", name, err)
		}
	}
	for name, ctx := range map[string]context.Context{
		"no connection":            t.Context(),
		"a connection in clear":    peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{}, LocalAddr: &net.TCPAddr{}}),
		"a certificate that ended": from(t, credential(t, a, trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "u1"}, -time.Second)),
	} {
		if _, _, err := g.let(ctx, proto.Nodes_Join_FullMethodName); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: got %v", name, err)
		}
	}
	foreign := from(t, credential(t, newAuthority(t, memstore.New()), trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "u1"}, time.Hour))
	p, _ := peer.FromContext(foreign)
	p.AuthInfo.(credentials.TLSInfo).State.VerifiedChains[0][0].URIs[0].Host = "fedcba9876543210"
	if _, _, err := g.let(foreign, proto.Nodes_Join_FullMethodName); status.Code(err) != codes.PermissionDenied {
		t.Errorf("of another cluster: got %v", err)
	}
}

// The name with which an edit is noted is that of the certificate, whatever is said.
func TestAClientIsCalledByItsCertificate(t *testing.T) {
	a := newAuthority(t, memstore.New())
	g := newGate(a, nil, slog.New(slog.DiscardHandler))
	ctx := from(t, credential(t, a, trust.Subject{Role: trust.RoleAdmin, Name: "ann", UID: "id1"}, time.Hour))
	ctx, _, err := g.let(metadata.NewIncomingContext(ctx, metadata.Pairs(proto.UserKey, "bob")), proto.Control_Apply_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	if got := md.Get(proto.UserKey); len(got) != 1 || got[0] != "ann" {
		t.Fatalf("got %q", got)
	}
}

// quiet is a stream on which nothing happens.
type quiet struct {
	grpc.ServerStream
	ctx context.Context
}

func (q quiet) Context() context.Context { return q.ctx }

func TestAStreamEndsWithItsCertificateAndWithARevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t, memstore.New())
		g := newGate(a, nil, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { g.watch(ctx); close(done) }()
		session := func(uid spec.UID) <-chan error {
			ctx := from(t, credential(t, a, trust.Subject{Role: trust.RoleNode, Name: "n1", UID: uid}, time.Hour))
			end := make(chan error, 1)
			go func() {
				end <- g.stream(nil, quiet{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: proto.Nodes_Session_FullMethodName},
					func(_ any, s grpc.ServerStream) error { <-s.Context().Done(); return nil })
			}()
			synctest.Wait()
			return end
		}
		under := func(end <-chan error) bool {
			synctest.Wait()
			return len(end) == 0
		}
		good, bad := session("u1"), session("u2")
		time.Sleep(time.Minute)
		if err := a.Revoke(t.Context(), "u2"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(revokeTime)
		if !under(good) {
			t.Fatalf("it ended: %v", <-good)
		}
		if err := <-bad; status.Code(err) != codes.PermissionDenied {
			t.Fatalf("revoked: got %v", err)
		}
		if err := <-session("u2"); status.Code(err) != codes.PermissionDenied {
			t.Fatalf("come again: got %v", err)
		}
		time.Sleep(time.Hour - 2*time.Minute)
		if !under(good) {
			t.Fatalf("it ended before its certificate: %v", <-good)
		}
		time.Sleep(2 * time.Minute)
		if under(good) {
			t.Fatal("it outlives its certificate")
		}
		if err := <-good; status.Code(err) != codes.Unauthenticated {
			t.Fatalf("got %v", err)
		}
		if len(g.guests) != 0 {
			t.Fatal("streams that ended are remembered")
		}
		cancel()
		<-done
	})
}
