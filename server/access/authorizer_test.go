package access

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
	"github.com/stead-project/stead/server/audit"
	"github.com/stead-project/stead/server/control"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
	"github.com/stead-project/stead/trust"
)

// newAuthority is one of a cluster of its own, in s.
func newAuthority(t *testing.T, s *memstore.Store) *Authority {
	t.Helper()
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	must(t, err)
	r := &rig{t, s, key}
	r.put(store.Put(store.ClusterKey, []byte(cluster)))
	return r.open()
}

// credential is one that a signed for this subject and time.
func credential(t *testing.T, a *Authority, s trust.Subject, life time.Duration) *trust.Credential {
	t.Helper()
	c, asked := request(t)
	der, err := a.Issue(asked, s, life)
	must(t, err)
	must(t, c.Take(der, a.Certificate()))
	return c
}

// from is the context of a call by the holder of c; nil: by one without a certificate.
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
	log := slog.New(slog.DiscardHandler)
	server := New(Config{Nodes: &dispatch.Server{}, Control: &control.Server{}, Audits: &audit.Service{}, Authorities: proto.UnimplementedAuthorityServer{}, Logger: log})
	g := newAuthorizer(Config{Authority: newAuthority(t, memstore.New()), Refusals: &Refusals{}, Logger: log})
	known := map[string]bool{}
	for service, info := range server.newServer(t.Context(), g).GetServiceInfo() {
		for _, m := range info.Methods {
			method := "/" + service + "/" + m.Name
			known[method] = true
			if allowed[method] == 0 {
				t.Errorf("nothing says who may call %s: add it to allowed in server/access/caller.go", method)
			}
		}
	}
	if len(known) < 20 {
		t.Errorf("only %d methods were found", len(known))
	}
	for method, may := range allowed {
		if !known[method] {
			t.Errorf("there is no method %s", method)
		}
		if _, kept := audit.Verb(method); kept == audit.Silent[method] {
			t.Errorf("nothing says whether the audit log has %s: add it in server/audit/calls.go", method)
		}
		if strings.HasPrefix(method, "/stead.v1.Control/") && may&(roleAnonymous|roleNode) != 0 {
			t.Errorf("%s is not for people alone", method)
		}
	}
}

func TestWhoMayCallWhat(t *testing.T) {
	a := newAuthority(t, memstore.New())
	g := newAuthorizer(Config{Authority: a, Refusals: &Refusals{}, Logger: slog.New(slog.DiscardHandler)})
	node := credential(t, a, trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "u1"}, time.Hour)
	admin := credential(t, a, trust.Subject{Role: trust.RoleAdmin, Name: "ann", UID: "id1"}, time.Hour)
	operator := credential(t, a, trust.Subject{Role: trust.RoleOperator, Name: "bob", UID: "id2"}, time.Hour)
	viewer := credential(t, a, trust.Subject{Role: trust.RoleViewer, Name: "eve", UID: "id3", Namespaces: "shop"}, time.Hour)
	socket := &net.UnixAddr{Name: "s", Net: "unix"}
	for name, c := range map[string]struct {
		ctx  context.Context
		role role
		want codes.Code // when refused
	}{
		"anonymous": {from(t, nil), roleAnonymous, codes.Unauthenticated},
		"node":      {from(t, node), roleNode, codes.PermissionDenied},
		"admin":     {from(t, admin), roleAdmin, codes.PermissionDenied},
		"operator":  {from(t, operator), roleOperator, codes.PermissionDenied},
		"viewer":    {from(t, viewer), roleViewer, codes.PermissionDenied},
		"root":      {peer.NewContext(t.Context(), &peer.Peer{Addr: socket, LocalAddr: socket}), roleRoot, codes.PermissionDenied},
	} {
		for method, may := range allowed {
			_, got, err := g.authorize(c.ctx, method)
			switch {
			case got.role != c.role:
				t.Errorf("%s is taken for %d", name, got.role)
			case may&c.role != 0 && err != nil:
				t.Errorf("%s, %s: got %v", name, method, err)
			case may&c.role == 0 && status.Code(err) != c.want:
				t.Errorf("%s, %s: got %v", name, method, err)
			}
		}
		if _, _, err := g.authorize(c.ctx, "/stead.v1.Control/Unheard"); status.Code(err) != c.want {
			t.Errorf("%s, a method without a rule: got %v", name, err)
		}
	}
	for name, ctx := range map[string]context.Context{
		"no connection":            t.Context(),
		"a connection in clear":    peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{}, LocalAddr: &net.TCPAddr{}}),
		"a certificate that ended": from(t, credential(t, a, trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "u1"}, -time.Second)),
	} {
		if _, _, err := g.authorize(ctx, proto.Nodes_Join_FullMethodName); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: got %v", name, err)
		}
	}
	foreign := from(t, credential(t, newAuthority(t, memstore.New()), trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "u1"}, time.Hour))
	p, _ := peer.FromContext(foreign)
	p.AuthInfo.(credentials.TLSInfo).State.VerifiedChains[0][0].URIs[0].Host = "fedcba9876543210"
	if _, _, err := g.authorize(foreign, proto.Nodes_Join_FullMethodName); status.Code(err) != codes.PermissionDenied {
		t.Errorf("of another cluster: got %v", err)
	}
}

// The name with which an edit is noted is that of the certificate, whatever is said.
func TestAClientIsCalledByItsCertificate(t *testing.T) {
	a := newAuthority(t, memstore.New())
	g := newAuthorizer(Config{Authority: a, Refusals: &Refusals{}, Logger: slog.New(slog.DiscardHandler)})
	ctx := from(t, credential(t, a, trust.Subject{Role: trust.RoleAdmin, Name: "ann", UID: "id1"}, time.Hour))
	ctx, _, err := g.authorize(metadata.NewIncomingContext(ctx, metadata.Pairs(proto.UserKey, "bob")), proto.Control_Apply_FullMethodName)
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
		g := newAuthorizer(Config{Authority: a, Refusals: &Refusals{}, Logger: slog.New(slog.DiscardHandler)})
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
		if len(g.streams) != 0 {
			t.Fatal("streams that ended are remembered")
		}
		cancel()
		<-done
	})
}
