package dnsd

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func peer(name string, ordinal int, addr string, ready bool) records.Peer {
	p := records.Peer{Name: name, Ordinal: ordinal, Ready: ready}
	if addr != "" {
		p.Address = netip.MustParseAddr(addr)
	}
	return p
}

// fixture is two sets that share the name db-all, and one set of another namespace.
func fixture() Snapshot {
	ports := []spec.ServicePort{{Name: "client", Port: 2379}, {Port: 9}, {Name: "gossip", Port: 53, Protocol: "UDP"}}
	return Snapshot{
		Sequence: spec.Sequence{Epoch: 1, Rev: 42},
		Gateway:  netip.MustParseAddr("169.254.1.1"),
		Members:  netip.MustParsePrefix("10.88.0.0/16"),
		Pictures: []records.Snapshot{
			{
				Ref: spec.SetRef{Namespace: "default", Name: "db"}, Service: "db",
				Peers: []records.Peer{
					peer("db-0", 0, "10.88.0.2", true), peer("db-1", 1, "10.88.0.3", false), peer("db-2", 2, "", false),
				},
				Names: []records.DNSName{
					{Name: "db", Ports: ports}, {Name: "db-all", PublishNotReady: true},
				},
			},
			{
				Ref: spec.SetRef{Namespace: "default", Name: "aux"}, Service: "aux",
				Peers: []records.Peer{peer("aux-0", 0, "10.88.0.9", true), peer("aux-1", 1, "fd00::1", true)},
				Names: []records.DNSName{{Name: "aux"}, {Name: "db-all"}, {Name: "db-all"}}, // told twice, there once
			},
			{
				Ref: spec.SetRef{Namespace: "other", Name: "down"}, Service: "down",
				Peers: []records.Peer{peer("down-0", 0, "10.89.0.1", false)},
				Names: []records.DNSName{{Name: "down", Ports: ports}},
			},
			{Ref: spec.SetRef{Namespace: "default", Name: "old"}, Service: "old", Gone: true},
			{Ref: spec.SetRef{Namespace: "default", Name: "odd"}, Service: "Not.A.Label"},
		},
	}
}

const soa = "authority cluster.local. 1 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 42 7200 1800 86400 1"

// TestAnswer holds questions and, in zone-file lines, what they are answered.
func TestAnswer(t *testing.T) {
	zone := Build(fixture())
	tests := []struct {
		name, question string
		want           []string
	}{
		{"a member that is ready", "db-0.db.default.svc.cluster.local. A",
			[]string{"NOERROR", "db-0.db.default.svc.cluster.local. 1 IN A 10.88.0.2"}},
		{"a member that is not ready has its name already", "db-1.db.default.svc.cluster.local. A",
			[]string{"NOERROR", "db-1.db.default.svc.cluster.local. 1 IN A 10.88.0.3"}},
		{"a member without an address is declared", "db-2.db.default.svc.cluster.local. A", []string{"NOERROR", soa}},
		{"AAAA of a member with IPv4 is no data", "db-0.db.default.svc.cluster.local. AAAA", []string{"NOERROR", soa}},
		{"a member with an IPv6 address", "aux-1.aux.default.svc.cluster.local. AAAA",
			[]string{"NOERROR", "aux-1.aux.default.svc.cluster.local. 1 IN AAAA fd00::1"}},
		{"an unknown member", "db-3.db.default.svc.cluster.local. A", []string{"NXDOMAIN", soa}},
		{"a member under a service that does not govern it", "db-0.db-all.default.svc.cluster.local. A", []string{"NXDOMAIN", soa}},
		{"below a member", "x.db-0.db.default.svc.cluster.local. A", []string{"NXDOMAIN", soa}},
		{"the asker's spelling is kept", "DB-0.db.Default.svc.CLUSTER.local. A",
			[]string{"NOERROR", "DB-0.db.Default.svc.CLUSTER.local. 1 IN A 10.88.0.2"}},
		{"a service has its ready members", "db.default.svc.cluster.local. A",
			[]string{"NOERROR", "db.default.svc.cluster.local. 1 IN A 10.88.0.2"}},
		{"a service of two sets is their union, each by its own rule", "db-all.default.svc.cluster.local. A",
			[]string{"NOERROR",
				"db-all.default.svc.cluster.local. 1 IN A 10.88.0.9",
				"db-all.default.svc.cluster.local. 1 IN A 10.88.0.2",
				"db-all.default.svc.cluster.local. 1 IN A 10.88.0.3"}},
		{"a service without ready members is no data", "down.other.svc.cluster.local. A", []string{"NOERROR", soa}},
		{"SRV of a named port", "_client._tcp.db.default.svc.cluster.local. SRV",
			[]string{"NOERROR",
				"_client._tcp.db.default.svc.cluster.local. 1 IN SRV 0 100 2379 db-0.db.default.svc.cluster.local.",
				"additional db-0.db.default.svc.cluster.local. 1 IN A 10.88.0.2"}},
		{"SRV of a UDP port", "_gossip._udp.db.default.svc.cluster.local. SRV",
			[]string{"NOERROR",
				"_gossip._udp.db.default.svc.cluster.local. 1 IN SRV 0 100 53 db-0.db.default.svc.cluster.local.",
				"additional db-0.db.default.svc.cluster.local. 1 IN A 10.88.0.2"}},
		{"SRV without ready members is no data", "_client._tcp.down.other.svc.cluster.local. SRV", []string{"NOERROR", soa}},
		{"SRV of the wrong protocol", "_client._udp.db.default.svc.cluster.local. SRV", []string{"NXDOMAIN", soa}},
		{"between the names there is no data", "default.svc.cluster.local. A", []string{"NOERROR", soa}},
		{"between the names of SRV, too", "_tcp.db.default.svc.cluster.local. A", []string{"NOERROR", soa}},
		{"svc itself", "svc.cluster.local. A", []string{"NOERROR", soa}},
		{"a namespace nobody uses", "nobody.svc.cluster.local. A", []string{"NXDOMAIN", soa}},
		{"a set that is gone", "old.default.svc.cluster.local. A", []string{"NXDOMAIN", soa}},
		{"a set that cannot be named", "odd.default.svc.cluster.local. A", []string{"NXDOMAIN", soa}},
		{"the start of authority", "cluster.local. SOA", []string{"NOERROR", strings.TrimPrefix(soa, "authority ")}},
		{"the name server", "cluster.local. NS", []string{"NOERROR", "cluster.local. 1 IN NS ns.dns.cluster.local."}},
		{"the name server's address is this node's", "ns.dns.cluster.local. A",
			[]string{"NOERROR", "ns.dns.cluster.local. 1 IN A 169.254.1.1"}},
		{"ANY is one set of records", "cluster.local. ANY", []string{"NOERROR", strings.TrimPrefix(soa, "authority ")}},
		{"ANY of an empty name", "svc.cluster.local. ANY", []string{"NOERROR", soa}},
		{"a zone transfer", "cluster.local. AXFR", []string{"REFUSED"}},
		{"not our zone", "example.org. A", []string{"REFUSED"}},
		{"above our zone", "local. A", []string{"REFUSED"}},
		{"a name that only ends alike", "xcluster.local. A", []string{"REFUSED"}},
		{"the root", ". NS", []string{"REFUSED"}},
		{"a member's address", "3.0.88.10.in-addr.arpa. PTR",
			[]string{"NOERROR", "3.0.88.10.in-addr.arpa. 1 IN PTR db-1.db.default.svc.cluster.local."}},
		{"an address of the range that nobody has", "7.0.88.10.in-addr.arpa. PTR", []string{"NXDOMAIN", reverseSOA("88.10.in-addr.arpa.")}},
		{"between reverse names", "0.88.10.in-addr.arpa. PTR", []string{"NOERROR", reverseSOA("88.10.in-addr.arpa.")}},
		{"a member's address out of the range", "1.0.89.10.in-addr.arpa. PTR",
			[]string{"NOERROR", "1.0.89.10.in-addr.arpa. 1 IN PTR down-0.down.other.svc.cluster.local."}},
		{"its neighbour is not ours", "2.0.89.10.in-addr.arpa. PTR", []string{"REFUSED"}},
		{"the gateway's address", "1.1.254.169.in-addr.arpa. PTR",
			[]string{"NOERROR", "1.1.254.169.in-addr.arpa. 1 IN PTR ns.dns.cluster.local."}},
		{"an IPv6 address", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. PTR",
			[]string{"NOERROR", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. 1 IN PTR aux-1.aux.default.svc.cluster.local."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := lines(zone.Answer(ask(t, tt.question), UDP))
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s\n got %s\nwant %s", tt.question, strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
			}
		})
	}
}

func TestAnswersDoNotMeetInTheZone(t *testing.T) {
	zone := Build(fixture())
	odd := zone.Answer(ask(t, "DB-0.db.default.svc.cluster.local. A"), UDP)
	before := lines(odd)
	plain := zone.Answer(ask(t, "db-0.db.default.svc.cluster.local. A"), UDP)
	if after := lines(odd); !slices.Equal(before, after) || slices.Equal(lines(plain), after) {
		t.Errorf("the first answer was %v, is %v; the second is %v", before, after, lines(plain))
	}
}

func reverseSOA(origin string) string {
	return strings.Replace(soa, "authority cluster.local.", "authority "+origin, 1)
}

// ask makes a question of "name TYPE".
func ask(t testing.TB, question string) *dns.Msg {
	t.Helper()
	name, kind, _ := strings.Cut(question, " ")
	q, ok := dns.StringToType[kind]
	if !ok {
		t.Fatalf("%q names no type", question)
	}
	return new(dns.Msg).SetQuestion(name, q)
}

// lines writes an answer as its code and one line a record.
func lines(m *dns.Msg) []string {
	out := []string{dns.RcodeToString[m.Rcode]}
	add := func(section string, rrs []dns.RR) {
		for _, rr := range rrs {
			if rr.Header().Rrtype != dns.TypeOPT {
				out = append(out, section+strings.Join(strings.Fields(rr.String()), " "))
			}
		}
	}
	add("", m.Answer)
	add("authority ", m.Ns)
	add("additional ", m.Extra)
	return out
}

func TestAnswerOfOddQuestions(t *testing.T) {
	zone := Build(fixture())
	const known = "db.default.svc.cluster.local. A"
	tests := []struct {
		name string
		odd  func(*dns.Msg)
		want int
	}{
		{"an update", func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }, dns.RcodeNotImplemented},
		{"a notify", func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }, dns.RcodeNotImplemented},
		{"no question", func(m *dns.Msg) { m.Question = nil }, dns.RcodeFormatError},
		{"two questions", func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }, dns.RcodeFormatError},
		{"another class", func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }, dns.RcodeRefused},
		{"EDNS of a later version", func(m *dns.Msg) { m.SetEdns0(4096, false).IsEdns0().SetVersion(1) }, dns.RcodeBadVers},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := ask(t, known)
			tt.odd(req)
			m := zone.Answer(req, UDP)
			if m.Rcode != tt.want || m.Id != req.Id || !m.Response || len(m.Answer) != 0 {
				t.Errorf("got %v\nwant the code %s and no records", m, dns.RcodeToString[tt.want])
			}
			if _, err := m.Pack(); err != nil {
				t.Errorf("pack: %v", err)
			}
		})
	}
}

// crowd is a set of n ready members, each of whose SRV answers needs some 100 bytes.
func crowd(n int) Snapshot {
	s := fixture()
	p := records.Snapshot{
		Ref: spec.SetRef{Namespace: "default", Name: "crowd"}, Service: "crowd",
		Names: []records.DNSName{{Name: "crowd", Ports: []spec.ServicePort{{Name: "client", Port: 2379}}}},
	}
	addr := netip.MustParseAddr("10.88.100.1")
	for i := range n {
		id := spec.Identity{Set: "crowd", Ordinal: i}
		p.Peers = append(p.Peers, records.Peer{Name: id.MemberName(), Ordinal: i, Address: addr, Ready: true})
		addr = addr.Next()
	}
	s.Pictures = append(s.Pictures, p)
	return s
}

func TestAnswerIsCutToWhatFits(t *testing.T) {
	zone := Build(crowd(100))
	const srv, a = "_client._tcp.crowd.default.svc.cluster.local. SRV", "crowd.default.svc.cluster.local. A"
	tests := []struct {
		name, question string
		members        int
		edns           uint16 // asked for; 0: no EDNS
		via            Transport
		most           int
		cut, extra     bool
	}{
		{"without EDNS 512 bytes", a, 100, 0, UDP, 512, true, false},
		{"as much as the asker takes", a, 100, 900, UDP, 900, true, false},
		{"never more than 1232 bytes", a, 100, 65535, UDP, 1232, true, false},
		{"a size below 512 is 512", a, 100, 100, UDP, 512, true, false},
		{"TCP has all", a, 100, 0, TCP, 65535, false, false},
		{"TCP has all SRV and their addresses", srv, 100, 0, TCP, 65535, false, true},
		{"addresses are left out before an answer is cut", srv, 18, 1232, UDP, 1232, false, false},
		{"also without EDNS", srv, 7, 0, UDP, 512, false, false},
		{"addresses stay when they fit", srv, 8, 1232, UDP, 1232, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.members != 100 {
				zone = Build(crowd(tt.members))
			}
			req := ask(t, tt.question)
			if tt.edns != 0 {
				req.SetEdns0(tt.edns, false)
			}
			m := zone.Answer(req, tt.via)
			wire, err := m.Pack()
			if err != nil {
				t.Fatal(err)
			}
			extra := len(m.Extra)
			if opt := m.IsEdns0(); opt != nil {
				extra--
				if opt.UDPSize() != maxUDP {
					t.Errorf("advertised %d bytes, want %d", opt.UDPSize(), maxUDP)
				}
			}
			if (m.IsEdns0() != nil) != (tt.edns != 0) {
				t.Errorf("EDNS in the answer: %v, want it as in the question", m.IsEdns0())
			}
			if len(wire) > tt.most || m.Truncated != tt.cut || (extra > 0) != tt.extra {
				t.Errorf("got %d bytes, cut %v, %d additional; want at most %d, cut %v, additional %v",
					len(wire), m.Truncated, extra, tt.most, tt.cut, tt.extra)
			}
			if !tt.cut && len(m.Answer) != tt.members || tt.cut && len(m.Answer) == 0 {
				t.Errorf("got %d records for %d members, cut %v", len(m.Answer), tt.members, tt.cut)
			}
		})
	}
	if again := zone.Answer(ask(t, a), TCP); len(again.Answer) != 8 {
		t.Errorf("cutting an answer changed the zone: %d records left, want 8", len(again.Answer))
	}
}

func specNamespace(s string) spec.Namespace { return spec.Namespace(s) }

func dnsName(name, port, proto string) records.DNSName {
	return records.DNSName{Name: name, Ports: []spec.ServicePort{{Name: port, Port: 1, Protocol: proto}}}
}
