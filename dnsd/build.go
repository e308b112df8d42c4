package dnsd

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Build makes the zone of a snapshot. What cannot be a DNS name is left out: one
// odd set never takes the names of the others away; with a domain that can be none
// the zone owns no name.
func Build(s Snapshot) *Zone {
	return (*Zone)(nil).Next(s)
}

// Next is Build(s) for less work: the sets that are in z as they are in s keep
// their names as packed, and of the others the list is changed where it differs.
// z may be nil, and does not change.
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
				t = newPart(p, next.domain, t)
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
	next.takeOthers(z, s.Others)
	return next
}

// takeOthers takes the sets of which only the names are known. A name of the parts that is one of
// theirs, too, is taken out: its answer would lack their members.
func (z *Zone) takeOthers(before *Zone, list []records.SetNames) {
	var o *others
	if before != nil {
		o = before.others
	}
	z.others = o.next(list)
	if z.others == nil {
		return
	}
	svc, _ := wireName("svc." + z.domain) // isDomain leaves room
	if z.nodes[svc] == nil {
		z.nodes[svc] = bare
	}
	for ref, t := range z.parts {
		if t.brief { // what is above its members' names
			for _, service := range []string{t.service, t.former} {
				if name := serviceKey(service, ref.Namespace) + svc; z.nodes[name] == bare {
					delete(z.nodes, name)
				}
			}
		}
		for _, service := range t.services {
			if slices.ContainsFunc(z.others.find([]byte(service)), func(o other) bool { return !z.follows(o.set) }) {
				z.hide(t, service+svc)
			}
		}
	}
}

// hide takes out a service of a part, by wire name, and what is below it, but for the members' names.
func (z *Zone) hide(t *part, service string) {
	for name := range t.nodes {
		below, ok := strings.CutSuffix(name, service)
		if !ok || below != "" && below[1] != '_' {
			continue
		}
		delete(z.nodes, name)
		if below != "" {
			delete(z.nodes, name[1+int(name[0]):])
		}
	}
}

// follows reports whether z has all of a set.
func (z *Zone) follows(ref spec.SetRef) bool {
	t := z.parts[ref]
	return t != nil && !t.brief
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
	if o := z.origin(z.domain); o != nil {
		o.domain = true
	}
	for _, name := range reverseOrigins(s.Services) {
		z.origin(name)
	}
	for _, name := range reverseOrigins(s.Members) {
		if o := z.origin(name); o != nil {
			o.members = true
		}
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

// origin gives the zone authority over everything below name. nil: it cannot be a name.
func (z *Zone) origin(name string) *origin {
	wire, ok := wireName(name)
	if !ok {
		return nil
	}
	soa := &dns.SOA{
		Hdr: header(name, dns.TypeSOA), Ns: z.server(), Mbox: "hostmaster." + z.domain,
		Serial: uint32(z.sequence.Rev), Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: ttl,
	}
	top := &origin{soa: soa, wire: packRR(soa)}
	z.origins[wire] = top
	n := &node{}
	n.add(soa)
	n.add(&dns.NS{Hdr: header(name, dns.TypeNS), Ns: z.server()})
	n.finish()
	z.put(wire, n)
	return top
}

// take puts the names of a part in. Outside of the members' range the zone has
// authority over each reverse name only by itself.
func (z *Zone) take(t *part) {
	for name, n := range t.nodes {
		z.put(name, n)
	}
	for name, n := range t.pointers {
		if top, _ := z.authority([]byte(name)); top == nil {
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
	if old := z.nodes[name]; old != nil {
		switch {
		case len(old.sets) > 0 && len(n.sets) > 0, len(old.asked) > 0 && len(n.asked) > 0:
			z.nodes[name] = union(old, n)
			return
		case len(old.sets) > 0:
			return
		}
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
