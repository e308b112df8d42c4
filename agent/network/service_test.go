package network

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// service is of 10.96.0.<last>:80/TCP, or of the node port 30080; endpoints are those of 10.88.0.<n>:7.
func service(last byte, endpoints ...byte) Service {
	s := Service{Port: 80, Protocol: "TCP", Address: netip.AddrFrom4([4]byte{10, 96, 0, last})}
	if last == 0 {
		s.Address, s.Port = netip.Addr{}, 30080
	}
	for _, e := range endpoints {
		s.Endpoints = append(s.Endpoints, netip.AddrPortFrom(address(e), 7))
	}
	return s
}

// with is a service after an edit.
func (s Service) with(edit func(*Service)) Service {
	edit(&s)
	return s
}

// near has clients outside led to 10.88.0.<n>:7 alone.
func near(endpoints ...byte) func(*Service) {
	return func(s *Service) { s.OnlyNear, s.Near = true, service(1, endpoints...).Endpoints }
}

// onlyFrom has connections led from these ranges alone.
func onlyFrom(ranges ...string) func(*Service) {
	return func(s *Service) {
		for _, text := range ranges {
			s.Sources = append(s.Sources, netip.MustParsePrefix(text))
		}
	}
}

// linesOf writes content as text: addresses, protocols and ports of 4 bytes each, in order.
func linesOf(c content) (out []string) {
	for set, all := range c.sets {
		for key, value := range all {
			if set == setServices || set == setOutside || set == setGuarded {
				value = " → " + value
			} else if value != "" {
				value = " →" + words(value, "ap")
			}
			layout := map[string]string{setServices: "atp", setEndpoints: "atpn", setLed: "atpap", setSelf: "aa",
				setOutside: "atp", setNear: "atpn", setGuarded: "atp"}[set]
			out = append(out, set+words(key, layout)+value)
		}
	}
	slices.Sort(out)
	return append(out, slices.Sorted(maps.Keys(c.shared))...)
}

func words(b, layout string) string {
	var out strings.Builder
	for i, kind := range layout {
		part := b[4*i : 4*i+4]
		switch kind {
		case 'a':
			fmt.Fprintf(&out, " %d.%d.%d.%d", part[0], part[1], part[2], part[3])
		case 'p':
			fmt.Fprintf(&out, " %d", int(part[0])<<8|int(part[1]))
		case 't':
			fmt.Fprintf(&out, " proto%d", part[0])
		default:
			for n := range 100 {
				if numberBytes(n) == part {
					fmt.Fprintf(&out, " #%d", n)
				}
			}
		}
	}
	return out.String()
}

func TestContentOfServices(t *testing.T) {
	for _, tt := range []struct {
		name     string
		services []Service
		want     string
	}{
		{"none", nil, ""},
		{"without endpoints it is refused", []Service{service(1)}, `
			services 10.96.0.1 proto6 80 → refuse`},
		{"two endpoints", []Service{service(1, 10, 11)}, `
			endpoints 10.96.0.1 proto6 80 #0 → 10.88.0.10 7
			endpoints 10.96.0.1 proto6 80 #1 → 10.88.0.11 7
			led 10.96.0.1 proto6 80 10.88.0.10 7
			led 10.96.0.1 proto6 80 10.88.0.11 7
			self 10.88.0.10 10.88.0.10
			self 10.88.0.11 10.88.0.11
			services 10.96.0.1 proto6 80 → pick-2
			pick-2`},
		{"two ports of a member, one chain for all", []Service{
			service(1, 10), service(1, 10).with(func(s *Service) { s.Port = 81 }),
		}, `
			endpoints 10.96.0.1 proto6 80 #0 → 10.88.0.10 7
			endpoints 10.96.0.1 proto6 81 #0 → 10.88.0.10 7
			led 10.96.0.1 proto6 80 10.88.0.10 7
			led 10.96.0.1 proto6 81 10.88.0.10 7
			self 10.88.0.10 10.88.0.10
			services 10.96.0.1 proto6 80 → pick-1
			services 10.96.0.1 proto6 81 → pick-1
			pick-1`},
		{"the same port of UDP and SCTP are services of their own", []Service{
			service(1).with(func(s *Service) { s.Protocol = "UDP" }), service(1).with(func(s *Service) { s.Protocol = "SCTP" }),
		}, `
			services 10.96.0.1 proto132 80 → refuse
			services 10.96.0.1 proto17 80 → refuse`},
		{"a node port, and an affinity in whole seconds", []Service{
			service(0, 10), service(2, 10).with(func(s *Service) { s.Affinity = 1500 * time.Millisecond }),
		}, `
			endpoints 0.0.0.0 proto6 30080 #0 → 10.88.0.10 7
			endpoints 10.96.0.2 proto6 80 #0 → 10.88.0.10 7
			led 0.0.0.0 proto6 30080 10.88.0.10 7
			led 10.96.0.2 proto6 80 10.88.0.10 7
			self 10.88.0.10 10.88.0.10
			services 0.0.0.0 proto6 30080 → port-1
			services 10.96.0.2 proto6 80 → pick-1-2s-HASH
			pick-1-2s-HASH
			port-1`},
		{"clients outside are led to what is near, by an address and a port of the node", []Service{
			service(1, 10, 11).with(near(11)), service(0, 10).with(near(10)),
		}, `
			endpoints 0.0.0.0 proto6 30080 #0 → 10.88.0.10 7
			endpoints 10.96.0.1 proto6 80 #0 → 10.88.0.10 7
			endpoints 10.96.0.1 proto6 80 #1 → 10.88.0.11 7
			led 0.0.0.0 proto6 30080 10.88.0.10 7
			led 10.96.0.1 proto6 80 10.88.0.10 7
			led 10.96.0.1 proto6 80 10.88.0.11 7
			near 0.0.0.0 proto6 30080 #0 → 10.88.0.10 7
			near 10.96.0.1 proto6 80 #0 → 10.88.0.11 7
			outside 0.0.0.0 proto6 30080 → near-port-1
			outside 10.96.0.1 proto6 80 → near-pick-1
			self 10.88.0.10 10.88.0.10
			self 10.88.0.11 10.88.0.11
			services 0.0.0.0 proto6 30080 → port-1
			services 10.96.0.1 proto6 80 → pick-2
			near-pick-1
			near-port-1
			pick-2
			port-1`},
		{"what clients outside send is dropped where nothing is near, and refused where there is nothing", []Service{
			service(1, 10).with(near()), service(2).with(near()),
		}, `
			endpoints 10.96.0.1 proto6 80 #0 → 10.88.0.10 7
			led 10.96.0.1 proto6 80 10.88.0.10 7
			outside 10.96.0.1 proto6 80 → discard
			self 10.88.0.10 10.88.0.10
			services 10.96.0.1 proto6 80 → pick-1
			services 10.96.0.2 proto6 80 → refuse
			pick-1`},
		{"equal sources share a chain", []Service{
			service(1).with(onlyFrom("192.0.2.0/24")), service(2).with(onlyFrom("192.0.2.0/24")), service(3),
		}, `
			guarded 10.96.0.1 proto6 80 → from-HASH
			guarded 10.96.0.2 proto6 80 → from-HASH
			services 10.96.0.1 proto6 80 → refuse
			services 10.96.0.2 proto6 80 → refuse
			services 10.96.0.3 proto6 80 → refuse
			from-HASH`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := strings.Fields(strings.ReplaceAll(strings.TrimSpace(tt.want), " ", "_"))
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "_", " ")
			}
			got := linesOf(contentOf(tt.services))
			for i, line := range got {
				for _, before := range []string{"2s-", "from-"} {
					if at := strings.Index(line, before); at >= 0 {
						got[i] = line[:at+len(before)] + "HASH"
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestOneServicesChangeIsAFewElements(t *testing.T) {
	all := manyServices(1000, 3)
	before := contentOf(all)
	if picks := before.newShared(newContent()); len(picks) != 1 {
		t.Errorf("%d chains for services of one size", len(picks))
	}
	all[500].Endpoints = all[500].Endpoints[:2]
	after := contentOf(all)
	var removed, added int
	for set := range after.sets {
		r, a := after.sets[set].difference(before.sets[set])
		removed, added = removed+len(r), added+len(a)
	}
	// The number and the entry of the endpoint, its address, and the service, which has another chain now.
	if removed != 4 || added != 1 {
		t.Errorf("%d elements removed and %d added for one endpoint that went", removed, added)
	}
	if c := after.udpSince(before); c.any {
		t.Error("a service of TCP changed, and UDP is looked through")
	}
}

// manyServices have distinct addresses and endpoints.
func manyServices(n, endpoints int) (all []Service) {
	for i := range n {
		s := Service{Address: netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), Port: 80, Protocol: "TCP"}
		for j := range endpoints {
			e := i*endpoints + j
			s.Endpoints = append(s.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 88, byte(e >> 8), byte(e)}), 7))
		}
		all = append(all, s)
	}
	return all
}

func TestAChainGoesOnceNothingLedToIt(t *testing.T) {
	affine := func(s *Service) { s.Affinity = time.Hour }
	names := func(c content) []string { return slices.Sorted(maps.Keys(c.shared)) }
	before := contentOf([]Service{service(1, 10, 11).with(affine), service(2, 10, 11).with(affine), service(3, 10)})
	if got := names(before); len(got) != 2 {
		t.Errorf("chains of three services, two of them alike: %q", got)
	}
	after := contentOf([]Service{service(1, 10, 12).with(affine), service(2, 10, 11)})
	if got := after.oldShared(before); len(got) != 0 {
		t.Errorf("removed while services lead there: %q", got)
	}
	// What the write before left.
	have := contentOf([]Service{service(1, 10, 12).with(affine), service(2, 10, 11)})
	maps.Copy(have.shared, before.shared)
	if got := after.oldShared(have); !slices.Equal(got, names(before)) {
		t.Errorf("removed by the next write: %q, want %q", got, names(before))
	}
}

func TestAValueThatChangesIsRemovedAndAdded(t *testing.T) {
	removed, added := elements{"a": "1", "b": "2", "d": ""}.difference(elements{"b": "1", "c": "", "a": "1"})
	if !slices.Equal(removed, []string{"b", "c"}) || !slices.Equal(added, []string{"b", "d"}) {
		t.Errorf("removed %q, added %q", removed, added)
	}
}

func TestServicesThatAreRefused(t *testing.T) {
	n, err := New(Config{ClusterID: cluster, Node: "n1"})
	must(t, err)
	rng := netip.MustParsePrefix("10.96.0.0/16")
	for _, tt := range []struct {
		rng      string
		services []Service
		want     string
	}{
		{"10.88.0.0/24", nil, "overlaps the members' range"},
		{"169.254.0.0/16", nil, "contains the gateway"},
		{"10.96.0.1/16", nil, "must be an IPv4 range"},
		{"", []Service{service(1).with(func(s *Service) { s.Protocol = "tcp" })}, "service 10.96.0.1:80/tcp: invalid port or protocol"},
		{"", []Service{service(1).with(func(s *Service) { s.Port = 0 })}, "invalid port"},
		{"", []Service{service(1).with(func(s *Service) { s.Affinity = -1 })}, "invalid affinity"},
		{"", []Service{service(1).with(func(s *Service) { s.Address = address(1) })}, "not a member's"},
		{"", []Service{service(1).with(func(s *Service) { s.Address = netip.MustParseAddr("127.0.0.1") })}, "not 127.0.0.0/8"},
		{"", []Service{service(0), service(0)}, "service 30080/TCP is there twice"},
		{"", []Service{service(1, 10, 10)}, "endpoint 10.88.0.10:7"},
		{"", []Service{service(1).with(func(s *Service) { s.Endpoints = make([]netip.AddrPort, 1) })}, "endpoint"},
		{"", []Service{service(1, 10).with(near(11))}, "endpoint near 10.88.0.11:7 is not one of its endpoints"},
		{"", []Service{service(1, 10).with(near(10)).with(func(s *Service) { s.OnlyNear = false })}, "without OnlyNear"},
		{"", []Service{service(0, 10).with(onlyFrom("192.0.2.0/24"))}, "and the service have an address"},
		{"", []Service{service(1, 10).with(func(s *Service) { s.Sources = make([]netip.Prefix, 1) })}, "must be a range"},
	} {
		r := rng
		if tt.rng != "" {
			r = netip.MustParsePrefix(tt.rng)
		}
		if err := n.SetServices(r, tt.services); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %v: got %v, want %q in it", r, tt.services, err, tt.want)
		}
	}
	right := []Service{service(1, 10), service(1).with(func(s *Service) { s.Protocol = "UDP" }), service(0, 10)}
	if err := n.SetServices(rng, right); err != nil {
		t.Errorf("services that are right, before the host is set up: %v", err)
	}
}
