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

// withAliases is the fixture with Services of type ExternalName, by name the name that each stands for.
func withAliases(names map[string]string) Snapshot {
	s := fixture()
	for name, to := range names {
		s.Pictures = append(s.Pictures, records.Snapshot{Ref: spec.Namespace("default").ServiceRef(name), Names: []records.DNSName{{Name: name, ExternalName: to}}})
	}
	return s
}

// TestAnAliasIsAnsweredWithWhatItsTargetHas, of the zone, or of an upstream for those who are served other names: a
// resolver in a program does not look on by itself. In Kubernetes it is the same.
func TestAnAliasIsAnsweredWithWhatItsTargetHas(t *testing.T) {
	const at = ".default.svc.cluster.local."
	well, _ := upstream(t, says(dns.RcodeSuccess, 1))
	for _, tt := range []struct {
		name, question, upstream, from string
		want                           []string
	}{
		{"of a name outside", "out" + at + " A", well, "127.0.0.1", []string{"NOERROR", "out" + at + " 1 IN CNAME db.example.org.", "db.example.org. 1 IN A 192.0.2.0"}},
		{"asked by a stranger", "out" + at + " A", well, "203.0.113.1", []string{"NOERROR", "out" + at + " 1 IN CNAME db.example.org."}},
		{"no upstream", "out" + at + " A", "", "127.0.0.1", []string{"SERVFAIL"}},
		{"the alias itself", "out" + at + " CNAME", "", "127.0.0.1", []string{"NOERROR", "out" + at + " 1 IN CNAME db.example.org."}},
		{"of a member", "in" + at + " A", "", "127.0.0.1", []string{"NOERROR", "in" + at + " 1 IN CNAME db-0.db" + at, "db-0.db" + at + " 1 IN A 10.88.0.2"}},
		{"of an alias, in another spelling", "TWICE" + at + " A", "", "127.0.0.1",
			[]string{"NOERROR", "TWICE" + at + " 1 IN CNAME in" + at, "in" + at + " 1 IN CNAME db-0.db" + at, "db-0.db" + at + " 1 IN A 10.88.0.2"}},
		{"of what has no such record", "in" + at + " AAAA", "", "127.0.0.1", []string{"NOERROR", "in" + at + " 1 IN CNAME db-0.db" + at, soa}},
		{"of what is not there", "gone" + at + " A", "", "127.0.0.1", []string{"NXDOMAIN", "gone" + at + " 1 IN CNAME nosuch" + at, soa}},
		{"in a circle", "a" + at + " A", "", "127.0.0.1", []string{"SERVFAIL"}},
		{"of no name", "odd" + at + " A", "", "127.0.0.1", []string{"NOERROR", soa}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Config{Listen: []netip.AddrPort{anyPort}}
			if tt.upstream != "" {
				cfg.Upstreams = []string{tt.upstream}
			}
			s, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			s.Swap(Build(withAliases(map[string]string{
				"out": "db.example.org", "in": "db-0.db" + at, "twice": "in" + at, "gone": "nosuch" + at, "a": "b" + at, "b": "a" + at, "odd": "a..b",
			})))
			got := lines(s.answer(t.Context(), ask(t, tt.question), TCP, netip.MustParseAddr(tt.from)))
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestAnAliasGoesNotThePackedWay, on which its target is not looked up; also below the governing service of a set,
// whose members keep their names.
func TestAnAliasGoesNotThePackedWay(t *testing.T) {
	pictures := withAliases(map[string]string{"db": "db.example.org"})
	pictures.Pictures[0].Names = nil // as a server leaves it out
	z := Build(pictures)
	for question, usual := range map[string]bool{
		"db.default.svc.cluster.local. A": false, "db.default.svc.cluster.local. CNAME": true, "db-0.db.default.svc.cluster.local. A": true,
	} {
		raw, err := ask(t, question).Pack()
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, maxUDP)
		if size, _ := z.respond(buf, copy(buf, raw)); size > 0 != usual {
			t.Errorf("%s: %d bytes", question, size)
		}
	}
}
