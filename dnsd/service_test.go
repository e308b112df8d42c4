package dnsd

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// A service with an address is answered with it, whoever is ready; the members' own names below it are
// answered as ever. Kubernetes: SRV names the service and its own port, PTR of the address the service.
func TestAServiceWithAnAddress(t *testing.T) {
	const name = "db.default.svc.cluster.local."
	s := fixture()
	s.Services = netip.MustParsePrefix("10.89.0.0/16")
	p := &s.Pictures[0]
	p.Names = []records.DNSName{{Name: "db", Address: netip.MustParseAddr("10.89.1.2"), Ports: []spec.ServicePort{
		{Name: "client", Port: 80, Protocol: "TCP", TargetPort: &scalar.PortRef{Number: 2379}}, {Port: 81, TargetPort: &scalar.PortRef{}}}}}
	other := *p
	other.Ref.Name, other.Peers = "other", nil
	s.Pictures = append(s.Pictures, other) // the same service selects it, too
	z := Build(s)
	for question, want := range map[string][]string{
		name + " A":           {"NOERROR", name + " 1 IN A 10.89.1.2"},
		name + " AAAA":        {"NOERROR", soa},
		"db-0." + name + " A": {"NOERROR", "db-0." + name + " 1 IN A 10.88.0.2"},
		"_client._tcp." + name + " SRV": {"NOERROR", "_client._tcp." + name + " 1 IN SRV 0 100 80 " + name,
			"additional " + name + " 1 IN A 10.89.1.2"},
		"2.1.89.10.in-addr.arpa. PTR": {"NOERROR", "2.1.89.10.in-addr.arpa. 1 IN PTR " + name},
	} {
		if got := lines(z.Answer(ask(t, question), UDP)); !slices.Equal(got, want) {
			t.Errorf("%s\n got %s\nwant %s", question, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	}
	if got := lines(z.Answer(ask(t, "3.1.89.10.in-addr.arpa. PTR"), UDP)); got[0] != "NXDOMAIN" {
		t.Errorf("an address that no service has: got %q", got)
	}
	for i := range p.Peers {
		s.Pictures[0].Peers[i].Ready = false
	}
	if got := lines(z.Next(s).Answer(ask(t, name+" A"), UDP)); !slices.Equal(got, []string{"NOERROR", name + " 1 IN A 10.89.1.2"}) {
		t.Errorf("nobody is ready: got %q", got)
	}
}
