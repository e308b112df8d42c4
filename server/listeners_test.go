package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/access/accesstest"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store/memstore"
	"github.com/stead-project/stead/trust"
)

// listening is a server that other hosts reach, and what signs for it.
func listening(t *testing.T) (*running, *access.Authority) {
	t.Helper()
	dir := shortDir(t)
	s := memstore.New()
	cfg := config(dir, s, nil)
	cfg.Listen = "127.0.0.1:0"
	r := start(t, cfg)
	key, err := seal.Load(cfg.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return r, accesstest.Open(t, s, key)
}

// as connects as whoever c names.
func (r *running) as(c *trust.Credential) *grpc.ClientConn {
	r.t.Helper()
	config, err := c.TLS(r.srv.Addresses()[0])
	if err != nil {
		r.t.Fatal(err)
	}
	conn, err := proto.Connect(r.t.Context(), r.srv.Addresses()[0], config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

func (r *running) logged(words string) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(r.logs.String(), words); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("never logged %q in\n%s", words, r.logs)
		}
	}
}

func TestWhoeverIsNotOfTheClusterIsRefusedAtTheDoor(t *testing.T) {
	r, a := listening(t)
	address := r.srv.Addresses()[0]
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	plain, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := proto.NewControlClient(plain).Info(ctx, &proto.InfoRequest{}); status.Code(err) != codes.Unavailable {
		t.Fatalf("in clear: got %v", err)
	}
	r.logged("TLS handshake")

	admin := trust.Subject{Role: trust.RoleAdmin, Name: "ann", UID: "id1"}
	good := accesstest.Credential(t, a, admin, time.Hour)
	if _, err := proto.NewControlClient(r.as(good)).Info(ctx, &proto.InfoRequest{}); err != nil {
		t.Fatalf("a client of the cluster: %v", err)
	}
	if strings.Contains(r.logs.String(), "ALPN") {
		t.Errorf("our own way of connecting is told as a refusal: %s", r.logs)
	}
	refused := func(what string, c *trust.Credential, words string) {
		t.Helper()
		secure, err := c.TLS(address)
		if err != nil {
			t.Fatal(err)
		}
		pair := secure.Certificates[0] // shown though the server names authorities that did not sign it
		secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		if conn, err := proto.Connect(ctx, address, secure); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v", what, err)
			if err == nil {
				conn.Close()
			}
		}
	}
	refused("with a certificate that ended", accesstest.Credential(t, a, admin, -time.Second), "expired certificate")
	foreign := accesstest.Credential(t, accesstest.NewAuthority(t, memstore.New()), admin, time.Hour)
	foreign.CA = good.CA
	refused("with a certificate of another authority", foreign, "tls: ")
	secure, err := good.TLS(address)
	if err != nil {
		t.Fatal(err)
	}
	secure.MinVersion, secure.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if conn, err := tls.Dial("tcp", address, secure); err == nil {
		conn.Close()
		t.Fatal("TLS 1.2 was taken")
	}

	pin := trust.PinOf(must509(t, a.Certificate()))
	conn, err := proto.Connect(ctx, address, pin.TLS("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := proto.NewControlClient(conn).Info(ctx, &proto.InfoRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Fatalf("without a certificate: got %v", err)
	}
	large := &proto.EnrollRequest{Request: make([]byte, access.AnonymousBytes)}
	if _, err := proto.NewJoinClient(conn).Enroll(ctx, large); status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("a large request without a certificate: got %v", err)
	}
	if _, err := proto.NewNodesClient(conn).Join(ctx, &proto.Hello{}); status.Code(err) != codes.Unauthenticated {
		t.Fatalf("without a certificate: got %v", err)
	}
	other := pin
	other[0] ^= 1
	if _, err := proto.Connect(ctx, address, other.TLS("127.0.0.1")); err == nil || !strings.Contains(err.Error(), "does not belong to the cluster of this join token") {
		t.Fatalf("with another pin: got %v", err)
	}
	if _, err := proto.Connect(ctx, address, pin.TLS("localhost")); err == nil {
		t.Fatal("a server was taken under a name that it does not have")
	}
}

func must509(t *testing.T, der []byte) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func hello(node, uid string) *proto.FromNode {
	return &proto.FromNode{Kind: &proto.FromNode_Hello{Hello: &proto.Hello{Node: node, Uid: uid, Boot: "b1", FactsJson: []byte(`{"cpuMillis":4000,"memoryBytes":1000000000}`)}}}
}

func TestANodeSpeaksForItselfOnly(t *testing.T) {
	r, a := listening(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := r.apply(manifests); err != nil {
		t.Fatal(err)
	}
	one := proto.NewNodesClient(r.as(accesstest.Credential(t, a, trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "uid-one"}, time.Hour)))
	two := r.as(accesstest.Credential(t, a, trust.Subject{Role: trust.RoleNode, Name: "n2", UID: "uid-two"}, time.Hour))
	session, err := one.Session(ctx)
	if err == nil {
		err = session.Send(hello("n1", "uid-one"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for got := false; !got; {
		m, err := session.Recv()
		if err != nil {
			t.Fatalf("no life was told: %v (%s)", err, r.logs)
		}
		got = len(m.GetWanted().GetLivesJson()) == 1
	}

	refused := func(what string, err error) {
		t.Helper()
		if status.Code(err) != codes.PermissionDenied || strings.Contains(err.Error(), "uid-one") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	nodes := proto.NewNodesClient(two)
	for _, m := range []*proto.FromNode{hello("n1", "uid-one"), hello("n1", "uid-two"), hello("n2", "uid-one")} {
		for range 2 {
			h := m.GetHello()
			_, err := nodes.Join(ctx, h)
			refused("join as "+h.GetNode()+" "+h.GetUid(), err)
			stream, err := nodes.Session(ctx)
			if err == nil {
				err = stream.Send(m)
			}
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			answer, err := stream.Recv()
			refused("session as "+h.GetNode()+" "+h.GetUid(), err)
			if answer != nil {
				t.Errorf("it was told %v", answer)
			}
		}
	}
	for range 3 {
		_, err = proto.NewControlClient(two).Get(ctx, &proto.GetRequest{Kind: "secret", Namespace: "default", Name: "pass"})
		refused("get a Secret", err)
	}
	r.logged("node n2 at 127.0.0.1: /stead.v1.Control/Get")
	if n := strings.Count(r.logs.String(), "/stead.v1.Control/Get"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}

	// An ask of n1 is answered by n1 alone.
	logs, err := r.api.Logs(ctx, &proto.LogsRequest{Namespace: "default", Member: "db-0", Tail: -1})
	if err != nil {
		t.Fatal(err)
	}
	var ask string
	for ask == "" {
		m, err := session.Recv()
		if err != nil {
			t.Fatal(err)
		}
		ask = m.GetAsk().GetId()
	}
	answer := func(n proto.NodesClient, text string) error {
		tunnel, err := n.Tunnel(ctx)
		if err == nil {
			err = tunnel.Send(&proto.Frame{Ask: ask, Channel: 1, Data: []byte(text)})
		}
		if err == nil {
			err = tunnel.Send(&proto.Frame{Channel: 3, Done: true})
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		_, err = tunnel.Recv()
		return err
	}
	refused("the answer of another node", answer(nodes, "forged"))
	_ = answer(one, "true")
	if f, err := logs.Recv(); err != nil || string(f.GetData()) != "true" {
		t.Errorf("got %v, %v", f, err)
	}
}

func TestAServerOnItsSocketAloneLetsNobodyElseIn(t *testing.T) {
	r := start(t, config(shortDir(t), memstore.New(), nil))
	if len(r.srv.Addresses()) > 0 {
		t.Fatalf("it has %q", r.srv.Addresses())
	}
	_, err := proto.NewTrustClient(r.conn).CreateToken(t.Context(), &proto.CreateTokenRequest{TtlMillis: 60_000})
	if status.Code(err) != codes.FailedPrecondition {
		t.Fatalf("got %v", err)
	}
}

// The key of another cluster is refused whether or not other hosts are listened to.
func TestAKeyThatDoesNotOpenTheAuthorityIsRefused(t *testing.T) {
	cfg := config(shortDir(t), memstore.New(), io.Discard)
	cfg.Listen = "127.0.0.1:0"
	if err := start(t, cfg).stop(); err != nil {
		t.Fatal(err)
	}
	run := func() error {
		again, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return again.Run(ctx)
	}
	if err := os.WriteFile(cfg.KeyFile, bytes.Repeat([]byte{9}, seal.KeyBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{"127.0.0.1:0", ""} {
		cfg.Listen = listen
		if err := run(); err == nil || !strings.Contains(err.Error(), "does not open the cluster's authority") {
			t.Fatalf("got %v", err)
		}
	}
	if err := os.Remove(cfg.KeyFile); err != nil {
		t.Fatal(err)
	}
	if err := run(); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v, want no new key made beside a sealed authority", err)
	}
}
