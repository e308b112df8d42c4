package dnsd

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// adopted is a server on sockets that others have, too: what asks it to end, and what awaits that.
func adopted(t *testing.T, k Sockets, cfg Config) (stop, end func()) {
	t.Helper()
	cfg.Listen, cfg.Grace = []netip.AddrPort{k.Addr}, time.Minute
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Adopt([]Sockets{k}); err != nil {
		t.Fatal(err)
	}
	s.Swap(Build(fixture()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("run: %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("the server does not end")
		}
	})
	t.Cleanup(end)
	return cancel, end
}

// askers ask over UDP and TCP, questions that are answered as packed and others, each once and without a second try,
// until stop is called, which returns how many were answered.
func askers(t *testing.T, addr string) (stop func() int64) {
	t.Helper()
	var group sync.WaitGroup
	var over atomic.Bool
	var answered atomic.Int64
	for _, by := range []struct{ network, line string }{
		{"udp", "db-0.db.default.svc.cluster.local. A"}, {"udp", "db.default.svc.cluster.local. A"},
		{"udp", "db-0.db.default.svc.cluster.local. ANY"}, {"tcp", "db-0.db.default.svc.cluster.local. A"},
	} {
		group.Go(func() {
			for !over.Load() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				m, _, err := (&dns.Client{Net: by.network, Timeout: time.Minute}).ExchangeContext(ctx, ask(t, by.line), addr)
				cancel()
				if err != nil || m.Rcode != dns.RcodeSuccess || len(m.Answer) == 0 {
					t.Errorf("%s over %s: %v, %v", by.line, by.network, m, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	return func() int64 {
		over.Store(true)
		group.Wait()
		return answered.Load()
	}
}

// One server after the other has the same sockets: what one has read it answers, the rest is the next one's.
func TestSocketsGoFromServerToServerWithoutALostQuestion(t *testing.T) {
	k, err := BindSockets(t.Context(), anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	_, end := adopted(t, k, Config{})
	stop := askers(t, k.Addr.String())
	for i := range 20 {
		if i%2 == 0 {
			end() // nobody reads: what is asked now waits
		}
		_, next := adopted(t, k, Config{})
		end()
		end = next
	}
	if n := stop(); n == 0 {
		t.Error("nothing was answered")
	}
}

// A question that was handed on is under way when its server is to end: it is answered nevertheless.
func TestAServerThatEndsAnswersWhatIsUnderWay(t *testing.T) {
	came, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	resolver, _ := upstream(t, func(w dns.ResponseWriter, req *dns.Msg) {
		once.Do(func() { close(came) })
		<-goOn
		m := new(dns.Msg)
		m.SetReply(req)
		m.Answer = []dns.RR{addressRR(req.Question[0].Name, netip.MustParseAddr("192.0.2.7"))}
		_ = w.WriteMsg(m)
	})
	k, err := BindSockets(t.Context(), anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	stop, end := adopted(t, k, Config{Upstreams: []string{resolver}, UpstreamTimeout: time.Minute})
	got := make(chan error, 1)
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		m, _, err := (&dns.Client{Timeout: time.Minute}).ExchangeContext(ctx, ask(t, "example.org. A"), k.Addr.String())
		if err == nil && len(m.Answer) != 1 {
			err = errors.New(m.String())
		}
		got <- err
	}()
	<-came
	stop()
	select {
	case err := <-got:
		t.Fatalf("answered before anybody knew the answer: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	release()
	if err := <-got; err != nil {
		t.Error(err)
	}
	end()
}

func TestOnlySocketsAreTakenOver(t *testing.T) {
	k, err := BindSockets(t.Context(), anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	for what, wrong := range map[string]Sockets{
		"UDP is a pipe": {Addr: k.Addr, UDP: pipe[0], TCP: k.TCP}, "TCP is a pipe": {Addr: k.Addr, UDP: k.UDP, TCP: pipe[0]},
		"TCP is UDP": {Addr: k.Addr, UDP: k.UDP, TCP: k.UDP}, "it is closed": {Addr: k.Addr, UDP: 1 << 20, TCP: 1 << 20},
	} {
		s, err := New(Config{Listen: []netip.AddrPort{k.Addr}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Adopt([]Sockets{wrong}); err == nil {
			t.Errorf("%s: taken over", what)
			s.Close()
		}
	}
}
