package network

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// The sets and maps of the table of services. Each service has an element in setServices and, for each
// of its endpoints, one in setEndpoints and setLed, but, without affinity, no chain or rule of its own: what
// changes is found by listing sets, and written as elements.
const (
	setServices  = "services"  // service → the chain that chooses an endpoint
	setEndpoints = "endpoints" // service, number from 0 → endpoint
	setLed       = "led"       // service, endpoint: what the next process must know of connections of UDP
	setSelf      = "self"      // address of an endpoint, twice: who reaches itself
	setAffinity  = "affinity"  // client, service without its protocol, endpoint; written by rules alone
)

// content is what the table of services is to hold, apart from what never changes.
type content struct {
	picks map[string]pick // by the name of the chain
	sets  map[string]elements
}

// elements are those of a set or map, key to value, as the kernel has both: each part is padded to
// 4 bytes. The value of setServices is the name of a chain.
type elements map[string]string

// pick is how an endpoint is chosen: a chain that services share that choose alike.
type pick struct {
	nodePort bool // the service has no address of its own
	among    int
	// affinity is in whole seconds; 0: there is none, and the chain does not depend on the endpoints.
	affinity  time.Duration
	endpoints []netip.AddrPort // with affinity
}

// refuse is the chain that rejects.
const refuse = "refuse"

// pickOf is how an endpoint of a service that has one is chosen.
func pickOf(s Service) pick {
	p := pick{nodePort: !s.Address.IsValid(), among: len(s.Endpoints)}
	if s.Affinity > 0 {
		p.affinity, p.endpoints = (s.Affinity + time.Second - 1).Truncate(time.Second), s.Endpoints
	}
	return p
}

// name is that of the chain: "pick-3", of node ports "port-3", with affinity "pick-3-10800s-" and a hash of the
// endpoints. A chain never changes: what would change it is in its name.
func (p pick) name() string {
	name := "pick"
	if p.nodePort {
		name = "port"
	}
	name += fmt.Sprintf("-%d", p.among)
	if p.affinity > 0 {
		sum := sha256.Sum256(fmt.Append(nil, p.endpoints))
		name += fmt.Sprintf("-%ds-%x", p.affinity/time.Second, sum[:8])
	}
	return name
}

// contentOf is the whole content for these services.
func contentOf(services []Service) content {
	c := newContent()
	for _, s := range services {
		key := s.id().bytes()
		if len(s.Endpoints) == 0 {
			c.sets[setServices][key] = refuse
			continue
		}
		p := pickOf(s)
		c.picks[p.name()] = p
		c.sets[setServices][key] = p.name()
		for i, e := range s.Endpoints {
			endpoint := endpointBytes(e)
			c.sets[setEndpoints][key+numberBytes(i)] = endpoint
			c.sets[setLed][key+endpoint] = ""
			c.sets[setSelf][endpoint[:4]+endpoint[:4]] = ""
		}
	}
	return c
}

func newContent() content {
	c := content{picks: map[string]pick{}, sets: map[string]elements{}}
	for _, set := range []string{setServices, setEndpoints, setLed, setSelf} {
		c.sets[set] = elements{}
	}
	return c
}

// difference is what leads from have to want, sorted: what is removed first, then what is
// added. An element whose value changed is in both.
func (want elements) difference(have elements) (removed, added []string) {
	for key, value := range have {
		if now, there := want[key]; !there || now != value {
			removed = append(removed, key)
		}
	}
	for key, value := range want {
		if was, there := have[key]; !there || was != value {
			added = append(added, key)
		}
	}
	slices.Sort(removed)
	slices.Sort(added)
	return removed, added
}

// newPicks are the chains that want has and have has not, by name.
func (want content) newPicks(have content) []pick {
	var out []pick
	for _, name := range onlyIn(want.picks, have.picks) {
		out = append(out, want.picks[name])
	}
	return out
}

// oldPicks are the names of chains of have that want has not, and to which no service of have leads: those to which
// one led until now are removed by the next write, as older kernels ask.
func (want content) oldPicks(have content) []string {
	old := map[string]bool{}
	for name := range have.picks {
		_, wanted := want.picks[name]
		old[name] = !wanted
	}
	for _, name := range have.sets[setServices] {
		old[name] = false
	}
	maps.DeleteFunc(old, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(old))
}

// udpChange is what a write changed of services of UDP.
type udpChange struct {
	any     bool
	removed elements // of setLed
}

// udpSince is what of UDP differs from have.
func (want content) udpSince(have content) udpChange {
	c := udpChange{removed: elements{}}
	for _, set := range []string{setServices, setLed} {
		removed, added := want.sets[set].difference(have.sets[set])
		for _, key := range slices.Concat(removed, added) {
			c.any = c.any || isUDP(key)
		}
		for _, key := range removed {
			if set == setLed && isUDP(key) {
				c.removed[key] = ""
			}
		}
	}
	return c
}

func isUDP(key string) bool { return len(key) > 4 && key[4] == unix.IPPROTO_UDP }

// protocolNumbers are those of the protocols of services.
var protocolNumbers = map[string]byte{"TCP": unix.IPPROTO_TCP, "UDP": unix.IPPROTO_UDP, "SCTP": unix.IPPROTO_SCTP}

// serviceID is what packets to a service have in common.
type serviceID struct {
	addr     netip.Addr // zero: a node port
	port     uint16
	protocol byte
}

func (s Service) id() serviceID { return serviceID{s.Address, s.Port, protocolNumbers[s.Protocol]} }

// bytes is "ip daddr . meta l4proto . th dport" of a packet to the service; the address of a
// node port is 0.0.0.0.
func (id serviceID) bytes() string {
	addr := id.addr
	if !addr.IsValid() {
		addr = netip.IPv4Unspecified()
	}
	return string(addr.AsSlice()) + string([]byte{id.protocol, 0, 0, 0}) + portBytes(id.port)
}

func endpointBytes(e netip.AddrPort) string {
	return string(e.Addr().AsSlice()) + portBytes(e.Port())
}

func portBytes(port uint16) string { return string([]byte{byte(port >> 8), byte(port), 0, 0}) }

// numberBytes is as numgen writes a number into a register.
func numberBytes(i int) string { return string(binary.NativeEndian.AppendUint32(nil, uint32(i))) }
