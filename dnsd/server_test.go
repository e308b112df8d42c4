package dnsd

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stead-project/stead/spec"
)

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

// start runs a server on loopback until the test ends.
func start(t testing.TB, cfg Config) (*Server, string) {
	t.Helper()
	if cfg.Listen == nil {
		cfg.Listen = []netip.AddrPort{anyPort}
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("run: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("the server did not stop within a minute")
		}
	})
	return s, bound[0].String()
}

func exchange(t testing.TB, network, addr string, req *dns.Msg) *dns.Msg {
	t.Helper()
	client := dns.Client{Net: network, Timeout: time.Minute}
	m, _, err := client.Exchange(req, addr)
	if err != nil {
		t.Fatalf("%s: %v", network, err)
	}
	return m
}

func TestServerAnswersOverBothTransports(t *testing.T) {
	s, addr := start(t, Config{})
	s.Swap(Build(crowd(100)))
	req := ask(t, "crowd.default.svc.cluster.local. A")
	if m := exchange(t, "udp", addr, req); !m.Truncated || len(m.Answer) == 0 || !m.Authoritative {
		t.Errorf("udp: got %v, want a cut answer", m.MsgHdr)
	}
	if m := exchange(t, "tcp", addr, req); m.Truncated || len(m.Answer) != 100 {
		t.Errorf("tcp: got %d answers, cut %v; want all 100", len(m.Answer), m.Truncated)
	}
}

func TestServerKnowsNothingBeforeTheFirstZone(t *testing.T) {
	s, addr := start(t, Config{})
	req := ask(t, "db-0.db.default.svc.cluster.local. A")
	if m := exchange(t, "udp", addr, req); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("got %s, want SERVFAIL: the name may well exist", dns.RcodeToString[m.Rcode])
	}
	s.Swap(Build(fixture()))
	if m := exchange(t, "udp", addr, req); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 1 {
		t.Errorf("got %v, want the member", m)
	}
}

func TestServerNeverGoesBack(t *testing.T) {
	at := func(epoch, rev int64) *Zone {
		return Build(Snapshot{Sequence: spec.Sequence{Epoch: epoch, Rev: rev}})
	}
	s, err := New(Config{Listen: []netip.AddrPort{anyPort}})
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		epoch, rev int64
		want       bool
	}{{1, 5, true}, {1, 4, false}, {1, 5, true}, {2, 1, true}, {1, 9, false}, {2, 2, true}}
	for _, step := range steps {
		if got := s.Swap(at(step.epoch, step.rev)); got != step.want {
			t.Errorf("swap to %d.%d: %v, want %v", step.epoch, step.rev, got, step.want)
		}
	}
	if got, want := s.zone.Load().Sequence(), (spec.Sequence{Epoch: 2, Rev: 2}); got != want {
		t.Errorf("zone is at %v, want %v", got, want)
	}
}

func TestSwapUnderLoadLosesNoAnswer(t *testing.T) {
	s, addr := start(t, Config{})
	var rev atomic.Int64
	swap := func() {
		z := fixture()
		z.Sequence.Rev = rev.Add(1)
		s.Swap(Build(z))
	}
	swap()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				swap()
			}
		}
	})
	for range 200 {
		m := exchange(t, "udp", addr, ask(t, "db-0.db.default.svc.cluster.local. A"))
		if len(m.Answer) != 1 {
			t.Fatalf("got %v, want the member in every answer", m)
		}
	}
	close(stop)
	wg.Wait()
	if rev.Load() < 2 {
		t.Error("no zone was swapped meanwhile")
	}
}

func TestListenSaysWhatIsWrong(t *testing.T) {
	_, addr := start(t, Config{})
	listen := func(addr string) error {
		s, err := New(Config{Listen: []netip.AddrPort{anyPort, netip.MustParseAddrPort(addr)}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Listen(t.Context())
		if s.sockets != nil {
			t.Errorf("%s: sockets are left after a failure", addr)
		}
		return err
	}
	if err := listen(addr); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), addr) {
		t.Errorf("taken: got %v", err)
	}
	if err := listen("192.0.2.77:0"); !errors.Is(err, syscall.EADDRNOTAVAIL) || !strings.Contains(err.Error(), "not an address of this host") {
		t.Errorf("not ours: got %v", err)
	}
}

func TestServerBearsJunk(t *testing.T) {
	s, addr := start(t, Config{})
	s.Swap(Build(fixture()))
	for _, network := range []string{"udp", "tcp"} {
		for _, junk := range []string{"", "\x00", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("\xff", 1400), "\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c"} {
			c, err := net.Dial(network, addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write([]byte(junk)); err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		if m := exchange(t, network, addr, ask(t, "db.default.svc.cluster.local. A")); len(m.Answer) != 1 {
			t.Errorf("%s: after junk got %v", network, m)
		}
	}
	// An answer must never be answered: two servers would talk for ever.
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	response := ask(t, "nobody.cluster.local. A")
	response.Response = true
	wire, err := response.Pack()
	if err != nil {
		t.Fatal(err)
	}
	question, err := ask(t, "db.default.svc.cluster.local. A").Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{wire, question} {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 512)
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(got); err != nil || !slices.Equal(got[:2], question[:2]) {
		t.Errorf("first answer is to %x (%v), want to %x", got[:2], err, question[:2])
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	s, addr := start(t, Config{MaxConns: 2})
	s.Swap(Build(fixture()))
	var conns []*dns.Conn
	for range 3 {
		c, err := dns.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	read := func(c *dns.Conn, within time.Duration) error {
		c.SetDeadline(time.Now().Add(within))
		_, err := c.ReadMsg()
		return err
	}
	for i, c := range conns {
		c.SetDeadline(time.Now().Add(time.Minute))
		if err := c.WriteMsg(ask(t, "db.default.svc.cluster.local. A")); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			if err := read(c, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := read(conns[2], 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the third of two connections: %v, want it to wait", err)
	}
	conns[0].Close()
	if err := read(conns[2], 10*time.Second); err != nil {
		t.Errorf("the third connection once one is closed: %v", err)
	}
}

func TestDig(t *testing.T) {
	dig, err := exec.LookPath("dig")
	if err != nil {
		t.Skip("needs dig")
	}
	s, addr := start(t, Config{})
	s.Swap(Build(crowd(100)))
	host, port, _ := strings.Cut(addr, ":")
	run := func(args ...string) string {
		args = append([]string{"@" + host, "-p", port, "+tries=1", "+time=10"}, args...)
		out, err := exec.CommandContext(t.Context(), dig, args...).Output()
		if err != nil {
			t.Fatalf("dig %v: %v", args, err)
		}
		return string(out)
	}
	if got := strings.TrimSpace(run("+short", "db-1.db.default.svc.cluster.local")); got != "10.88.0.3" {
		t.Errorf("a member: got %q", got)
	}
	if got := strings.TrimSpace(run("+short", "-x", "10.88.0.3")); got != "db-1.db.default.svc.cluster.local." {
		t.Errorf("a reverse name: got %q", got)
	}
	if got := strings.Count(run("+short", "SRV", "_client._tcp.crowd.default.svc.cluster.local"), "\n"); got != 100 {
		t.Errorf("dig got %d SRV records after the cut answer, want 100 over TCP", got)
	}
	for _, odd := range []string{"malformed", ";; Warning", "recursion requested but not available"} {
		for _, q := range [][]string{{"db.default.svc.cluster.local", "A"}, {"nobody.svc.cluster.local", "A"}, {"+tcp", "cluster.local", "ANY"}, {"+noedns", "crowd.default.svc.cluster.local"}} {
			if out := run(q...); strings.Contains(out, odd) {
				t.Errorf("dig %v says %q:\n%s", q, odd, out)
			}
		}
	}
}
