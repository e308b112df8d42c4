package dnsd

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// partly is the fixture beside sets of which only the names are known.
func partly() Snapshot {
	s := fixture()
	s.Others = []records.SetNames{
		{Ref: spec.SetRef{Namespace: "default", Name: "web"}, Service: "web", Names: []string{"web", "web-clients"}, First: 2, End: 12},
		{Ref: spec.SetRef{Namespace: "default", Name: "also"}, Service: "db-all", Names: []string{"db-all"}, End: 1},
		{Ref: spec.SetRef{Namespace: "far", Name: "big-set"}, Service: "big", End: 1},
		{Ref: spec.SetRef{Namespace: "default", Name: "db"}, Service: "db", Names: []string{"db", "db-old"}, End: 9}, // there whole, too
		{Ref: spec.SetRef{Namespace: "default", Name: "strange"}, Service: "Not.A.Label", End: 9},
		{Ref: spec.SetRef{Namespace: "A.b", Name: "strange"}, Service: "strange", End: 9},
	}
	return s
}

func TestWhichNamesAreUnfollowed(t *testing.T) {
	zone := Build(partly())
	below := ".svc.cluster.local."
	tests := []struct{ name, want string }{
		{"web.default" + below, "default/web"},
		{"WEB.Default.SVC.cluster.local.", "default/web"},
		{"web-clients.default" + below, "default/web"},
		{"web-2.web.default" + below, "default/web"},
		{"web-11.web.default" + below, "default/web"},
		{"web-11.web-clients.default" + below, "default/web"},
		{"web-1.web.default" + below, "NXDOMAIN"},
		{"web-12.web.default" + below, "NXDOMAIN"},
		{"web-02.web.default" + below, "NXDOMAIN"},
		{"web-+2.web.default" + below, "NXDOMAIN"},
		{"web-4294967298.web.default" + below, "NXDOMAIN"},
		{"web-.web.default" + below, "NXDOMAIN"},
		{"web.web.default" + below, "NXDOMAIN"},
		{"webs-2.web.default" + below, "NXDOMAIN"},
		{"db-2.web.default" + below, "NXDOMAIN"},
		{"x.web-2.web.default" + below, "NXDOMAIN"},
		{"_http._tcp.web.default" + below, "default/web"},
		{"_tcp.web.default" + below, "default/web"},
		{"http._tcp.web.default" + below, "NXDOMAIN"},
		{"_http.tcp.web.default" + below, "NXDOMAIN"},
		{"a._http._tcp.web.default" + below, "NXDOMAIN"},
		{"big-set-0.big.far" + below, "far/big-set"},
		{"big-set-0.big.default" + below, "NXDOMAIN"},
		{"far" + below, "NODATA"},
		{"farther" + below, "NXDOMAIN"},
		{"svc.cluster.local.", "NODATA"},
		{"web.default.pod.cluster.local.", "NXDOMAIN"},
		{"default.cluster.local.", "NXDOMAIN"},
		{"strange.A.b" + below, "NXDOMAIN"},
		{"strange.default" + below, "NXDOMAIN"},
		// A set that is there whole is not unfollowed, whatever the list says.
		{"db-0.db.default" + below, "NODATA"},
		{"db-8.db.default" + below, "NXDOMAIN"},
		{"db-old.default" + below, "NXDOMAIN"},
		// A service of a set here and of one that is not: the answer would be a part.
		{"db-all.default" + below, "default/also"},
		{"also-0.db-all.default" + below, "default/also"},
		{"also-1.db-all.default" + below, "NXDOMAIN"},
		// Addresses of members.
		{"7.0.88.10.in-addr.arpa.", "10.88.0.7"},
		{"255.255.88.10.in-addr.arpa.", "10.88.255.255"},
		{"3.0.88.10.in-addr.arpa.", "NODATA"}, // it is in the zone; asked for an address
		{"256.0.88.10.in-addr.arpa.", "NXDOMAIN"},
		{"07.0.88.10.in-addr.arpa.", "NXDOMAIN"},
		{"a.0.88.10.in-addr.arpa.", "NXDOMAIN"},
		{"1.7.0.88.10.in-addr.arpa.", "NXDOMAIN"},
		{"200.88.10.in-addr.arpa.", "NODATA"},
		{"300.88.10.in-addr.arpa.", "NXDOMAIN"},
		{"9.0.89.10.in-addr.arpa.", "REFUSED"},    // outside of their range
		{"2.1.0.89.10.in-addr.arpa.", "NXDOMAIN"}, // but below one that is known
		{"example.org.", "REFUSED"},
	}
	for _, tt := range tests {
		t.Run(strings.TrimSuffix(tt.name, "."), func(t *testing.T) {
			if got := whatIsSaid(t, zone, tt.name); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// whatIsSaid is an interest, or the code of the answer to a question of type HINFO: no name has one.
func whatIsSaid(t *testing.T, z *Zone, name string) string {
	req := ask(t, name+" HINFO")
	wire, err := req.Pack()
	if err != nil {
		t.Fatal(err)
	}
	packed := respondLikeAnswer(t, z, wire)
	m := z.Answer(req, UDP)
	said, i := z.fill(reply(req))
	switch {
	case said == unknown && (packed || m.Rcode != dns.RcodeServerFailure || len(m.Ns) > 0 || m.Authoritative):
		t.Errorf("an unfollowed name is answered (packed: %v): %v", packed, m)
	case said == unknown && i.Address.IsValid():
		return i.Address.String()
	case said == unknown:
		return i.Set.String()
	case said == answered && !packed:
		t.Error("not answered as packed")
	case m.Rcode == dns.RcodeSuccess:
		return "NODATA"
	}
	return dns.RcodeToString[m.Rcode]
}

// TestNoNameIsDeniedThatASetHas makes zones of the same sets, each whole or by name only, and wants
// the same answers, or none.
func TestNoNameIsDeniedThatASetHas(t *testing.T) {
	whole := fixture()
	full := Build(whole)
	for which := range 1 << len(whole.Pictures) {
		s := whole
		s.Pictures, s.Others = nil, nil
		for i, p := range whole.Pictures {
			switch {
			case which&(1<<i) != 0:
				s.Pictures = append(s.Pictures, p)
			case !p.Gone:
				short := records.SetNames{Ref: p.Ref, Service: p.Service, End: len(p.Peers)}
				for _, n := range p.Names {
					short.Names = append(short.Names, n.Name)
				}
				s.Others = append(s.Others, short)
			}
		}
		zone := Build(s)
		for name := range full.nodes {
			text, _, _ := dns.UnpackDomainName([]byte(name), 0)
			for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypePTR, dns.TypeSOA} {
				req := new(dns.Msg).SetQuestion(text, kind)
				got, want := reply(req), reply(req)
				if said, _ := zone.fill(got); said == answered {
					full.fill(want)
					if got.String() != want.String() {
						t.Fatalf("with sets %b whole, %s:\n got %v\nwant %v", which, text, got, want)
					}
				} else if said == foreign && strings.HasSuffix(text, "cluster.local.") {
					t.Fatalf("with sets %b whole, %s is foreign", which, text)
				}
			}
		}
	}
}

func TestReverseNamesAreRead(t *testing.T) {
	for _, text := range []string{"10.88.0.1", "0.0.0.0", "255.10.100.9", "fd00::1", "2001:db8:1234:5678:9abc:def0:0:f"} {
		addr := netip.MustParseAddr(text)
		name, _ := wireName(reverseName(addr, addr.BitLen()))
		if what, got := reverseAddress([]byte(name)); what != unfollowed || got != addr {
			t.Errorf("%s: got %v, %v", addr, what, got)
		}
	}
	for _, odd := range []string{"g", "10", "a.", ":"} {
		name, ok := wireName(fmt.Sprint(odd, strings.Repeat(".0", 31), ".ip6.arpa."))
		if !ok {
			continue
		}
		if what, _ := reverseAddress([]byte(name)); what != absent {
			t.Errorf("%q is an address", odd)
		}
	}
}
