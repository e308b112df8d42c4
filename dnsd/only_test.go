package dnsd

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// TestAServiceOfOneMemberResolvesToIt, and its ports to the member's name; while that is not ready, to nothing.
func TestAServiceOfOneMemberResolvesToIt(t *testing.T) {
	for _, ready := range []bool{true, false} {
		one := int32(1)
		zone := Build(Snapshot{
			Sequence: spec.Sequence{Epoch: 1, Rev: 42}, Gateway: netip.MustParseAddr("169.254.1.1"), Members: netip.MustParsePrefix("10.88.0.0/16"),
			Pictures: []records.Snapshot{{
				Ref: spec.SetRef{Namespace: "default", Name: "db"}, Service: "db",
				Peers: []records.Peer{peer("db-0", 0, "10.88.0.2", true), peer("db-1", 1, "10.88.0.3", ready)},
				Names: []records.DNSName{{Name: "db"}, {Name: "one", Only: &one, Ports: []spec.ServicePort{{Name: "client", Port: 2379}}}},
			}},
		})
		ask := func(name string, kind uint16) []dns.RR {
			q := new(dns.Msg)
			q.SetQuestion(name, kind)
			return zone.Answer(q, UDP).Answer
		}
		want := 0
		if ready {
			want = 1
		}
		a, srv := ask("one.default.svc.cluster.local.", dns.TypeA), ask("_client._tcp.one.default.svc.cluster.local.", dns.TypeSRV)
		if len(a) != want || len(srv) != want {
			t.Fatalf("ready %v: got %v and %v", ready, a, srv)
		}
		if ready && (a[0].(*dns.A).A.String() != "10.88.0.3" || srv[0].(*dns.SRV).Target != "db-1.db.default.svc.cluster.local.") {
			t.Errorf("got %v and %v", a, srv)
		}
	}
}
