package dnsd

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestAServiceOfTheLeaderResolvesToItOrToNobody(t *testing.T) {
	for name, c := range map[string]struct {
		change func(peers []records.Peer)
		want   string
	}{
		"one leads":            {func([]records.Peer) {}, "10.88.0.3"},
		"it is not ready":      {func(p []records.Peer) { p[1].Ready = false }, ""},
		"nobody leads":         {func(p []records.Peer) { p[1].Leads = false }, ""},
		"another, later":       {func(p []records.Peer) { p[0].Leads, p[0].Term = true, 8 }, "10.88.0.2"},
		"another, at once":     {func(p []records.Peer) { p[0].Leads, p[0].Term = true, 7 }, ""},
		"another, but earlier": {func(p []records.Peer) { p[0].Leads, p[0].Term = true, 6 }, "10.88.0.3"},
	} {
		peers := []records.Peer{peer("db-0", 0, "10.88.0.2", true), peer("db-1", 1, "10.88.0.3", true)}
		peers[1].Leads, peers[1].Term = true, 7
		c.change(peers)
		zone := Build(Snapshot{
			Sequence: spec.Sequence{Epoch: 1, Rev: 42}, Gateway: netip.MustParseAddr("169.254.1.1"), Members: netip.MustParsePrefix("10.88.0.0/16"),
			Pictures: []records.Snapshot{{
				Ref: spec.SetRef{Namespace: "default", Name: "db"}, Service: "db", Peers: peers,
				Names: []records.DNSName{{Name: "db"}, {Name: "db-rw", Leader: true}},
			}},
		})
		q := new(dns.Msg)
		q.SetQuestion("db-rw.default.svc.cluster.local.", dns.TypeA)
		got := ""
		for _, rr := range zone.Answer(q, UDP).Answer {
			got += rr.(*dns.A).A.String()
			if rr.Header().Ttl > 1 {
				t.Errorf("%s: it may be kept for %d s", name, rr.Header().Ttl)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
