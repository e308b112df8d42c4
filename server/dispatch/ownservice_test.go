package dispatch

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// A Service that selects no members is sent to each node by itself, in full, from when it is there until it is gone
// or selects members; and again, as a set, when a node lost it.
func TestAServiceOfItsOwnIsSentToEachNode(t *testing.T) {
	r, n, round := followed(t)
	service := func(kind, to string) {
		r.Record(store.ServiceKey("default", "out"), records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: "out"},
			Spec: spec.ServiceSpec{Type: kind, ExternalName: to, Selector: map[string]string{"app": "kv"}}})
	}
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"at first", func() {}, "db 0>1 brief"},
		{"it comes", func() { service("ExternalName", "a.example") }, "svc:out 0>3"},
		{"it changes", func() { service("ExternalName", "b.example") }, "svc:out 3>4"},
		{"it stays", func() {}, ""},
		{"it is lost", func() { n.Receive(resendOf("svc:out")) }, "svc:out 0>4"},
		{"it selects members", func() { service("ClusterIP", "") }, "svc:out 0>7 gone"},
		{"it does not", func() { service("ExternalName", "b.example") }, "svc:out 0>8"},
		{"it goes", func() { r.Commit(store.Del(store.ServiceKey("default", "out"))) }, "svc:out 0>9 gone"},
	} {
		step.change()
		round()
		got := n.tells().pictures
		if list := strings.Join(shown(t, got), " "); list != step.want {
			t.Errorf("%s: sent %q, want %q", step.name, list, step.want)
		}
		if step.name != "it changes" {
			continue
		}
		sets, _ := wire.ToSets(got.GetSets())
		if p := wire.ApplySet(records.Snapshot{}, sets[0], ""); len(p.Names) != 1 || p.Names[0].Name != "out" || p.Names[0].ExternalName != "b.example" {
			t.Errorf("it changes: got %+v", p)
		}
	}
}

// A Service without a selector is sent with the endpoints that are ready, of its Endpoints and EndpointSlices, as
// they are; of slices, if it has an address, with those that still serve while none is ready.
func TestAServiceWithoutASelectorIsSentWithItsEndpoints(t *testing.T) {
	r, n, round := followed(t)
	meta := func(name string) records.Meta {
		return records.Meta{Namespace: "default", Name: name, Labels: map[string]string{records.ServiceNameLabel: "web"}}
	}
	service := func(address string) {
		record := records.ServiceRecord{Meta: meta("web"), Spec: spec.ServiceSpec{Type: "ClusterIP", PublishNotReadyAddresses: true, Ports: []spec.ServicePort{{Name: "p", Port: 80, TargetPort: &scalar.PortRef{Name: "x"}}}}}
		record.Address, _ = netip.ParseAddr(address)
		r.Record(store.ServiceKey("default", "web"), record)
	}
	ports := []records.EndpointPort{{Name: "p", Port: 8080, Protocol: "TCP"}}
	slice := func(ready bool) {
		yes, no := true, false
		conditions := func(ready *bool) *records.EndpointConditions {
			return &records.EndpointConditions{Ready: ready, Serving: &yes, Terminating: &yes}
		}
		first := conditions(&no)
		if ready {
			first = nil
		}
		r.Record(store.SliceKey("default", "web-1"), records.SliceRecord{Meta: meta("web-1"), Ports: ports, Endpoints: []records.SliceEndpoint{
			{Addresses: []string{"192.0.2.1", "192.0.2.2"}, Conditions: first, Hostname: "a", NodeName: "n1"},
			{Addresses: []string{"192.0.2.3"}, Conditions: &records.EndpointConditions{Ready: &no}},
			{Addresses: []string{"192.0.2.4"}, Conditions: &records.EndpointConditions{Ready: &no, Serving: &no, Terminating: &yes}},
			{Addresses: []string{"192.0.2.5"}, Conditions: &records.EndpointConditions{Ready: &no, Terminating: &yes}}}})
	}
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"without endpoints", func() { service("10.89.0.1") }, ""},
		{"Endpoints come", func() {
			r.Record(store.EndpointsKey("default", "web"), records.EndpointsRecord{Meta: meta("web"), Subsets: []records.EndpointSubset{
				{Addresses: []records.EndpointAddress{{IP: "192.0.2.9", Hostname: "a", NodeName: "n2"}}, NotReadyAddresses: []records.EndpointAddress{{IP: "192.0.2.8"}}, Ports: ports}}})
		}, "192.0.2.9:8080@n2"},
		{"and a slice", func() { slice(true) }, "192.0.2.9:8080@n2 192.0.2.1:8080@n1 192.0.2.2:8080@n1"},
		{"the Endpoints go", func() { r.Commit(store.Del(store.EndpointsKey("default", "web"))) }, "192.0.2.1:8080@n1 192.0.2.2:8080@n1"},
		{"the address goes", func() { service("") }, "192.0.2.1:8080@n1 192.0.2.2:8080@n1"},
		{"none is ready", func() { slice(false) }, ""},
		{"the address is there again", func() { service("10.89.0.1") }, "192.0.2.1:8080@n1 192.0.2.2:8080@n1 192.0.2.5:8080"},
	} {
		step.change()
		round()
		sets, err := wire.ToSets(n.tells().pictures.GetSets())
		if err != nil || len(sets) == 0 {
			t.Fatalf("%s: sent %v, %v", step.name, sets, err)
		}
		p := wire.ApplySet(records.Snapshot{}, sets[len(sets)-1], "")
		var got []string
		for _, e := range p.Names[0].Endpoints {
			text := netip.AddrPortFrom(e.Address, uint16(e.Port)).String()
			if e.Node != "" {
				text += "@" + string(e.Node)
			}
			got = append(got, text)
			if e.PortName != "p" || e.Protocol != "TCP" || e.Node != "" && e.Host != "a" {
				t.Errorf("%s: got %+v", step.name, e)
			}
		}
		if name := p.Names[0]; strings.Join(got, " ") != step.want || name.PublishNotReady || len(name.Ports) > 0 != name.Address.IsValid() {
			t.Errorf("%s: got %+v, want %s", step.name, p.Names, step.want)
		}
	}
}

// A governing service that is an alias says nothing of the members: its name is in a snapshot of its own.
func TestAnAliasIsNoNameOfASet(t *testing.T) {
	alias := &records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: "db"},
		Spec: spec.ServiceSpec{Type: "ExternalName", ExternalName: "a.example", Selector: map[string]string{"app": "db"}}}
	set := &records.Set{Ref: refDB, Spec: spec.SetSpec{ServiceName: "db", Template: testTemplate()}}
	if got := names(set, "", []*records.ServiceRecord{alias}); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}
