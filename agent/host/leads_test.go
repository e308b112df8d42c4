package host

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func addrPorts(list ...string) (out []netip.AddrPort) {
	for _, text := range list {
		out = append(out, netip.MustParseAddrPort(text))
	}
	return out
}

// twoSets are db, whose service web leads to port 8080, and kv, where it is 9090.
func twoSets() []records.Snapshot {
	name := func(target int32) records.DNSName {
		return records.DNSName{Name: "web", Address: netip.MustParseAddr("10.89.0.7"), AffinitySeconds: 60, Ports: []spec.ServicePort{
			{Name: "http", Port: 80, NodePort: 30080, TargetPort: &scalar.PortRef{Number: target}},
			{Name: "dns", Port: 53, Protocol: "UDP", TargetPort: &scalar.PortRef{}}}}
	}
	peer := func(address string, ready bool, node spec.NodeName) records.Peer {
		return records.Peer{Address: netip.MustParseAddr(address), Ready: ready, Node: node}
	}
	return []records.Snapshot{
		{Names: []records.DNSName{{Name: "db"}, name(8080)}, Peers: []records.Peer{
			peer("10.88.0.3", true, "n1"), peer("10.88.0.2", true, "n2"), peer("10.88.0.4", false, "n1"), peer("10.88.0.5", true, "")}},
		{Names: []records.DNSName{name(9090)}, Peers: []records.Peer{peer("10.88.0.9", true, "n2")}},
		{Names: []records.DNSName{{Name: "x", Ports: []spec.ServicePort{{Port: 1}}}}, Peers: []records.Peer{peer("10.88.0.10", true, "n2")}},
	}
}

// A port of an address leads to the members that are ready, of all sets that the service selects, each
// at the port that its set has for it; without such members it is there, and leads to none.
func TestServicesAreDerivedFromAllSnapshots(t *testing.T) {
	web := netip.MustParseAddr("10.89.0.7")
	dns := network.Service{Address: web, Port: 53, Protocol: "UDP", Affinity: time.Minute}
	http := func(list ...string) network.Service {
		return network.Service{Address: web, Port: 80, Protocol: "TCP", Affinity: time.Minute, Endpoints: addrPorts(list...)}
	}
	atNodes := func(s network.Service) network.Service {
		s.Address, s.Port = netip.Addr{}, 30080
		return s
	}
	all, here := http("10.88.0.2:8080", "10.88.0.3:8080", "10.88.0.9:9090"), addrPorts("10.88.0.3:8080")
	balancer := netip.MustParseAddr("203.0.113.1")
	office := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	near := func(s network.Service, list []netip.AddrPort) network.Service {
		s.OnlyNear, s.Near = true, list
		return s
	}
	guarded := func(s network.Service) network.Service {
		s.Sources = office
		return s
	}
	at := func(a netip.Addr, list ...network.Service) (out []network.Service) {
		for _, s := range list {
			s.Address = a
			out = append(out, s)
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		change func(*records.DNSName)
		want   []network.Service
	}{
		{"those that are ready", func(*records.DNSName) {}, []network.Service{atNodes(all), dns, all}},
		{"also those that are not, which live", func(n *records.DNSName) { n.PublishNotReady = true }, func() []network.Service {
			all := http("10.88.0.2:8080", "10.88.0.3:8080", "10.88.0.4:8080", "10.88.0.9:9090")
			return []network.Service{atNodes(all), dns, all}
		}()},
		{"also by addresses for clients outside", func(n *records.DNSName) { n.Outside = []netip.Addr{balancer} },
			slices.Concat([]network.Service{atNodes(all), dns, all}, at(balancer, dns, all))},
		{"those on this node, by the own address alone", func(n *records.DNSName) { n.OnNode, n.Outside = true, []netip.Addr{balancer} },
			slices.Concat([]network.Service{atNodes(all), dns, http("10.88.0.3:8080")}, at(balancer, dns, all))},
		{"those on this node, for clients outside", func(n *records.DNSName) { n.OutsideOnNode, n.Outside = true, []netip.Addr{balancer} },
			slices.Concat([]network.Service{near(atNodes(all), here), dns, all}, at(balancer, near(dns, nil), near(all, here)))},
		{"from sources, by the address of the load balancer", func(n *records.DNSName) {
			n.Outside, n.Balancer, n.Sources = []netip.Addr{balancer, balancer.Next()}, balancer, office
		}, slices.Concat([]network.Service{atNodes(all), dns, all}, at(balancer, guarded(dns), guarded(all)), at(balancer.Next(), dns, all))},
	} {
		sets := twoSets()
		tt.change(&sets[0].Names[1])
		tt.change(&sets[1].Names[0])
		equal := []cmp.Option{cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(tt.want, servicesOf(sets, "n1"), equal...); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// A Service that selects no members leads to its endpoints, by the name and protocol of its ports; as kube-proxy, on
// each node alone to those there with internalTrafficPolicy and externalTrafficPolicy Local.
func TestAServiceOfItsOwnLeadsToItsEndpoints(t *testing.T) {
	web := netip.MustParseAddr("10.89.0.7")
	at := func(ip string, port int32, name, protocol string, node spec.NodeName) records.Endpoint {
		return records.Endpoint{Address: netip.MustParseAddr(ip), Port: port, PortName: name, Protocol: protocol, Node: node}
	}
	name := records.DNSName{Name: "web", Address: web, Ports: []spec.ServicePort{
		{Name: "http", Port: 80, NodePort: 30080, TargetPort: &scalar.PortRef{}}, {Name: "http", Port: 81, Protocol: "UDP", TargetPort: &scalar.PortRef{}}},
		Endpoints: []records.Endpoint{at("192.0.2.2", 8080, "http", "TCP", "n2"), at("192.0.2.1", 8080, "http", "TCP", "n1"), at("192.0.2.1", 8080, "http", "TCP", "n1"),
			at("192.0.2.3", 8080, "other", "TCP", ""), at("192.0.2.4", 53, "http", "UDP", ""), {Address: netip.MustParseAddr("192.0.2.5")}}}
	tcp, here := addrPorts("192.0.2.1:8080", "192.0.2.2:8080"), addrPorts("192.0.2.1:8080")
	for _, local := range []bool{false, true} {
		name.OnNode, name.OutsideOnNode = local, local
		want := []network.Service{{Port: 30080, Protocol: "TCP", Endpoints: tcp}, {Address: web, Port: 80, Protocol: "TCP", Endpoints: tcp},
			{Address: web, Port: 81, Protocol: "UDP", Endpoints: addrPorts("192.0.2.4:53")}}
		if local {
			want[0].OnlyNear, want[0].Near, want[1].Endpoints, want[2].Endpoints = true, here, here, nil
		}
		got := servicesOf([]records.Snapshot{{Ref: spec.Namespace("default").ServiceRef("web"), Names: []records.DNSName{name}}}, "n1")
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("on this node alone %t: %s", local, diff)
		}
	}
}

// The host is set anew when something changed, when it is to be repaired, and not otherwise; nothing is set
// before a server said which range there is, nor before the sets are known.
func TestAHostFollowsServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cidr, sets := "", [][]network.Service(nil)
		var fail error
		l := newLeads("n1", func() string { return cidr }, func(rng netip.Prefix, list []network.Service) error {
			if rng.String() != cidr {
				t.Errorf("got the range %s", rng)
			}
			sets = append(sets, list)
			return fail
		}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = l.run(ctx) }()
		expect := func(what string, calls int) {
			t.Helper()
			synctest.Wait()
			if len(sets) != calls {
				t.Fatalf("%s: set %d times, want %d", what, len(sets), calls)
			}
		}
		l.repair()
		expect("nothing is known", 0)
		l.update(twoSets())
		expect("an old server", 0)
		cidr = "10.89.0.0/16"
		l.update(twoSets())
		expect("at first", 1)
		l.update(twoSets())
		expect("nothing changed", 1)
		fail = errors.New("no")
		changed := twoSets()
		changed[0].Peers[0].Ready = false
		l.update(changed)
		expect("a member is not ready", 2)
		if want := addrPorts("10.88.0.2:8080", "10.88.0.9:9090"); !slices.Equal(sets[1][2].Endpoints, want) {
			t.Errorf("got %v, want %v", sets[1][2].Endpoints, want)
		}
		l.repair()
		expect("it failed, and is repaired", 3)
		l.update(nil)
		expect("the sets went", 4)
		if len(sets[3]) != 0 {
			t.Errorf("got %v", sets[3])
		}
	})
}
