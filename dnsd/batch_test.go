package dnsd

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestUsualAndUnusualQuestionsInOneBatch sends more questions than a batch holds
// at once, all kinds mixed, and wants each answered to its asker.
func TestUsualAndUnusualQuestionsInOneBatch(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0"} {
		t.Run(listen, func(t *testing.T) {
			s, addr := start(t, Config{Listen: []netip.AddrPort{netip.MustParseAddrPort(listen)}})
			s.Swap(Build(fixture()))
			_, port, _ := net.SplitHostPort(addr)
			host := map[string]string{"[::1]:0": "::1"}[listen]
			if host == "" {
				host = "127.0.0.1"
			}
			var conns []*dns.Conn
			for range 2 {
				c, err := dns.Dial("udp", net.JoinHostPort(host, port))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				conns = append(conns, c)
			}
			open := map[string]bool{}
			for id := range 100 {
				req := ask(t, []string{"db-0.db.default.svc.cluster.local. A", "cluster.local. ANY", "nobody.cluster.local. A"}[id%3])
				req.Id = uint16(id)
				if err := conns[id%2].WriteMsg(req); err != nil {
					t.Fatal(err)
				}
				open[fmt.Sprint(id%2, req.Id, req.Question)] = true
			}
			for i, c := range conns {
				for range 50 {
					c.SetReadDeadline(time.Now().Add(time.Minute))
					m, err := c.ReadMsg()
					if err != nil {
						t.Fatalf("%d open: %v", len(open), err)
					}
					delete(open, fmt.Sprint(i, m.Id, m.Question))
				}
			}
			if len(open) != 0 {
				t.Errorf("not answered, or to another: %v", open)
			}
		})
	}
}

// TestPackedConnGoesOnAfterAnAnswerThatCannotBeSent queues an answer to port 0.
func TestPackedConnGoesOnAfterAnAnswerThatCannotBeSent(t *testing.T) {
	k, err := bind(t.Context(), anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	zone := new(atomic.Pointer[Zone])
	zone.Store(Build(fixture()))
	c, err := newPackedConn(k.udp, zone, new(tally))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dns.Dial("udp", k.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 2 {
		if err := client.WriteMsg(ask(t, "db-0.db.default.svc.cluster.local. A")); err != nil {
			t.Fatal(err)
		}
	}
	for fetched := 0; fetched == 0; fetched = c.got { // loopback: both are there
		if err := c.fetch(); err != nil {
			t.Fatal(err)
		}
	}
	if c.got != 2 {
		t.Fatalf("fetched %d, want both", c.got)
	}
	c.slots[0].from.Port = 0
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, _, err := c.ReadFrom(make([]byte, maxUDP)); !os.IsTimeout(err) {
		t.Fatalf("got %v, want no other question before the time-out", err)
	}
	client.SetReadDeadline(time.Now().Add(time.Minute))
	if m, err := client.ReadMsg(); err != nil || len(m.Answer) != 1 {
		t.Errorf("the second answer: %v, %v", m, err)
	}
	if c.answers != 0 || c.sent != 0 {
		t.Errorf("%d of %d answers are left", c.sent, c.answers)
	}
}

// TestSwapUnderLoadDelaysNoAnswer asks from many sockets at once while zones
// change as fast as they can be made, and wants every answer: the present one,
// never an older one than was seen before, each without asking again.
func TestSwapUnderLoadDelaysNoAnswer(t *testing.T) {
	const askers, questions = 8, 300
	s, addr := start(t, Config{})
	snapshot := crowd(100)
	zone := Build(snapshot)
	s.Swap(zone)
	var rev atomic.Int64
	first := snapshot.Sequence.Rev
	rev.Store(first)
	stop := make(chan struct{})
	var swapper, wg sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			snapshot.Sequence.Rev++
			snapshot.Pictures[0].Peers[1].Ready = snapshot.Sequence.Rev%2 == 0
			zone = zone.Next(snapshot)
			s.Swap(zone)
			rev.Store(snapshot.Sequence.Rev)
		}
	})
	for range askers {
		wg.Go(func() {
			c, err := dns.Dial("udp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for n := 0; n < questions || rev.Load() < first+10; n++ {
				told := rev.Load()
				req := new(dns.Msg).SetQuestion("cluster.local.", dns.TypeSOA)
				c.SetDeadline(time.Now().Add(time.Minute)) // it is not asked again
				if err := c.WriteMsg(req); err != nil {
					t.Error(err)
					return
				}
				m, err := c.ReadMsg()
				if err != nil || m.Id != req.Id || len(m.Answer) != 1 {
					t.Errorf("got %v, %v; want the answer", m, err)
					return
				}
				if serial := int64(m.Answer[0].(*dns.SOA).Serial); serial < told {
					t.Errorf("told of %d when %d was in place", serial, told)
					return
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	swapper.Wait()
}
