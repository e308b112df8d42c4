package dnsd

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// upstream is a resolver on loopback that answers as told and counts.
func upstream(t *testing.T, h dns.HandlerFunc) (string, *atomic.Int32) {
	t.Helper()
	k, err := bind(t.Context(), anyPort)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	counted := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) { asked.Add(1); h(w, r) })
	servers, err := k.servers(counted, nil, nil, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, srv := range servers {
		go func() { done <- serve(ctx, ctx, srv, false) }()
	}
	t.Cleanup(func() {
		cancel()
		for range 2 {
			<-done
		}
	})
	return k.addr.String(), &asked
}

// says answers every question with n addresses and a code.
func says(rcode, n int) dns.HandlerFunc {
	return func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetRcode(r, rcode)
		for i := range n {
			m.Answer = append(m.Answer, addressRR(r.Question[0].Name, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})))
		}
		m.SetEdns0(4000, false)
		if w.LocalAddr().Network() == "udp" {
			m.Truncate(512)
		}
		w.WriteMsg(m)
	}
}

// silent never answers.
func silent(dns.ResponseWriter, *dns.Msg) {}

func TestForward(t *testing.T) {
	good, _ := upstream(t, says(dns.RcodeSuccess, 1))
	many, _ := upstream(t, says(dns.RcodeSuccess, 200))
	none, _ := upstream(t, says(dns.RcodeNameError, 0))
	failing, _ := upstream(t, says(dns.RcodeServerFailure, 0))
	deaf, _ := upstream(t, silent)
	forged, _ := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Question[0].Name = "other.example."
		w.WriteMsg(m)
	})
	tests := []struct {
		name      string
		upstreams []string
		network   string
		edns      bool
		rcode     int
		answers   int // -1: some, cut
	}{
		{"an answer is handed on", []string{good}, "udp", false, dns.RcodeSuccess, 1},
		{"so is over TCP", []string{good}, "tcp", false, dns.RcodeSuccess, 1},
		{"EDNS stays between neighbours", []string{good}, "udp", true, dns.RcodeSuccess, 1},
		{"no such name is an answer", []string{none, good}, "udp", false, dns.RcodeNameError, 0},
		{"the next is asked when one fails", []string{failing, good}, "udp", false, dns.RcodeSuccess, 1},
		{"the next is asked when one is silent", []string{deaf, good}, "udp", false, dns.RcodeSuccess, 1},
		{"a forged answer is none", []string{forged}, "udp", false, dns.RcodeServerFailure, 0},
		{"all fail", []string{failing, failing}, "udp", false, dns.RcodeServerFailure, 0},
		{"a long answer comes over TCP", []string{many}, "tcp", false, dns.RcodeSuccess, 200},
		{"and is cut for UDP", []string{many}, "udp", false, dns.RcodeSuccess, -1},
		{"without upstream it fails at once", nil, "udp", false, dns.RcodeServerFailure, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, addr := start(t, Config{Upstreams: tt.upstreams, UpstreamTimeout: 2 * time.Second})
			s.Swap(Build(fixture()))
			req := ask(t, "eXample.org. A")
			if tt.edns {
				req.SetEdns0(1232, false)
			}
			m := exchange(t, tt.network, addr, req)
			if m.Rcode != tt.rcode || tt.answers >= 0 && len(m.Answer) != tt.answers ||
				m.Truncated != (tt.answers < 0) || m.Question[0].Name != "eXample.org." || m.Authoritative {
				t.Errorf("got %v", m)
			}
			if (m.IsEdns0() != nil) != tt.edns {
				t.Errorf("EDNS in the answer: %v, want %v", m.IsEdns0(), tt.edns)
			}
		})
	}
}

func TestOurNamesAreNeverForwarded(t *testing.T) {
	addr, asked := upstream(t, says(dns.RcodeSuccess, 1))
	s, ours := start(t, Config{Upstreams: []string{addr}})
	s.Swap(Build(fixture()))
	for _, q := range []string{"nobody.svc.cluster.local. A", "db-2.db.default.svc.cluster.local. A", "9.9.88.10.in-addr.arpa. PTR", "cluster.local. AXFR"} {
		if m := exchange(t, "udp", ours, ask(t, q)); len(m.Answer) != 0 {
			t.Errorf("%s: got %v", q, m.Answer)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

func TestASilentUpstreamDelaysOnlyTheFirstQuestion(t *testing.T) {
	deaf, asked := upstream(t, silent)
	good, _ := upstream(t, says(dns.RcodeSuccess, 1))
	s, addr := start(t, Config{Upstreams: []string{deaf, good}, UpstreamTimeout: 2 * time.Second})
	s.Swap(Build(fixture()))
	for range 5 {
		if m := exchange(t, "udp", addr, ask(t, "example.org. A")); len(m.Answer) != 1 {
			t.Fatalf("got %v", m)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the silent one was asked %d times, want once", n)
	}
}

func TestForwardsAreBounded(t *testing.T) {
	deaf, asked := upstream(t, silent)
	s, addr := start(t, Config{Upstreams: []string{deaf}, MaxForwards: 1, UpstreamTimeout: time.Hour})
	s.Swap(Build(fixture()))
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wire, err := ask(t, "example.org. A").Pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(wire); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); asked.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the first question was never forwarded")
		}
	}
	if m := exchange(t, "udp", addr, ask(t, "example.org. A")); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("got %v, want SERVFAIL", m)
	}
}

// A member that asks for outside names without end, and of a server that does not answer,
// would leave no place to anybody else.
func TestOneAskerLeavesPlacesToOthers(t *testing.T) {
	deaf, asked := upstream(t, silent)
	s, _ := start(t, Config{
		Upstreams: []string{deaf}, MaxForwards: 4, MaxForwardsEach: 3, UpstreamTimeout: time.Hour,
		Members: netip.MustParsePrefix("10.88.0.0/16"),
	})
	s.Swap(Build(fixture()))
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	question := ask(t, "example.org. A")
	forwarded := func(from string, n int32) {
		t.Helper()
		waiting.Go(func() { s.answer(ctx, question.Copy(), UDP, netip.MustParseAddr(from)) })
		for deadline := time.Now().Add(time.Minute); asked.Load() < n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("question %d was never forwarded", n)
			}
		}
	}
	refused := func(what, from string) {
		t.Helper()
		short, stop := context.WithTimeout(ctx, 10*time.Second)
		defer stop()
		before := asked.Load()
		if m := s.answer(short, question.Copy(), UDP, netip.MustParseAddr(from)); m.Rcode != dns.RcodeServerFailure || asked.Load() != before {
			t.Errorf("%s: %v, and %d are forwarded", what, m, asked.Load())
		}
	}
	for n := range int32(3) {
		forwarded("10.88.0.2", n+1)
	}
	refused("one too many of a client", "10.88.0.2")
	forwarded("10.88.0.3", 4)
	refused("one too many in all", "10.88.0.4")
	cancel()
	waiting.Wait()
	if p := s.forward.quota; p.used != 0 || len(p.by) != 0 {
		t.Errorf("quota is not released: %d, %v", p.used, p.by)
	}
}

func TestUpstreams(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("# x\nsearch a.b\nnameserver 192.0.2.1\nnameserver 169.254.1.1\nnameserver 2001:db8::1\noptions edns0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := HostUpstreams(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := usableUpstreams(read, []netip.AddrPort{netip.MustParseAddrPort("169.254.1.1:53")})
	if want := []string{"192.0.2.1:53", "[2001:db8::1]:53"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v: our own address would loop", got, err, want)
	}
	got, err = usableUpstreams([]string{"127.0.0.1", "127.0.0.1:54", "0.0.0.0"}, []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:53")})
	if want := []string{"127.0.0.1:54"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("listening on all addresses: got %v, %v; want %v", got, err, want)
	}
	if _, err := usableUpstreams([]string{"dns.example"}, nil); err == nil {
		t.Error("a name is taken for an upstream's address")
	}
	if _, err := HostUpstreams(path + ".absent"); err == nil {
		t.Error("an absent file is read")
	}
}
