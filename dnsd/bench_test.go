package dnsd

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var timed = []string{
	"crowd-1.crowd.default.svc.cluster.local. A", "crowd.default.svc.cluster.local. A",
	"_client._tcp.crowd.default.svc.cluster.local. SRV", "nobody.svc.cluster.local. A",
}

// BenchmarkAnswer is the cost of one answer by the library, without any I/O.
func BenchmarkAnswer(b *testing.B) {
	zone := Build(crowd(3))
	for _, q := range timed {
		req := ask(b, q)
		b.Run(q, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				zone.Answer(req, UDP)
			}
		})
	}
}

func BenchmarkBuild1000(b *testing.B) {
	s := crowd(1000)
	b.ReportAllocs()
	for b.Loop() {
		Build(s)
	}
}

// BenchmarkServe is one question over loopback, asker included: ours, and beside
// it a bare handler of the library that answers the same record from memory.
func BenchmarkServe(b *testing.B) {
	const question = "crowd-1.crowd.default.svc.cluster.local. A"
	b.Run("stead", func(b *testing.B) {
		s, addr := start(b, Config{})
		s.Swap(Build(crowd(3)))
		load(b, addr, question)
	})
	b.Run("bare", func(b *testing.B) {
		rr := Build(crowd(3)).Answer(ask(b, question), UDP).Answer[0]
		k, err := bind(b.Context(), anyPort)
		if err != nil {
			b.Fatal(err)
		}
		srv := &dns.Server{PacketConn: k.udp, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
			m := new(dns.Msg).SetReply(r)
			m.Answer = []dns.RR{rr}
			w.WriteMsg(m)
		})}
		done := make(chan error, 1)
		started := make(chan struct{})
		srv.NotifyStartedFunc = func() { close(started) }
		go func() { done <- srv.ActivateAndServe() }()
		<-started
		load(b, k.addr.String(), question)
		srv.Shutdown()
		<-done
		k.close()
	})
}

// load asks from 16 sockets at once, each one question at a time.
func load(b *testing.B, addr, question string) {
	wire, err := ask(b, question).Pack()
	if err != nil {
		b.Fatal(err)
	}
	var answered atomic.Int64
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("udp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		buf := make([]byte, 1500)
		for pb.Next() {
			c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := c.Write(wire); err != nil {
				b.Error(err)
				return
			}
			if _, err := c.Read(buf); err != nil {
				b.Error(err)
				return
			}
			answered.Add(1)
		}
	})
	b.ReportMetric(float64(answered.Load())/b.Elapsed().Seconds(), "answers/s")
}

// BenchmarkRespond is the cost of one packed answer without any I/O.
func BenchmarkRespond(b *testing.B) { respondTo(b, crowd(3), timed) }

// BenchmarkRespondOthers is the same beside 10,000 sets of which only the names are known, and what a
// name costs that none of these has.
func BenchmarkRespondOthers(b *testing.B) {
	s := crowd(3)
	s.Others = manySets(10000)
	respondTo(b, s, append(timed, "set-77-3.set-77.space-7.svc.cluster.local. A", "www.example.org.space-7.svc.cluster.local. A"))
}

func respondTo(b *testing.B, s Snapshot, questions []string) {
	zone := Build(s)
	for _, q := range questions {
		wire, err := ask(b, q).Pack()
		if err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, maxUDP)
		b.Run(q, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				copy(buf, wire)
				zone.respond(buf, len(wire))
			}
		})
	}
}

// BenchmarkNext is one member of one set of 100 becoming ready, among 10 such sets.
func BenchmarkNext(b *testing.B) {
	s, addr := fixture(), netip.MustParseAddr("10.88.100.1")
	for i := range 10 {
		p := records.Snapshot{Ref: spec.SetRef{Namespace: "default", Name: spec.SetName(fmt.Sprint("crowd", i))}}
		p.Service = string(p.Ref.Name)
		p.Names = []records.DNSName{{Name: p.Service, Ports: []spec.ServicePort{{Name: "client", Port: 2379}}}}
		for j := range 100 {
			p.Peers = append(p.Peers, records.Peer{Name: fmt.Sprint(p.Service, "-", j), Ordinal: j, Address: addr, Ready: true})
			addr = addr.Next()
		}
		s.Pictures = append(s.Pictures, p)
	}
	zone := Build(s)
	changed := &s.Pictures[len(s.Pictures)-1]
	b.ReportAllocs()
	for b.Loop() {
		changed.Peers = slices.Clone(changed.Peers) // which the zone keeps
		changed.Peers[0].Ready = !changed.Peers[0].Ready
		zone = zone.Next(s)
	}
}

// BenchmarkNext1000 is one member of a set of 1,000 becoming ready.
func BenchmarkNext1000(b *testing.B) {
	s := crowd(1000)
	zone := Build(s)
	changed := &s.Pictures[len(s.Pictures)-1]
	b.ReportAllocs()
	for b.Loop() {
		changed.Peers = slices.Clone(changed.Peers)
		changed.Peers[0].Ready = !changed.Peers[0].Ready
		zone = zone.Next(s)
	}
}

// BenchmarkNextOthers is a zone of three small sets, of which one changes, beside 10,000 of which
// only the names are known: these the same, in an equal list, and with one that changes.
func BenchmarkNextOthers(b *testing.B) {
	next := func(b *testing.B, change func(s *Snapshot)) {
		s := fixture()
		s.Others = manySets(10000)
		zone := Build(s)
		b.ReportAllocs()
		for b.Loop() {
			s.Pictures[0].Peers[0].Ready = !s.Pictures[0].Peers[0].Ready
			change(&s)
			zone = zone.Next(s)
		}
	}
	b.Run("none", func(b *testing.B) { next(b, func(s *Snapshot) { s.Others = nil }) })
	b.Run("same", func(b *testing.B) { next(b, func(*Snapshot) {}) })
	many := manySets(10000)
	lists := [2][]records.SetNames{many, slices.Clone(many)}
	n := 0
	b.Run("equal", func(b *testing.B) {
		next(b, func(s *Snapshot) { n++; s.Others = lists[n%2] })
	})
	lists[1][77].End++
	b.Run("one", func(b *testing.B) {
		next(b, func(s *Snapshot) { n++; s.Others = lists[n%2] })
	})
}
