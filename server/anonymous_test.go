package server

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/access/accesstest"
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
		if len(held) > 10*access.AnonymousEach {
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
		if len(held) > 10*access.AnonymousAll {
			t.Fatal("there is no end of places")
		}
	}
	r.logged("too many connections without a certificate")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ann := accesstest.Credential(t, a, trust.Subject{Role: trust.RoleAdmin, Name: "ann", UID: "id1"}, time.Hour)
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
