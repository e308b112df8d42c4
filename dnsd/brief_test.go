package dnsd

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/stead-project/stead/records"
)

// Of a set in brief the members are answered, also while no server is there to ask for more; who of
// them is ready is not known, so the names of services are unfollowed.
func TestMembersOfASetInBriefAreAnswered(t *testing.T) {
	full := records.Snapshot{
		Ref: web, Service: "web", Former: "old", Names: []records.DNSName{{Name: "all"}, {Name: "old"}, {Name: "web"}},
		Peers: []records.Peer{{Name: "web-3", Ordinal: 3, Address: netip.MustParseAddr("10.88.0.7"), Ready: true}},
	}
	brief := full.InBrief()
	base := Snapshot{Members: netip.MustParsePrefix("10.88.0.0/16")}
	inBrief, inFull := base, base
	inBrief.Pictures, inBrief.Others = []records.Snapshot{brief}, []records.SetNames{brief.SetNames()}
	inFull.Pictures = []records.Snapshot{full}
	z := Build(inBrief)
	for _, zones := range []struct {
		name  string
		brief *Zone
		full  *Zone
	}{{"built", z, Build(inFull)}, {"the next", Build(inFull).Next(inBrief), z.Next(inFull)}} {
		for _, c := range []struct {
			question string
			kind     uint16
			brief    said
			rcode    int // of the whole set
		}{
			{"web-3.web.default.svc.cluster.local.", dns.TypeA, answered, dns.RcodeSuccess},
			{"web-3.old.default.svc.cluster.local.", dns.TypeA, answered, dns.RcodeSuccess},
			{"7.0.88.10.in-addr.arpa.", dns.TypePTR, answered, dns.RcodeSuccess},
			{"web.default.svc.cluster.local.", dns.TypeA, unknown, dns.RcodeSuccess},
			{"old.default.svc.cluster.local.", dns.TypeA, unknown, dns.RcodeSuccess},
			{"all.default.svc.cluster.local.", dns.TypeA, unknown, dns.RcodeSuccess},
			{"web-4.web.default.svc.cluster.local.", dns.TypeA, answered, dns.RcodeNameError},
			{"other.default.svc.cluster.local.", dns.TypeA, answered, dns.RcodeNameError},
		} {
			m := new(dns.Msg).SetQuestion(c.question, c.kind)
			if got, _ := zones.full.fill(m); got != answered || m.Rcode != c.rcode || (c.rcode == dns.RcodeSuccess) != (len(m.Answer) == 1) {
				t.Errorf("%s, the whole set, %s: %v, %v", zones.name, c.question, got, m)
			}
			whole := m.Answer
			m = new(dns.Msg).SetQuestion(c.question, c.kind)
			got, i := zones.brief.fill(m)
			if got != c.brief || got == answered && (m.Rcode != c.rcode || len(m.Answer) != len(whole)) || got == unknown && i.Set != web {
				t.Errorf("%s, in brief, %s: %v for %v, %v", zones.name, c.question, got, i, m)
			}
		}
	}
}
