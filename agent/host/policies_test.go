package host

import (
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
)

var here = place{node: "n1", members: netip.MustParsePrefix("10.88.0.0/16"), dns: netip.MustParseAddr("169.254.1.1")}

// policySnapshots are db with members 0 and 1 here and 2 elsewhere, and web, which is in brief.
func policySnapshots(policies ...records.SetPolicy) []records.Snapshot {
	peer := func(ordinal int, address string, node spec.NodeName) records.Peer {
		return records.Peer{Ordinal: ordinal, Address: netip.MustParseAddr(address), Node: node}
	}
	return []records.Snapshot{
		{Ref: spec.SetRef{Namespace: "default", Name: "db"}, Policies: policies, Peers: []records.Peer{
			peer(0, "10.88.0.2", "n1"), peer(1, "10.88.0.1", "n1"), peer(2, "10.88.0.3", "n2")}},
		{Ref: spec.SetRef{Namespace: "default", Name: "web"}, Brief: true, Peers: []records.Peer{peer(0, "10.88.0.9", "n2"), peer(1, "10.88.0.8", "")}},
	}
}

func addrs(list ...string) (out []netip.Addr) {
	for _, text := range list {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// Members here alone are named, each with what all policies that select it allow together; open ones too.
func TestPoliciesOfMembersHere(t *testing.T) {
	web := records.PolicyParty{Namespace: "default", Set: "web"}
	second := &spec.LabelSelector{MatchLabels: map[string]string{netpol.LabelMemberIndex: "1"}}
	block := records.PolicyParty{Block: netip.MustParsePrefix("10.0.0.0/8"), Except: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	group := func(parties string) []string { return []string{parties} }
	const webGroup, spaceGroup, secondGroup = `[{"namespace":"default","set":"web"}]`, `[{"namespace":"default"}]`,
		`[{"namespace":"default","set":"db","members":{"matchLabels":{"apps.kubernetes.io/pod-index":"1"}}}]`
	rule := func(p ...records.PolicyParty) records.PolicyRule { return records.PolicyRule{Parties: p} }
	closed := &network.Filter{}
	for _, tt := range []struct {
		name     string
		policies []records.SetPolicy
		want     [2]network.PolicyMember // 10.88.0.1, which is db-1, and 10.88.0.2
		groups   map[string][]netip.Addr
	}{
		{name: "none"},
		{name: "one that allows nothing", policies: []records.SetPolicy{{Ingress: true}},
			want: [2]network.PolicyMember{{Ingress: closed}, {Ingress: closed}}},
		{name: "one for a member", policies: []records.SetPolicy{{Members: second, Egress: true}},
			want: [2]network.PolicyMember{{Egress: closed}, {}}},
		{name: "they add up", policies: []records.SetPolicy{
			{Ingress: true, From: []records.PolicyRule{{Parties: []records.PolicyParty{web, block}, Ports: []records.PolicyPorts{{Protocol: "TCP", First: 1, Last: 2}}}}},
			{Members: second, Ingress: true, From: []records.PolicyRule{{Anybody: true}}}},
			want: func() [2]network.PolicyMember {
				first := network.Allow{Groups: group(webGroup), Blocks: []network.Block{{Range: block.Block, Except: block.Except}}, Ports: []network.PortRange{{Protocol: "TCP", First: 1, Last: 2}}}
				return [2]network.PolicyMember{{Ingress: &network.Filter{Rules: []network.Allow{first, {Anybody: true}}}}, {Ingress: &network.Filter{Rules: []network.Allow{first}}}}
			}(),
			groups: map[string][]netip.Addr{webGroup: addrs("10.88.0.8", "10.88.0.9")}},
		{name: "a namespace, and one member", policies: []records.SetPolicy{{Ingress: true, From: []records.PolicyRule{
			rule(records.PolicyParty{Namespace: "default"}), rule(records.PolicyParty{Namespace: "default", Set: "db", Members: second})}}},
			want: func() [2]network.PolicyMember {
				f := &network.Filter{Rules: []network.Allow{{Groups: group(spaceGroup)}, {Groups: group(secondGroup)}}}
				return [2]network.PolicyMember{{Ingress: f}, {Ingress: f}}
			}(),
			groups: map[string][]netip.Addr{spaceGroup: addrs("10.88.0.1", "10.88.0.2", "10.88.0.3", "10.88.0.8", "10.88.0.9"), secondGroup: addrs("10.88.0.1")}},
		{name: "everyone and DNS are addresses; DNS is none that comes in", policies: []records.SetPolicy{{Ingress: true, Egress: true,
			From: []records.PolicyRule{rule(records.PolicyParty{DNS: true}), rule(records.PolicyParty{Everyone: true})},
			To:   []records.PolicyRule{rule(records.PolicyParty{DNS: true}), rule(records.PolicyParty{Everyone: true})}}},
			want: func() [2]network.PolicyMember {
				all, dns := network.Block{Range: here.members}, network.Block{Range: netip.MustParsePrefix("169.254.1.1/32")}
				m := network.PolicyMember{Ingress: &network.Filter{Rules: []network.Allow{{Blocks: []network.Block{all}}}},
					Egress: &network.Filter{Rules: []network.Allow{{Blocks: []network.Block{dns}}, {Blocks: []network.Block{all, dns}}}}}
				return [2]network.PolicyMember{m, m}
			}()},
	} {
		want := network.Policies{Members: tt.want[:], Groups: tt.groups}
		want.Members[0].Address, want.Members[1].Address = addrs("10.88.0.1")[0], addrs("10.88.0.2")[0]
		got := here.policiesOf(policySnapshots(tt.policies...))
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}

// Who is in the network of its host has an address that other programs have, too: no policy closes it, or lets in who
// has it; and no route leads it elsewhere.
func TestAHostsAddressIsNoMembers(t *testing.T) {
	snapshots := policySnapshots(records.SetPolicy{Ingress: true, From: []records.PolicyRule{{Parties: []records.PolicyParty{{Namespace: "default"}}}}})
	snapshots[0].Peers[0].Address = netip.MustParseAddr("192.0.2.1") // of n1, where this is
	snapshots[0].Peers[2].Address = netip.MustParseAddr("192.0.2.2")
	snapshots[0].Peers[2].Host = netip.MustParseAddr("192.0.2.2") // as an earlier server says
	got := here.policiesOf(snapshots)
	if len(got.Members) != 1 || got.Members[0].Address != netip.MustParseAddr("10.88.0.1") {
		t.Errorf("closed: %+v", got.Members)
	}
	if diff := cmp.Diff(map[string][]netip.Addr{`[{"namespace":"default"}]`: addrs("10.88.0.1", "10.88.0.8", "10.88.0.9")}, got.Groups, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("let in: (-want +got)\n%s", diff)
	}
	snapshots[1].Peers[0].Host = netip.MustParseAddr("192.0.2.2")
	r := newRoutes("n1", here.members, nil, slog.New(slog.DiscardHandler))
	want := map[netip.Addr]network.Location{netip.MustParseAddr("10.88.0.9"): {Node: "n2", Host: netip.MustParseAddr("192.0.2.2")}}
	if diff := cmp.Diff(want, r.elsewhere(snapshots), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("routes: (-want +got)\n%s", diff)
	}
}

func TestPoliciesAreSetWhenTheyChangeAndAgainByRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, fails := 0, true
		p := newPolicies(here, func(network.Policies) error {
			calls++
			if fails {
				return errors.New("no")
			}
			return nil
		}, slog.New(slog.DiscardHandler))
		go p.run(t.Context())
		expect := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if calls != want {
				t.Errorf("%s: set %d times, want %d", when, calls, want)
			}
		}
		p.repair()
		expect("before anything is known", 0)
		p.update(policySnapshots())
		expect("known, without policies: it is known of each member", 1)
		fails = false
		p.repair()
		expect("after a failure", 2)
		p.update(policySnapshots())
		expect("nothing changed", 2)
		p.update(policySnapshots(records.SetPolicy{Ingress: true}))
		expect("a policy", 3)
	})
}
