package dnsd

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// TestAHeadlessServiceOfItsOwnResolvesToItsEndpoints as in Kubernetes: each has a name by its host, or by its address.
func TestAHeadlessServiceOfItsOwnResolvesToItsEndpoints(t *testing.T) {
	const name = "ext.default.svc.cluster.local."
	at := func(ip, host, port string, number int32) records.Endpoint {
		return records.Endpoint{Address: netip.MustParseAddr(ip), Host: host, PortName: port, Protocol: "TCP", Port: number}
	}
	s := fixture()
	s.Pictures = append(s.Pictures, records.Snapshot{Ref: spec.Namespace("default").ServiceRef("ext"), Names: []records.DNSName{{Name: "ext", Endpoints: []records.Endpoint{
		at("192.0.2.1", "", "sql", 5432), at("192.0.2.1", "", "", 0), at("192.0.2.2", "b", "sql", 5433)}}}})
	z := Build(s)
	for question, want := range map[string][]string{
		name + " A":                {"NOERROR", name + " 1 IN A 192.0.2.1", name + " 1 IN A 192.0.2.2"},
		"192-0-2-1." + name + " A": {"NOERROR", "192-0-2-1." + name + " 1 IN A 192.0.2.1"},
		"b." + name + " A":         {"NOERROR", "b." + name + " 1 IN A 192.0.2.2"},
		"c." + name + " A":         {"NXDOMAIN", soa},
		"_sql._tcp." + name + " SRV": {"NOERROR", "_sql._tcp." + name + " 1 IN SRV 0 100 5432 192-0-2-1." + name, "_sql._tcp." + name + " 1 IN SRV 0 100 5433 b." + name,
			"additional 192-0-2-1." + name + " 1 IN A 192.0.2.1", "additional b." + name + " 1 IN A 192.0.2.2"},
	} {
		if got := lines(z.Answer(ask(t, question), UDP)); !slices.Equal(got, want) {
			t.Errorf("%s\n got %s\nwant %s", question, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	}
	s.Pictures[len(s.Pictures)-1].Names[0].Endpoints = nil
	if got := lines(z.Next(s).Answer(ask(t, name+" A"), UDP)); !slices.Equal(got, []string{"NOERROR", soa}) {
		t.Errorf("without endpoints: got %q", got)
	}
}
