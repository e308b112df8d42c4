package network

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables/expr"
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
	setOutside   = "outside"   // service → the chain that chooses an endpoint for clients outside, or drops
	setNear      = "near"      // service, number from 0 → endpoint to which clients outside are led
	setGuarded   = "guarded"   // service → the chain that drops what does not come from its sources
)

// content is what the table of services is to hold, apart from what never changes.
type content struct {
	shared map[string]sharedChain // by its name
	sets   map[string]elements
	near   elements // as setLed, of clients outside; it is in no set
}

// sharedChain is a chain that services share that ask for the same. It never changes: what would change it is in
// its name.
type sharedChain interface {
	name() string
	rules() [][]expr.Any
}

// elements are those of a set or map, key to value, as the kernel has both: each part is padded to
// 4 bytes. The value of setServices is the name of a chain.
type elements map[string]string

// pick is how an endpoint is chosen.
type pick struct {
	nodePort bool // the service has no address of its own
	near     bool // for clients outside, which keep their address
	among    int
	// affinity is in whole seconds; 0: there is none, and the chain does not depend on the endpoints.
	affinity  time.Duration
	endpoints []netip.AddrPort // with affinity
}

// The chains that end a connection.
const (
	refuse  = "refuse"  // rejects
	discard = "discard" // drops
)

// pickOf is how one of these endpoints of a service is chosen.
func pickOf(s Service, endpoints []netip.AddrPort) pick {
	p := pick{nodePort: !s.Address.IsValid(), among: len(endpoints)}
	if s.Affinity > 0 {
		p.affinity, p.endpoints = (s.Affinity + time.Second - 1).Truncate(time.Second), endpoints
	}
	return p
}

// name is that of the chain: "pick-3", of node ports "port-3", with "near-" before it for clients outside; with
// affinity "pick-3-10800s-" and a hash of the endpoints.
func (p pick) name() string {
	name := "pick"
	if p.nodePort {
		name = "port"
	}
	if p.near {
		name = "near-" + name
	}
	name += fmt.Sprintf("-%d", p.among)
	if p.affinity > 0 {
		sum := sha256.Sum256(fmt.Append(nil, p.endpoints))
		name += fmt.Sprintf("-%ds-%x", p.affinity/time.Second, sum[:8])
	}
	return name
}

// sources are the ranges from which connections are led.
type sources []netip.Prefix

// name is that of the chain: "from-" and a hash of the ranges.
func (s sources) name() string {
	sum := sha256.Sum256(fmt.Append(nil, []netip.Prefix(s)))
	return fmt.Sprintf("from-%x", sum[:8])
}

// contentOf is the whole content for these services.
func contentOf(services []Service) content {
	c := newContent()
	for _, s := range services {
		key := s.id().bytes()
		if len(s.Sources) > 0 {
			c.sets[setGuarded][key] = c.share(sources(s.Sources))
		}
		if len(s.Endpoints) == 0 {
			c.sets[setServices][key] = refuse
			continue
		}
		c.sets[setServices][key] = c.share(pickOf(s, s.Endpoints))
		for i, e := range s.Endpoints {
			endpoint := endpointBytes(e)
			c.sets[setEndpoints][key+numberBytes(i)] = endpoint
			c.sets[setLed][key+endpoint] = ""
			c.sets[setSelf][endpoint[:4]+endpoint[:4]] = ""
		}
		if s.OnlyNear {
			c.addNear(key, s)
		}
	}
	return c
}

// addNear adds where clients outside are led by a service that has endpoints.
func (want content) addNear(key string, s Service) {
	if len(s.Near) == 0 {
		want.sets[setOutside][key] = discard
		return
	}
	p := pickOf(s, s.Near)
	p.near = true
	want.sets[setOutside][key] = want.share(p)
	for i, e := range s.Near {
		endpoint := endpointBytes(e)
		want.sets[setNear][key+numberBytes(i)] = endpoint
		want.near[key+endpoint] = ""
	}
}

// share adds a chain, and returns its name.
func (want content) share(chain sharedChain) string {
	name := chain.name()
	want.shared[name] = chain
	return name
}

func newContent() content {
	c := content{shared: map[string]sharedChain{}, sets: map[string]elements{}, near: elements{}}
	for _, set := range []string{setServices, setEndpoints, setLed, setSelf, setOutside, setNear, setGuarded} {
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

// newShared are the chains that want has and have has not, by name.
func (want content) newShared(have content) []sharedChain {
	var out []sharedChain
	for _, name := range onlyIn(want.shared, have.shared) {
		out = append(out, want.shared[name])
	}
	return out
}

// oldShared are the names of chains of have that want has not, and to which no service of have leads: those to which
// one led until now are removed by the next write, as older kernels ask.
func (want content) oldShared(have content) []string {
	old := map[string]bool{}
	for name := range have.shared {
		_, wanted := want.shared[name]
		old[name] = !wanted
	}
	for _, set := range []string{setServices, setOutside, setGuarded} {
		for _, name := range have.sets[set] {
			old[name] = false
		}
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
	for _, set := range []string{setServices, setLed, setOutside, setNear} {
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
