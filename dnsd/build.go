package dnsd

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"github.com/stead-project/stead/spec"
)

// Build makes the zone of a snapshot. What cannot be a DNS name is left out: one
// odd set never takes the names of the others away; with a domain that can be none
// the zone owns no name.
func Build(s Snapshot) *Zone {
	return (*Zone)(nil).Next(s)
}

// Next is Build(s) for less work: the sets that are in z as they are in s keep
// their names as packed. z may be nil, and does not change.
func (z *Zone) Next(s Snapshot) *Zone {
	next := &Zone{
		sequence: s.Sequence,
		domain:   dns.CanonicalName(cmp.Or(s.Domain, DefaultDomain)),
		parts:    make(map[spec.SetRef]*part, len(s.Pictures)),
		origins:  map[string]*origin{},
	}
	if !isDomain(next.domain) {
		return next
	}
	room := 64
	for _, p := range s.Pictures {
		if !p.Gone && isLabel(string(p.Ref.Namespace)) {
			t := z.part(p.Ref, next.domain)
			if t == nil || !t.of(p) {
				t = newPart(p, next.domain)
			}
			next.parts[p.Ref] = t
			room += len(t.nodes) + len(t.pointers)
		}
	}
	next.nodes = make(map[string]*node, room)
	next.frame(s)
	refs := slices.SortedFunc(maps.Keys(next.parts), func(x, y spec.SetRef) int {
		return strings.Compare(x.String(), y.String())
	})
	for _, ref := range refs {
		next.take(next.parts[ref])
	}
	return next
}

// part is what z has of a set, made for a domain; nil: nothing.
func (z *Zone) part(ref spec.SetRef, domain string) *part {
	if z == nil || z.domain != domain {
		return nil
	}
	return z.parts[ref]
}

// frame adds what does not come from sets: the tops of the zone, the name server
// and its address.
func (z *Zone) frame(s Snapshot) {
	z.origin(z.domain)
	for _, name := range reverseOrigins(s.Members) {
		z.origin(name)
	}
	own := &part{nodes: map[string]*node{}, pointers: map[string]*node{}}
	n := declare(own.nodes, z.server())
	if addr := s.Gateway.Unmap(); addr.IsValid() {
		n.add(addressRR(z.server(), addr))
		addPointer(own.pointers, addr, z.server())
	}
	for _, named := range []map[string]*node{own.nodes, own.pointers} {
		for _, n := range named {
			n.finish()
		}
	}
	z.take(own)
}

// server is the name of the zone's name server.
func (z *Zone) server() string { return "ns.dns." + z.domain }

// origin gives the zone authority over everything below name.
func (z *Zone) origin(name string) {
	wire, ok := wireName(name)
	if !ok {
		return
	}
	soa := &dns.SOA{
		Hdr: header(name, dns.TypeSOA), Ns: z.server(), Mbox: "hostmaster." + z.domain,
		Serial: uint32(z.sequence.Rev), Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: ttl,
	}
	z.origins[wire] = &origin{soa: soa, wire: packRR(soa)}
	n := &node{}
	n.add(soa)
	n.add(&dns.NS{Hdr: header(name, dns.TypeNS), Ns: z.server()})
	n.finish()
	z.put(wire, n)
}

// take puts the names of a part in. Outside of the members' range the zone has
// authority over each reverse name only by itself.
func (z *Zone) take(t *part) {
	for name, n := range t.nodes {
		z.put(name, n)
	}
	for name, n := range t.pointers {
		if z.authority([]byte(name)) == nil {
			text, _, _ := dns.UnpackDomainName([]byte(name), 0) // packed by us
			z.origin(text)
		}
		z.put(name, n)
	}
}

// bare is a declared name without records.
var bare = &node{}

// put adds a name with its records, and declares all above it up to its origin.
// A name of two sets has the records of both.
func (z *Zone) put(name string, n *node) {
	if old := z.nodes[name]; old != nil && len(old.sets) > 0 {
		if len(n.sets) > 0 {
			z.nodes[name] = union(old, n)
		}
		return
	}
	z.nodes[name] = n
	for z.origins[name] == nil {
		name = name[1+int(name[0]):]
		if z.nodes[name] != nil {
			return
		}
		z.nodes[name] = bare
	}
}
