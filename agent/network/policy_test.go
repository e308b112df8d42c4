package network

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// from allows these groups at TCP port 7.
func from(groups ...string) *Filter {
	return &Filter{Rules: []Allow{{Groups: groups, Ports: []PortRange{{"TCP", 7, 7}}}}}
}

func TestMembersShareRulesAndGroups(t *testing.T) {
	p := Policies{Groups: map[string][]netip.Addr{"unused": nil}}
	for i := range 1000 {
		p.Groups["peers"] = append(p.Groups["peers"], netip.AddrFrom4([4]byte{10, 88, byte(1 + i/250), byte(i % 250)}))
	}
	for i := range 100 {
		p.Members = append(p.Members, PolicyMember{Address: address(byte(i)), Ingress: from("peers")})
	}
	p.Members = append(p.Members, PolicyMember{Address: address(200)})
	have := policyContentOf(p)
	if len(have.chains) != 1 || len(have.sets) != 4 || len(have.sets[mapIngress]) != 100 || len(have.sets[mapEgress]) != 0 {
		t.Fatalf("%d chains, %d sets, %d elements for ingress, %d for egress; want one chain and one group for all",
			len(have.chains), len(have.sets), len(have.sets[mapIngress]), len(have.sets[mapEgress]))
	}
	p.Groups["peers"][7] = address(201)
	next := policyContentOf(p)
	removed, added := 0, 0
	for name := range next.sets {
		r, a := next.sets[name].difference(have.sets[name])
		removed, added = removed+len(r), added+len(a)
	}
	if removed != 1 || added != 1 || len(onlyIn(have.chains, next.chains))+len(onlyIn(have.sets, next.sets)) != 0 {
		t.Errorf("one other peer: %d elements removed and %d added, other chains %q and sets %q", removed, added, onlyIn(have.chains, next.chains), onlyIn(have.sets, next.sets))
	}
}

func TestInvalidPoliciesAreRefused(t *testing.T) {
	n, err := New(Config{ClusterID: cluster, Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	six := netip.MustParseAddr("fd00::1")
	for want, p := range map[string]Policies{
		"there is no group x":                 {Members: []PolicyMember{{Address: address(1), Egress: from("x")}}},
		"be there once":                       {Members: []PolicyMember{{Address: address(1)}, {Address: address(1)}}},
		"must be an IPv4":                     {Members: []PolicyMember{{Address: six}}},
		"fd00::1 is not an IPv4 address":      {Groups: map[string][]netip.Addr{"g": {six}}},
		"names groups or blocks":              {Members: []PolicyMember{{Address: address(1), Ingress: &Filter{[]Allow{{Anybody: true, Blocks: []Block{{}}}}}}}},
		"is not a range of IPv4 addresses":    {Members: []PolicyMember{{Address: address(1), Ingress: &Filter{[]Allow{{Blocks: []Block{{}}}}}}}},
		`invalid ports 9 to 7 of "TCP"`:       {Members: []PolicyMember{{Address: address(1), Ingress: &Filter{[]Allow{{Anybody: true, Ports: []PortRange{{"TCP", 9, 7}}}}}}}},
		`invalid ports 0 to 0 of "ICMP"`:      {Members: []PolicyMember{{Address: address(1), Ingress: &Filter{[]Allow{{Anybody: true, Ports: []PortRange{{Protocol: "ICMP"}}}}}}}},
		`set policies: member 10.88.0.1 must`: {Members: []PolicyMember{{Address: address(1)}, {Address: address(1)}}},
	} {
		if err := n.SetPolicies(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if n.policies.given {
		t.Error("what was refused is remembered")
	}
}

func TestAwaitReturnsOnceAMemberIsJudged(t *testing.T) {
	j := newJudged()
	done := make(chan error)
	go func() { done <- j.await(t.Context(), address(1)) }()
	j.set(map[netip.Addr]bool{address(2): true})
	select {
	case err := <-done:
		t.Fatalf("it returned before: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	j.set(map[netip.Addr]bool{address(1): true})
	if err := <-done; err != nil || !j.has(address(1)) || j.has(address(2)) {
		t.Error(fmt.Sprint("after it is known: ", err))
	}
}
