package dnsd

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// FuzzAnswer gives any bytes as a question. Whatever parses is answered: same id,
// same question, a packable message that is not too long.
func FuzzAnswer(f *testing.F) {
	for _, q := range []string{
		"db.default.svc.cluster.local. A", "_client._tcp.crowd.default.svc.cluster.local. SRV",
		"nobody.svc.cluster.local. ANY", "3.0.88.10.in-addr.arpa. PTR", "example.org. AAAA", ". NS", `a\.b\000.cluster.local. TXT`,
	} {
		req := ask(f, q)
		plain, err := req.Pack()
		if err != nil {
			f.Fatal(err)
		}
		edns, err := req.SetEdns0(1400, true).Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(plain, false)
		f.Add(edns, true)
		f.Add(plain[:len(plain)-3], false)
	}
	zone := Build(crowd(50))
	f.Fuzz(func(t *testing.T, wire []byte, tcp bool) {
		req := new(dns.Msg)
		if req.Unpack(wire) != nil {
			return
		}
		via, limit := UDP, maxUDP
		if tcp {
			via, limit = TCP, dns.MaxMsgSize
		}
		before := req.String()
		m := zone.Answer(req, via)
		if m.Id != req.Id || !m.Response {
			t.Fatalf("not an answer to %v:\n%v", req, m)
		}
		if len(req.Question) == 1 && (len(m.Question) != 1 || m.Question[0] != req.Question[0]) {
			t.Fatalf("question %v became %v", req.Question, m.Question)
		}
		if req.String() != before {
			t.Fatalf("the question was changed:\n%s\n%v", before, req)
		}
		for _, rr := range m.Answer {
			if rr.Header().Name != req.Question[0].Name {
				t.Fatalf("asked %s, answered of %s", req.Question[0].Name, rr.Header().Name)
			}
		}
		out, err := m.Pack()
		if err != nil {
			t.Fatalf("pack: %v\n%v", err, m)
		}
		if len(out) > limit {
			t.Fatalf("%d bytes, want at most %d", len(out), limit)
		}
	})
}

// FuzzBuild gives any words as names: no set makes Build panic or takes the
// names of another away.
func FuzzBuild(f *testing.F) {
	f.Add("default", "db", "db-0", "client", "TCP", "cluster.local")
	f.Add("", ".", "a..b", `\`, "", "")
	f.Add("x\x00y", "*", "\xff", "_", "SCTP", "...")
	f.Add(strings.Repeat("n", 63), strings.Repeat("s", 63), strings.Repeat("m", 63), strings.Repeat("p", 63), "tcp", strings.Repeat("d.", 60))
	f.Fuzz(func(t *testing.T, ns, service, member, port, proto, domain string) {
		s := fixture()
		p := s.Pictures[0]
		p.Ref.Namespace, p.Service = specNamespace(ns), service
		p.Peers = append(p.Peers[:1:1], peer(member, 1, "10.88.1.1", true))
		p.Names = append(p.Names[:1:1], dnsName(service, port, proto))
		s.Pictures = append(s.Pictures, p)
		zone := Build(s)
		m := zone.Answer(ask(t, "db-0.db.default.svc.cluster.local. A"), UDP)
		if len(m.Answer) == 0 {
			t.Fatalf("another set's member is gone:\n%v", m)
		}
		s.Domain = domain
		for name, n := range Build(s).nodes {
			for _, set := range n.sets {
				msg := &dns.Msg{Answer: set.rrs, Extra: set.extra}
				if _, err := msg.Pack(); err != nil {
					t.Fatalf("%q does not pack: %v", name, err)
				}
			}
		}
	})
}
