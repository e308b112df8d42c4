package dnsd

import (
	"bytes"
	"testing"

	"github.com/miekg/dns"
)

// usual are questions that must take the packed way.
var usual = []string{
	"db-0.db.default.svc.cluster.local. A", "db-0.db.default.svc.cluster.local. AAAA", "DB-0.Db.default.SVC.cluster.local. A",
	"db-2.db.default.svc.cluster.local. A", "db.default.svc.cluster.local. A", "db-all.default.svc.cluster.local. A",
	"aux-1.aux.default.svc.cluster.local. AAAA", "_client._tcp.db.default.svc.cluster.local. SRV",
	"_client._tcp.crowd.default.svc.cluster.local. SRV", "_CLIENT._tcp.crowd.default.svc.cluster.local. SRV",
	"svc.cluster.local. A", "nobody.svc.cluster.local. A", "www.example.org.default.svc.Cluster.local. A",
	"cluster.local. SOA", "cluster.local. NS", "cluster.local. TXT", "ns.dns.cluster.local. A",
	"3.0.88.10.in-addr.arpa. PTR", "7.0.88.10.in-addr.arpa. PTR", "1.0.89.10.in-addr.arpa. PTR", "1.1.254.169.in-addr.arpa. PTR",
	"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. PTR",
}

// unusual are questions that must not.
var unusual = []string{
	"example.org. A", ". NS", "local. A", "cluster.local. ANY", "cluster.local. AXFR", "2.0.89.10.in-addr.arpa. PTR",
}

// respondLikeAnswer asks both ways. A packed answer must say what Answer says,
// and a question that is left to Answer must be as it was. It reports which way.
func respondLikeAnswer(t *testing.T, z *Zone, wire []byte) bool {
	t.Helper()
	if len(wire) > maxUDP {
		return false
	}
	buf := make([]byte, maxUDP)
	copy(buf, wire)
	rest := buf[len(wire):]
	for i := range rest {
		rest[i] = 0xaa // what an earlier datagram left
	}
	before := bytes.Clone(buf)
	n, _ := z.respond(buf, len(wire))
	if n == 0 {
		if !bytes.Equal(before, buf) {
			t.Fatalf("a question that is not answered was changed:\n%x\n%x", before, buf)
		}
		return false
	}
	req := new(dns.Msg)
	if err := req.Unpack(wire); err != nil {
		t.Fatalf("%x is answered, but the library cannot read it: %v", wire, err)
	}
	got, want := new(dns.Msg), new(dns.Msg)
	if err := got.Unpack(buf[:n]); err != nil {
		t.Fatalf("packed answer to %v: %v\n%x", req, err, buf[:n])
	}
	slow, err := z.Answer(req, UDP).Pack()
	if err != nil {
		t.Fatal(err)
	}
	if err := want.Unpack(slow); err != nil {
		t.Fatal(err)
	}
	// String tells flags, EDNS, all records and their order, in every spelling.
	if got.String() != want.String() || got.Id != want.Id || !bytes.Equal(buf[12:12+questionSize(wire)], wire[12:12+questionSize(wire)]) {
		t.Fatalf("asked %v\n got %v\nwant %v", req, got, want)
	}
	return true
}

func questionSize(wire []byte) int {
	at := headerSize
	for wire[at] != 0 {
		at += 1 + int(wire[at])
	}
	return at + 5 - headerSize
}

func TestPackedAnswersSayTheSame(t *testing.T) {
	shapes := map[string]func(*dns.Msg){
		"plain":           func(*dns.Msg) {},
		"no recursion":    func(m *dns.Msg) { m.RecursionDesired = false },
		"AD and CD":       func(m *dns.Msg) { m.AuthenticatedData, m.CheckingDisabled = true, true },
		"EDNS":            func(m *dns.Msg) { m.SetEdns0(1232, false) },
		"EDNS, much":      func(m *dns.Msg) { m.SetEdns0(65535, false) },
		"EDNS, none":      func(m *dns.Msg) { m.SetEdns0(0, false) },
		"EDNS and DNSSEC": func(m *dns.Msg) { m.SetEdns0(4096, true) },
	}
	zone := Build(crowd(3))
	for shape, of := range shapes {
		for i, question := range append(usual, unusual...) {
			req := ask(t, question)
			of(req)
			wire, err := req.Pack()
			if err != nil {
				t.Fatal(err)
			}
			if packed, want := respondLikeAnswer(t, zone, wire), i < len(usual); packed != want {
				t.Errorf("%s, %s: answered from what is packed: %v, want %v", question, shape, packed, want)
			}
		}
	}
}

func TestOddQuestionsAreLeftToTheLibrary(t *testing.T) {
	odd := map[string]func(*dns.Msg){
		"an answer":     func(m *dns.Msg) { m.Response = true },
		"a notify":      func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify },
		"two questions": func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) },
		"no question":   func(m *dns.Msg) { m.Question = nil },
		"another class": func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS },
		"a later EDNS":  func(m *dns.Msg) { m.SetEdns0(1232, false).IsEdns0().SetVersion(1) },
		"EDNS with NSID": func(m *dns.Msg) {
			m.SetEdns0(1232, false).IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID}}
		},
		"a record":    func(m *dns.Msg) { m.Answer = []dns.RR{&dns.A{Hdr: header("a.", dns.TypeA), A: []byte{1, 2, 3, 4}}} },
		"a signature": func(m *dns.Msg) { m.SetTsig("key.", dns.HmacSHA256, 300, 1) },
	}
	zone := Build(fixture())
	for name, of := range odd {
		req := ask(t, "db.default.svc.cluster.local. A")
		of(req)
		wire, err := req.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if respondLikeAnswer(t, zone, wire) {
			t.Errorf("%s was taken for a usual question", name)
		}
	}
	wire, err := ask(t, "db.default.svc.cluster.local. A").Pack()
	if err != nil {
		t.Fatal(err)
	}
	for n := range wire {
		if respondLikeAnswer(t, zone, wire[:n:n]) {
			t.Errorf("%d of %d bytes were taken for a question", n, len(wire))
		}
	}
	if respondLikeAnswer(t, zone, append(wire, 0)) {
		t.Error("a question with a byte too many was taken for a usual one")
	}
}

// TestPackedAnswersAreNeverTooLong asks services of every size, whose answers
// pass both limits: at them the library cuts.
func TestPackedAnswersAreNeverTooLong(t *testing.T) {
	ways := map[bool]int{}
	for n := range 80 {
		zone := Build(crowd(n))
		for _, question := range []string{"crowd.default.svc.cluster.local. A", "_client._tcp.crowd.default.svc.cluster.local. SRV"} {
			for _, edns := range []uint16{0, 512, 700, 1231, 1232, 4096} {
				req := ask(t, question)
				if edns > 0 {
					req.SetEdns0(edns, false)
				}
				wire, err := req.Pack()
				if err != nil {
					t.Fatal(err)
				}
				ways[respondLikeAnswer(t, zone, wire)]++
			}
		}
	}
	if ways[true] < 100 || ways[false] < 100 {
		t.Errorf("packed and not: %v; want plenty of both", ways)
	}
}

func TestRespondAllocatesNothing(t *testing.T) {
	s := crowd(3)
	s.Others = manySets(100)
	zone := Build(s)
	for _, question := range usual {
		if question == "7.0.88.10.in-addr.arpa. PTR" {
			continue // it may be the address of one of the others
		}
		wire, err := ask(t, question).SetEdns0(1232, false).Pack()
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, maxUDP)
		if n := testing.AllocsPerRun(100, func() {
			copy(buf, wire)
			if n, _ := zone.respond(buf, len(wire)); n == 0 {
				t.Fatalf("%s is not answered", question)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", question, n)
		}
	}
}

// FuzzRespond gives any bytes as a datagram: the packed way and the library say
// the same, or the packed way says nothing.
func FuzzRespond(f *testing.F) {
	for _, question := range append(usual, unusual...) {
		req := ask(f, question)
		plain, err := req.Pack()
		if err != nil {
			f.Fatal(err)
		}
		edns, err := req.SetEdns0(1400, true).Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(plain)
		f.Add(edns)
	}
	f.Add([]byte("\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	for _, question := range []string{"web-3.web.default.svc.cluster.local. A", "_x._tcp.db-all.default.svc.cluster.local. SRV", "far.svc.cluster.local. A"} {
		wire, err := ask(f, question).Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	s := crowd(8)
	s.Others = partly().Others
	zone := Build(s)
	f.Fuzz(func(t *testing.T, wire []byte) { respondLikeAnswer(t, zone, wire) })
}
