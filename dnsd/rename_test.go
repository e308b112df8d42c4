package dnsd

import (
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// A set whose service db is being renamed to dbs is found under both; who asks by one
// name is answered with it, and an address is told by the new one.
func TestARenamedServiceHasBothNames(t *testing.T) {
	port := func(n int32) []spec.ServicePort { return []spec.ServicePort{{Name: "client", Port: n}} }
	s := fixture()
	p := &s.Pictures[0]
	p.Service, p.Former = "dbs", "db"
	p.Names = []records.DNSName{{Name: "db", Ports: port(1), PublishNotReady: true}, {Name: "db-all"}, {Name: "dbs", Ports: port(2)}}
	questions := []struct {
		question      string
		during, after []string
	}{
		{"db-0.db.default.svc.cluster.local. A",
			[]string{"NOERROR", "db-0.db.default.svc.cluster.local. 1 IN A 10.88.0.2"}, []string{"NXDOMAIN", soa}},
		{"db-0.dbs.default.svc.cluster.local. A",
			[]string{"NOERROR", "db-0.dbs.default.svc.cluster.local. 1 IN A 10.88.0.2"},
			[]string{"NOERROR", "db-0.dbs.default.svc.cluster.local. 1 IN A 10.88.0.2"}},
		{"db-2.db.default.svc.cluster.local. A", []string{"NOERROR", soa}, []string{"NXDOMAIN", soa}},
		{"db.default.svc.cluster.local. A",
			[]string{"NOERROR", "db.default.svc.cluster.local. 1 IN A 10.88.0.2", "db.default.svc.cluster.local. 1 IN A 10.88.0.3"},
			[]string{"NXDOMAIN", soa}},
		{"dbs.default.svc.cluster.local. A",
			[]string{"NOERROR", "dbs.default.svc.cluster.local. 1 IN A 10.88.0.2"},
			[]string{"NOERROR", "dbs.default.svc.cluster.local. 1 IN A 10.88.0.2"}},
		{"_client._tcp.db.default.svc.cluster.local. SRV", []string{"NOERROR",
			"_client._tcp.db.default.svc.cluster.local. 1 IN SRV 0 100 1 db-0.db.default.svc.cluster.local.",
			"_client._tcp.db.default.svc.cluster.local. 1 IN SRV 0 100 1 db-1.db.default.svc.cluster.local.",
			"additional db-0.db.default.svc.cluster.local. 1 IN A 10.88.0.2", "additional db-1.db.default.svc.cluster.local. 1 IN A 10.88.0.3",
		}, []string{"NXDOMAIN", soa}},
		{"_client._tcp.dbs.default.svc.cluster.local. SRV", []string{"NOERROR",
			"_client._tcp.dbs.default.svc.cluster.local. 1 IN SRV 0 100 2 db-0.dbs.default.svc.cluster.local.",
			"additional db-0.dbs.default.svc.cluster.local. 1 IN A 10.88.0.2",
		}, []string{"NOERROR",
			"_client._tcp.dbs.default.svc.cluster.local. 1 IN SRV 0 100 2 db-0.dbs.default.svc.cluster.local.",
			"additional db-0.dbs.default.svc.cluster.local. 1 IN A 10.88.0.2",
		}},
		{"2.0.88.10.in-addr.arpa. PTR",
			[]string{"NOERROR", "2.0.88.10.in-addr.arpa. 1 IN PTR db-0.dbs.default.svc.cluster.local."},
			[]string{"NOERROR", "2.0.88.10.in-addr.arpa. 1 IN PTR db-0.dbs.default.svc.cluster.local."}},
	}
	during := Build(s)
	p.Former, p.Names = "", p.Names[1:]
	after := during.Next(s)
	for _, q := range questions {
		if got := lines(during.Answer(ask(t, q.question), UDP)); !slices.Equal(got, q.during) {
			t.Errorf("%s\n got %s\nwant %s", q.question, strings.Join(got, "\n     "), strings.Join(q.during, "\n     "))
		}
		if got := lines(after.Answer(ask(t, q.question), UDP)); !slices.Equal(got, q.after) {
			t.Errorf("%s, when it is complete\n got %s\nwant %s", q.question, strings.Join(got, "\n     "), strings.Join(q.after, "\n     "))
		}
	}
}
