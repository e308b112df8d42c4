package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/access/accesstest"
	"github.com/stead-project/stead/trust"
)

// hpackInt is an integer of HTTP/2's header coding, with a prefix of so many bits.
func hpackInt(first byte, bits uint, n int) []byte {
	most := 1<<bits - 1
	if n < most {
		return []byte{first | byte(n)}
	}
	out := []byte{first | byte(most)}
	for n -= most; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}

// hpackField is one header; indexed ones are repeated by a single byte.
func hpackField(indexed bool, name, value string) []byte {
	out := []byte{0}
	if indexed {
		out[0] = 0x40
	}
	out = append(append(out, hpackInt(0, 7, len(name))...), name...)
	return append(append(out, hpackInt(0, 7, len(value))...), value...)
}

// callFrames are the frames of a call of method with more headers, which does not end: what
// no client library would send, for the server says how much it takes.
func callFrames(stream uint32, method string, more []byte) []byte {
	const headers, continuation, endHeaders, most = 1, 9, 4, 16 << 10
	var block []byte
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":path", method}, {":authority", "a"},
		{"content-type", "application/grpc"}, {"te", "trailers"}} {
		block = append(block, hpackField(false, f[0], f[1])...)
	}
	block = append(block, more...)
	var out []byte
	for kind := byte(headers); len(block) > 0; kind = continuation {
		part := block[:min(len(block), most)]
		block = block[len(part):]
		flags := byte(0)
		if len(block) == 0 {
			flags = endHeaders
		}
		out = append(out, byte(len(part)>>16), byte(len(part)>>8), byte(len(part)), kind, flags)
		out = append(binary.BigEndian.AppendUint32(out, stream), part...)
	}
	return out
}

// anonymous is a connection without a certificate that has read the server's settings.
func (r *running) anonymous(a interface{ Certificate() []byte }, host byte) net.Conn {
	r.t.Helper()
	secure := trust.PinOf(must509(r.t, a.Certificate())).TLS("127.0.0.1")
	secure.NextProtos = []string{"h2"}
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)}}
	conn, err := tls.DialWithDialer(from, "tcp", r.srv.Addresses()[0], secure)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0, 0, 0, 4, 0, 0, 0, 0, 0)); err != nil {
		r.t.Fatal(err)
	}
	if _, _, err := readFrame(conn); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

func readFrame(conn net.Conn) (kind byte, body []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(conn, head[:]); err == nil {
		body = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		_, err = io.ReadFull(conn, body)
	}
	return head[3], body, err
}

// attack writes and waits until the server has dealt with it: it answers something, ends the
// connection, or has answered a ping behind it.
func attack(t *testing.T, conn net.Conn, frames []byte) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(patience))
	go conn.Write(append(frames, 0, 0, 8, 6, 0, 0, 0, 0, 0, 'a', 't', 't', 'a', 'c', 'k', 'e', 'd')) // a ping
	for {
		if kind, body, err := readFrame(conn); err != nil || kind == 6 && string(body) == "attacked" {
			return // it was ended, or has answered
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Who has no certificate cannot fill memory or log with the names of what he calls.
func TestALongMethodNameCostsNothing(t *testing.T) {
	r, a := listening(t)
	var frames [][]byte
	for _, size := range []int{4 << 10, 8 << 20} { // one is within what headers may have
		frames = append(frames, callFrames(1, "/x/"+strings.Repeat("m", size), nil))
	}
	before, logged := heap(), len(r.logs.String())
	for i := range 12 {
		for _, f := range frames {
			attack(t, r.anonymous(a, byte(i+1)), bytes.Replace(f, []byte("/x/"), []byte(fmt.Sprintf("/%c/", 'a'+i)), 1))
		}
	}
	if n := len(r.logs.String()) - logged; n > 16<<10 {
		t.Errorf("%d bytes were logged: %.300s", n, r.logs.String()[logged:])
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d MiB stay", grown>>20)
	}
}

// A header of one byte on the wire is a field in memory: calls that are held open hold few.
func TestManyHeadersCostNothing(t *testing.T) {
	r, a := listening(t)
	more := append(hpackField(true, "a", "b"), bytes.Repeat([]byte{0x80 | 62}, 400_000)...)
	before := heap()
	var conns []net.Conn
	for i := range 16 {
		conn := r.anonymous(a, byte(i/4+1))
		conns = append(conns, conn)
		for stream := uint32(1); stream <= 7; stream += 2 {
			attack(t, conn, callFrames(stream, proto.Join_Enroll_FullMethodName, more))
		}
	}
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("%d MiB are held by %d connections", grown>>20, len(conns))
	}
	runtime.KeepAlive(conns)
}

// Connections that never end their handshake are ended, and one host has few at once.
func TestHandshakesThatHangAreBounded(t *testing.T) {
	r, _ := listening(t)
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range access.HandshakesEach + 1 {
		conn, err := net.Dial("tcp", r.srv.Addresses()[0])
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	r.logged("too many handshakes are under way")
	conns[0].SetReadDeadline(time.Now().Add(patience))
	if _, err := conns[0].Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("a handshake that hangs is not ended: %v", err)
	}
}

// A message of a node is bounded; a manifest of a person may be larger.
func TestANodesMessageIsBounded(t *testing.T) {
	r, a := listening(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	node := accesstest.Credential(t, a, trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "u1"}, time.Hour)
	large := &proto.Hello{Node: "n1", Uid: "u1", Boot: "b", FactsJson: make([]byte, access.NodeBytes+1)}
	_, err := proto.NewNodesClient(r.as(node)).Join(ctx, large) // facts of that size are refused in a hello, too, when all was read
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "received message larger than max") {
		t.Errorf("a node: got %v", err)
	}
	admin := accesstest.Credential(t, a, trust.Subject{Role: trust.RoleAdmin, Name: "ann", UID: "id1"}, time.Hour)
	if _, err := proto.NewControlClient(r.as(admin)).Apply(ctx, &proto.ApplyRequest{Files: []*proto.File{{Content: make([]byte, access.NodeBytes+1)}}}); status.Code(err) == codes.ResourceExhausted {
		t.Errorf("a person: got %v", err)
	}
}
