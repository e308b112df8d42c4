package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/trust"
)

// Who has no certificate takes little of a server, and nothing of those who have one.
func TestStrangersFillTheirOwnPlacesOnly(t *testing.T) {
	r, a := listening(t)
	address := r.srv.Addresses()[0]
	secure := trust.PinOf(must509(t, a.Certificate())).TLS("127.0.0.1")
	secure.NextProtos = []string{"h2"}
	var held []net.Conn
	defer func() {
		for _, conn := range held {
			conn.Close()
		}
	}()
	host := 1
	knock := func() error { // a place is taken when the server has spoken
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(host))}}
		conn, err := tls.DialWithDialer(from, "tcp", address, secure)
		if err != nil {
			return err
		}
		held = append(held, conn)
		_, err = conn.Read(make([]byte, 1))
		return err
	}
	for knock() == nil { // one host has some, and leaves others theirs
		if len(held) > 10*strangersEach {
			t.Fatal("there is no end of places for one host")
		}
	}
	host = 2
	if err := knock(); err != nil {
		t.Fatalf("another host finds no place: %v", err)
	}
	for full := false; !full; { // some may leave meanwhile, for their time is over
		host++
		full = knock() != nil
		if len(held) > 10*strangers {
			t.Fatal("there is no end of places")
		}
	}
	r.logged("too many without a certificate")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ann := credential(t, a, trust.Subject{Role: trust.RoleAdmin, Name: "ann", UID: "id1"}, time.Hour)
	if _, err := proto.NewControlClient(r.as(ann)).Info(ctx, &proto.InfoRequest{}); err != nil {
		t.Errorf("a client of the cluster: %v", err)
	}
	for _, conn := range held {
		conn.Close()
	}
	for knock() != nil {
		if ctx.Err() != nil {
			t.Fatal("no place became free again")
		}
	}
}

// torn are credentials of connections that break off.
type torn struct {
	credentials.TransportCredentials
}

func (torn) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, &net.OpError{Op: "read", Net: "tcp", Source: conn.LocalAddr(), Addr: conn.RemoteAddr(), Err: errors.New("reset")}
}

// fromPort is a connection from a port of one host.
type fromPort struct {
	net.Conn
	port int
}

func (f fromPort) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7443} }
func (f fromPort) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: f.port}
}

func TestAHostThatKnocksAgainAndAgainIsToldOnce(t *testing.T) {
	logs := &syncBuffer{}
	g := newGate(nil, nil, slog.New(slog.NewTextHandler(logs, nil)))
	h := handshakes{torn{}, g, newLobby(nil, nil), nil, newPlaces(1, 1)}
	for port := range 5 {
		if _, _, err := h.ServerHandshake(fromPort{port: port + 1}); err == nil {
			t.Fatal("it was taken")
		}
	}
	if n := strings.Count(logs.String(), "call refused"); n != 1 || !strings.Contains(logs.String(), "192.0.2.9") {
		t.Errorf("it was told %d times: %s", n, logs)
	}
}
