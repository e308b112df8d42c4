package dispatch

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// A connection to an address of a service may begin on any node and asks no question: each is sent all of
// the sets that such a service selects, and of those alone.
func TestASetWithAnAddressIsSentToEachNodeInFull(t *testing.T) {
	r, n, round := followed(t)
	service := func(address, app string) {
		record := records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: "web"},
			Spec: spec.ServiceSpec{Selector: map[string]string{"app": app}, Ports: []spec.ServicePort{{Name: "p", Port: 80}}}}
		record.Address, _ = netip.ParseAddr(address)
		r.Record(store.ServiceKey("default", "web"), record)
	}
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"at first", func() {}, "db 0>1 brief"},
		{"a service without an address", func() { service("", "db") }, "db 1>3 brief"},
		{"it gets one", func() { service("10.89.0.1", "db") }, "db 3>4 turned"},
		{"a member elsewhere is ready", func() { r.ready(true) }, "db 4>5"},
		{"it selects another set", func() { service("10.89.0.1", "kv") }, "db 5>6 db 6>6 brief turned"},
		{"a member elsewhere is not ready", func() { r.ready(false) }, ""},
		{"it selects this set again", func() { service("10.89.0.1", "db") }, "db 6>8 brief db 8>8 turned"},
		{"the set went", func() { r.Commit(store.Del(store.SetKey(refDB))) }, "db 0>9 gone"},
	} {
		step.change()
		round()
		if got := strings.Join(shown(t, n.tells().pictures), " "); got != step.want {
			t.Errorf("%s: sent %q, want %q", step.name, got, step.want)
		}
	}
}

// What of a service goes into the snapshot of a set: with an address the service's own ports, each with the
// number of the members' port; of a set that has the service's name and not its labels, none.
func TestTheSnapshotSaysWhereAnAddressLeads(t *testing.T) {
	set := &records.Set{Ref: refDB, Spec: spec.SetSpec{ServiceName: "db", Template: testTemplate()}}
	set.Spec.Template.Spec.Containers[0].Ports = []spec.ContainerPort{{Name: "http", ContainerPort: 8080}}
	seconds := int32(60)
	service := &records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: "db"}, Address: netip.MustParseAddr("10.89.0.1"),
		LoadBalancer: netip.MustParseAddr("203.0.113.1"),
		Spec: spec.ServiceSpec{Selector: map[string]string{"app": "db"}, PublishNotReadyAddresses: true, ExternalIPs: []string{"198.51.100.1", "203.0.113.1"},
			Type: "LoadBalancer", ExternalTrafficPolicy: "Local", HealthCheckNodePort: 30002, LoadBalancerSourceRanges: []string{" 192.0.2.7/24", "2001:db8::/32", "no"},
			SessionAffinity: "ClientIP", SessionAffinityConfig: &spec.SessionAffinityConfig{ClientIP: &spec.ClientIPAffinity{TimeoutSeconds: &seconds}},
			Ports: []spec.ServicePort{{Name: "same", Port: 2379, Protocol: "UDP", NodePort: 30001}, {Name: "number", Port: 80, TargetPort: &scalar.PortRef{Number: 81}},
				{Name: "named", Port: 82, TargetPort: &scalar.PortRef{Name: "http"}}, {Name: "nobody", Port: 83, TargetPort: &scalar.PortRef{Name: "x"}}}}}
	for _, app := range []string{"db", "other"} {
		service.Spec.Selector["app"] = app
		got := names(set, "", []*records.ServiceRecord{service})
		if len(got) != 1 || got[0].Address != service.Address || !slices.Equal(got[0].Outside, []netip.Addr{service.LoadBalancer, netip.MustParseAddr("198.51.100.1")}) || got[0].AffinitySeconds != 60 || !got[0].PublishNotReady || len(got[0].Ports) != 4 {
			t.Fatalf("got %+v", got)
		}
		if n := got[0]; !n.OutsideOnNode || n.HealthPort != 30002 || n.Balancer != service.LoadBalancer || fmt.Sprint(n.Sources) != "[192.0.2.0/24 2001:db8::/32 ::/128]" {
			t.Errorf("of clients outside: got %+v", n)
		}
		for i, want := range []int32{2379, 81, 8080, 0} {
			if app == "other" {
				want = 0
			}
			p, own := got[0].Ports[i], service.Spec.Ports[i]
			if p.Name != own.Name || p.Port != own.Port || p.Protocol != own.Protocol || p.NodePort != own.NodePort || p.TargetPort.Number != want {
				t.Errorf("app %s, port %s: got %+v, want it to lead to %d", app, own.Name, p, want)
			}
		}
	}
}

func TestAServiceOfOneMemberNamesIt(t *testing.T) {
	set := &records.Set{Ref: refDB, Spec: spec.SetSpec{ServiceName: "dbs", Template: testTemplate()}}
	service := func(name string, labels map[string]string) *records.ServiceRecord {
		return &records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: name}, Address: netip.MustParseAddr("10.89.0.1"), Spec: spec.ServiceSpec{Selector: labels}}
	}
	const own = "statefulset.kubernetes.io/pod-name"
	got := names(set, "", []*records.ServiceRecord{
		service("all", map[string]string{"app": "db"}), service("one", map[string]string{own: "db-2"}), service("other", map[string]string{own: "web-0"}),
	})
	if len(got) != 3 || got[0].Name != "all" || got[0].Only != nil || got[2].Name != "one" || got[2].Only == nil || *got[2].Only != 2 {
		t.Fatalf("got %+v", got)
	}
	s := records.Snapshot{Peers: []records.Peer{
		{Ordinal: 1, Address: addr(1), Ready: true, Node: "n1"}, {Ordinal: 2, Address: addr(2), Ready: true, Node: "n1"},
	}}
	port := spec.ServicePort{Port: 80, TargetPort: &scalar.PortRef{Number: 8080}}
	if list := s.EndpointsOf(&got[2], &port); len(list) != 1 || list[0].Address != addr(2) {
		t.Errorf("it leads to %v", list)
	}
}
