package dnsd

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestAFloodOfUnfollowedNamesIsBounded asks for the names of 12,000 addresses from 60 addresses.
func TestAFloodOfUnfollowedNamesIsBounded(t *testing.T) {
	const askers, questions = 60, 200
	var now, most, calls atomic.Int64
	before := runtime.NumGoroutine()
	n := startFollowing(t, Config{}, func(ctx context.Context, _ Interest) error {
		calls.Add(1)
		at := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); at > old && !most.CompareAndSwap(old, at); old = most.Load() {
		}
		<-ctx.Done()
		return ctx.Err()
	})
	held := 0
	for i := range askers {
		local := &net.UDPAddr{IP: net.IPv4(127, 0, 1, byte(i+1))}
		remote := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(n.addr))
		c, err := net.DialUDP("udp", local, remote)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for j := range questions {
			addr := netip.AddrFrom4([4]byte{10, 88, byte(i + 10), byte(j)})
			wire, err := ask(t, reverseName(addr, 32)+" PTR").Pack()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(wire); err != nil {
				t.Fatal(err)
			}
		}
		held = max(held, n.waiting())
		if m := exchange(t, "udp", n.addr, ask(t, "db-0.db.default.svc.cluster.local. A")); len(m.Answer) != 1 {
			t.Errorf("a name of the zone, meanwhile: %v", m)
		}
	}
	until(t, "so many are being followed as may be", func() bool { return now.Load() == maxInterests })
	until(t, "the questions beyond are answered", func() bool { return runtime.NumGoroutine() < before+2*maxInterests+100 })
	if m := exchange(t, "udp", n.addr, ask(t, "web.default.svc.cluster.local. A")); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("one more: %v, want SERVFAIL at once", m)
	}
	if most.Load() > maxInterests || calls.Load() > maxInterests || held > maxHeld {
		t.Errorf("%d interests at once, %d in all, %d questions held", most.Load(), calls.Load(), held)
	}
	until(t, "no question is held but for what is being followed", func() bool { return n.waiting() <= maxInterests })
}

func TestBoundsOfEachAsker(t *testing.T) {
	goOn := make(chan struct{})
	f := newFollows(func(ctx context.Context, _ Interest) error { <-goOn; return nil }, time.Minute)
	clock := time.Unix(1, 0)
	f.now = func() time.Time { return clock }
	asker := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 88, 0, byte(i)}) }
	interest := func(i int) Interest {
		return Interest{Address: netip.AddrFrom4([4]byte{10, 88, byte(i >> 8), byte(i)})}
	}
	begun := 0
	for i := range 2 * maxInterestsEach {
		if f.call(t.Context(), interest(i), asker(1)) != nil {
			begun++
		}
	}
	if begun != maxInterestsEach {
		t.Errorf("one asker began %d, want %d", begun, maxInterestsEach)
	}
	if f.call(t.Context(), interest(0), asker(1)) == nil {
		t.Error("what another question waits for already was refused")
	}
	if f.call(t.Context(), interest(999), asker(2)) == nil {
		t.Error("another asker has no place")
	}
	close(goOn)
	f.running.Wait()
	for begun++; begun < maxFollowed; begun++ {
		if f.call(t.Context(), interest(1000+begun), asker(begun)) == nil {
			t.Fatalf("refused after %d in a second", begun)
		}
	}
	if f.call(t.Context(), interest(5000), asker(3)) != nil {
		t.Error("one too many in a second")
	}
	clock = clock.Add(time.Second)
	if f.call(t.Context(), interest(5000), asker(3)) == nil {
		t.Error("refused in the next second")
	}
	f.running.Wait()
}

func TestShutdownEndsWhatIsHeld(t *testing.T) {
	var running atomic.Int64
	began := make(chan struct{}, 2)
	cfg := Config{Listen: []netip.AddrPort{anyPort}, hold: time.Hour, Follow: func(ctx context.Context, _ Interest) error {
		running.Add(1)
		defer running.Add(-1)
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Swap(Build(partly()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for _, question := range [][2]string{{"udp", "web.default.svc.cluster.local. A"}, {"tcp", "big.far.svc.cluster.local. A"}} {
		c, err := dns.Dial(question[0], bound[0].String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.WriteMsg(ask(t, question[1])); err != nil {
			t.Fatal(err)
		}
		<-began
	}
	cancel()
	select {
	case err := <-done:
		if err != nil || running.Load() != 0 || s.waiting() != 0 {
			t.Errorf("run: %v; %d calls and %d questions are left", err, running.Load(), s.waiting())
		}
	case <-time.After(time.Minute):
		t.Error("the server did not stop within a minute")
	}
}
