package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
	"github.com/stead-project/stead/trust"
)

// logBuffer holds what is logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *logBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *logBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// What anonymous callers say can be different each time; the log is bounded nonetheless.
func TestRefusalsFillNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &logBuffer{}
		g := newAuthorizer(Config{Refusals: &Refusals{}, Logger: slog.New(slog.NewTextHandler(logs, nil))})
		long := strings.Repeat("é", 1<<12)
		minute := func(n int) {
			for i := range n {
				g.logRefusal(fmt.Sprintf("somebody at %d", i), "TLS handshake", status.Errorf(codes.Internal, "%d of %d %s", i, n, long))
			}
		}
		minute(3 * maxLogged)
		if lines := strings.Count(logs.String(), "call refused"); lines != maxLines || len(logs.String()) > maxLines*1500 {
			t.Errorf("%d lines, %d bytes", lines, len(logs.String()))
		}
		if !strings.Contains(logs.String(), "more refusals not logged") {
			t.Error("it does not say that there is more")
		}
		time.Sleep(time.Minute)
		minute(3*maxLogged + 1)
		if lines := strings.Count(logs.String(), "call refused"); lines != 2*maxLines {
			t.Errorf("%d lines after a minute", lines)
		}
		if n := len(g.refusals.logged); n > maxLogged {
			t.Errorf("%d are remembered", n)
		}
		if n := g.refusals.Counts()[limitCall]; n != 6*maxLogged+1 {
			t.Errorf("%d were counted", n)
		}
	})
}

// One host, or one IPv6 network, leaves others their share.
func TestALimitCountsEachHost(t *testing.T) {
	l := newLimit(4, 2)
	var leave []func()
	for _, host := range []string{"2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "192.0.2.1"} {
		release := l.take(host)
		if release == nil {
			t.Fatalf("the limit is reached for %s", host)
		}
		leave = append(leave, release)
		if host == "2001:db8::2" && l.take("2001:db8::3") != nil {
			t.Error("a network has more than its share")
		}
	}
	if l.take("192.0.2.2") != nil {
		t.Error("more are held than may be")
	}
	leave[0]()
	leave[0]() // gives nothing back twice
	if l.take("192.0.2.2") == nil || l.take("192.0.2.3") != nil {
		t.Error("one was released, and no other")
	}
}

// One certificate has a bounded number of streams, and others have theirs.
func TestStreamsOfOneCertificateAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t, memstore.New())
		g := newAuthorizer(Config{Authority: a, Refusals: &Refusals{}, Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		begin := func(uid spec.UID) <-chan error {
			end := make(chan error, 1)
			at := from(t, credential(t, a, trust.Subject{Role: trust.RoleNode, Name: "n1", UID: uid}, time.Hour))
			go func() {
				end <- g.stream(nil, quiet{ctx: at}, &grpc.StreamServerInfo{FullMethod: proto.Nodes_Tunnel_FullMethodName},
					func(any, grpc.ServerStream) error { <-ctx.Done(); return nil })
			}()
			synctest.Wait()
			return end
		}
		for range maxStreams {
			if end := begin("u1"); len(end) > 0 {
				t.Fatalf("refused: %v", <-end)
			}
		}
		if end := begin("u1"); len(end) == 0 || status.Code(<-end) != codes.ResourceExhausted {
			t.Error("one more was let in")
		}
		if end := begin("u2"); len(end) > 0 {
			t.Errorf("another node: %v", <-end)
		}
		cancel()
		synctest.Wait()
		if len(g.streams)+len(g.perUID) != 0 {
			t.Error("streams that ended are remembered")
		}
	})
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
	logs := &logBuffer{}
	g := newAuthorizer(Config{Refusals: &Refusals{}, Logger: slog.New(slog.NewTextHandler(logs, nil))})
	h := handshakes{torn{}, g, newInnerListener(nil, nil), nil, newLimit(1, 1)}
	for port := range 5 {
		if _, _, err := h.ServerHandshake(fromPort{port: port + 1}); err == nil {
			t.Fatal("it was taken")
		}
	}
	if n := strings.Count(logs.String(), "call refused"); n != 1 || !strings.Contains(logs.String(), "192.0.2.9") {
		t.Errorf("it was told %d times: %s", n, logs)
	}
}
func TestErrorsGetTheirCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want codes.Code
	}{
		{nil, codes.OK},
		{status.Error(codes.NotFound, "x"), codes.NotFound},
		{fmt.Errorf("write: %w", store.ErrConflict), codes.Aborted},
		{fmt.Errorf("write: %w", store.ErrUnknown), codes.Unavailable},
		{fmt.Errorf("read: %w", store.ErrUnavailable), codes.Unavailable},
		{store.ErrNoSpace, codes.ResourceExhausted},
		{store.ErrTooLarge, codes.InvalidArgument},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{errors.New("else"), codes.Internal},
	} {
		if got := status.Code(toStatus(c.err)); got != c.want {
			t.Fatalf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
}

func TestAPanicEndsOneCallAndTellsNothing(t *testing.T) {
	logs := &logBuffer{}
	log := slog.New(slog.NewTextHandler(logs, nil))
	_, err := unary(log, nil)(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/x"}, func(ctx context.Context, _ any) (any, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the call has no deadline")
		}
		panic("hunter2")
	})
	if status.Code(err) != codes.Internal || strings.Contains(err.Error()+logs.String(), "hunter2") || !strings.Contains(logs.String(), "call panicked") {
		t.Fatalf("got %v, log %s", err, logs)
	}
}

func TestListenAndAdvertiseAreChecked(t *testing.T) {
	for _, c := range []struct {
		listen    string
		advertise []string
		good      bool
	}{
		{"127.0.0.1:0", nil, true}, {"db1.example:7443", nil, true}, {":7443", []string{"10.0.0.1:7443"}, true},
		{":7443", nil, false}, {"0.0.0.0:7443", nil, false}, {"[::]:7443", nil, false}, {"10.0.0.1", nil, false},
		{"", []string{"10.0.0.1:7443"}, false}, {":7443", []string{"10.0.0.1"}, false}, {":7443", []string{"10.0.0.1:0"}, false},
	} {
		if err := CheckListen(c.listen, c.advertise); (err == nil) != c.good {
			t.Errorf("%q %q: got %v", c.listen, c.advertise, err)
		}
	}
}
