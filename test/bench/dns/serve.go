package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// snapshot is a set of n members, three of them ready.
func snapshot(n int, rev int64) dnsd.Snapshot {
	addr := netip.MustParseAddr("10.88.0.1")
	p := records.Snapshot{
		Ref: spec.SetRef{Namespace: "default", Name: "db"}, Service: "db",
		Names: []records.DNSName{{Name: "db", Ports: []spec.ServicePort{{Name: "client", Port: 2379}}}},
	}
	for i := range n {
		addr = addr.Next()
		p.Peers = append(p.Peers, records.Peer{Name: fmt.Sprint("db-", i), Ordinal: i, Address: addr, Ready: i < 3})
	}
	return dnsd.Snapshot{
		Sequence: spec.Sequence{Epoch: 1, Rev: rev}, Gateway: netip.MustParseAddr("169.254.1.1"),
		Members: netip.MustParsePrefix("10.88.0.0/16"), Pictures: []records.Snapshot{p},
	}
}

func memberName(i int) string { return fmt.Sprintf("db-%d.db.default.svc.cluster.local.", i) }

// serveZone serves until ctx ends.
func serveZone(ctx context.Context, what string, members int) error {
	if what == "bare" {
		return serveBare(ctx, dnsd.Build(snapshot(members, 1)), members)
	}
	s, err := dnsd.New(dnsd.Config{
		Listen: []netip.AddrPort{netip.MustParseAddrPort(addr)}, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	z := dnsd.Build(snapshot(members, 1))
	s.Swap(z)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Run(ctx) })
	if what == "stead-swapping" {
		group.Go(func() error {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for rev := int64(2); ; rev++ {
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
				next := snapshot(members, rev)
				next.Pictures[0].Peers[2].Ready = rev%2 == 0
				z = z.Next(next)
				s.Swap(z)
			}
		})
	}
	return group.Wait()
}

// serveBare answers from a map by a plain handler of the library: the least that
// a server on it does.
func serveBare(ctx context.Context, z *dnsd.Zone, members int) error {
	answers := map[dns.Question][]dns.RR{}
	for _, q := range questions(members) {
		if m := z.Answer(new(dns.Msg).SetQuestion(q.Name, q.Qtype), dnsd.TCP); m.Rcode == dns.RcodeSuccess {
			answers[q] = m.Answer
		}
	}
	soa := z.Answer(new(dns.Msg).SetQuestion("cluster.local.", dns.TypeSOA), dnsd.TCP).Answer
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	srv := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		q := r.Question[0]
		q.Name = dns.CanonicalName(q.Name)
		rrs, known := answers[q]
		m.Answer = rrs
		if len(rrs) == 0 {
			m.Ns = soa
		}
		if !known {
			m.Rcode = dns.RcodeNameError
		}
		_ = w.WriteMsg(m)
	})}
	stop := context.AfterFunc(ctx, func() { _ = srv.Shutdown() })
	defer stop()
	return srv.ActivateAndServe()
}

// questions are what members ask: mostly each other's address, by both families
// as the C libraries do, sometimes a port, and names that do not exist.
func questions(members int) []dns.Question {
	var qs []dns.Question
	add := func(name string, kind uint16) {
		qs = append(qs, dns.Question{Name: name, Qtype: kind, Qclass: dns.ClassINET})
	}
	for i := range members {
		add(memberName(i), dns.TypeA)
		add(memberName(i), dns.TypeAAAA)
		add("db.default.svc.cluster.local.", dns.TypeA)
		if i%2 == 0 {
			add("_client._tcp.db.default.svc.cluster.local.", dns.TypeSRV)
			add(fmt.Sprintf("www%d.example.org.default.svc.cluster.local.", i), dns.TypeA)
		}
	}
	return qs
}

// zoneFile is the same zone for the peers.
func zoneFile(members int) string {
	z := dnsd.Build(snapshot(members, 1))
	var b strings.Builder
	seen := map[string]bool{}
	add := func(q dns.Question) {
		for _, rr := range z.Answer(new(dns.Msg).SetQuestion(q.Name, q.Qtype), dnsd.TCP).Answer {
			if line := rr.String(); !seen[line] {
				seen[line] = true
				b.WriteString(line + "\n")
			}
		}
	}
	for _, kind := range []uint16{dns.TypeSOA, dns.TypeNS} {
		add(dns.Question{Name: "cluster.local.", Qtype: kind})
	}
	add(dns.Question{Name: "ns.dns.cluster.local.", Qtype: dns.TypeA})
	for _, q := range questions(members) {
		add(q)
	}
	return b.String()
}
