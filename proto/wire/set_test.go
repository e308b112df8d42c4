package wire

import (
	"reflect"
	"testing"

	"github.com/stead-project/stead/records"
)

func TestPoliciesTravelWithTheirSet(t *testing.T) {
	s := records.Snapshot{Policies: []records.SetPolicy{{Name: "a", Ingress: true, From: []records.PolicyRule{{Anybody: true, Ports: []records.PolicyPorts{{Protocol: "TCP", First: 1, Last: 2}}}}}}}
	if got := ApplySet(records.Snapshot{}, WholeSet(&s, "d"), "d"); !reflect.DeepEqual(got.Policies, s.Policies) {
		t.Errorf("got %+v, want %+v", got.Policies, s.Policies)
	}
}

// What a server of a later version may write is not taken for a policy that allows everything.
func TestAPolicyThatCannotBeReadAllowsNothing(t *testing.T) {
	d := WholeSet(&records.Snapshot{}, "d")
	d.Head.PoliciesJson = [][]byte{[]byte(`{"name":"a","from":3}`)}
	if got, want := ApplySet(records.Snapshot{}, d, "d").Policies, []records.SetPolicy{{Name: "a", Ingress: true, Egress: true}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAServiceOfOneMemberTravelsWithItsSet(t *testing.T) {
	one := int32(0)
	s := records.Snapshot{Names: []records.DNSName{{Name: "all"}, {Name: "one", Only: &one}}}
	got := ApplySet(records.Snapshot{}, WholeSet(&s, "cluster.local"), "cluster.local")
	if len(got.Names) != 2 || got.Names[0].Only != nil || got.Names[1].Only == nil || *got.Names[1].Only != 0 {
		t.Errorf("got %+v", got.Names)
	}
}
