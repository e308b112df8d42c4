package dnsd

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"github.com/stead-project/stead/spec"
)

// Build makes the zone of a snapshot. What cannot be a DNS name is left out: one
// odd set never takes the names of the others away; with a domain that can be none
// the zone owns no name.
func Build(s Snapshot) *Zone {
	domain := dns.CanonicalName(cmp.Or(s.Domain, DefaultDomain))
	b := builder{
		domain: domain,
		ns:     "ns.dns." + domain,
		zone: &Zone{
			sequence: s.Sequence,
			origins:  map[string]*dns.SOA{},
			nodes:    map[string]*node{},
		},
		seen: map[record]bool{},
	}
	if !isDomain(domain) {
		return b.zone
	}
	b.origin(domain)
	b.name(b.ns)
	b.address(b.ns, s.Gateway)
	for _, name := range reverseOrigins(s.Members) {
		b.origin(name)
	}
	b.pointer(s.Gateway, b.ns)

	pictures := slices.Clone(s.Pictures)
	slices.SortStableFunc(pictures, func(x, y spec.Picture) int {
		return strings.Compare(x.Ref.String(), y.Ref.String())
	})
	for _, p := range pictures {
		if !p.Gone && isLabel(string(p.Ref.Namespace)) {
			b.picture(p)
		}
	}
	return b.zone
}

// builder fills a zone that nobody else sees yet.
type builder struct {
	zone   *Zone
	domain string // canonical
	ns     string // the zone's name server
	seen   map[record]bool
}

// record identifies what must not be there twice when sets share a name.
type record struct {
	owner string
	addr  netip.Addr
	to    string
	port  uint16
}

// picture adds the members and service names of one set.
func (b *builder) picture(p spec.Picture) {
	base := "." + string(p.Ref.Namespace) + ".svc." + b.domain
	members := make([]member, 0, len(p.Peers))
	for _, peer := range p.Peers {
		if !isLabel(peer.Name) || !isLabel(p.Service) {
			continue
		}
		m := member{name: peer.Name + "." + p.Service + base, addr: peer.Address.Unmap(), ready: peer.Ready}
		if !b.name(m.name) {
			continue
		}
		b.address(m.name, m.addr)
		b.pointer(m.addr, m.name)
		members = append(members, m)
	}
	if isLabel(p.Service) {
		b.name(p.Service + base)
	}
	for _, n := range p.Names {
		if isLabel(n.Name) && b.name(n.Name+base) {
			b.service(n, n.Name+base, members)
		}
	}
}

type member struct {
	name  string
	addr  netip.Addr
	ready bool
}

// service adds one service name with the members of one set: those that are
// ready, or all that have an address.
func (b *builder) service(n spec.DNSName, owner string, members []member) {
	shown := make([]member, 0, len(members))
	for _, m := range members {
		if m.addr.IsValid() && (m.ready || n.PublishNotReady) {
			shown = append(shown, m)
			b.address(owner, m.addr)
		}
	}
	for _, port := range n.Ports {
		proto := strings.ToLower(cmp.Or(port.Protocol, "TCP"))
		if !isLabel(port.Name) || !isLabel(proto) || port.Port < 1 || port.Port > 65535 {
			continue
		}
		name := "_" + port.Name + "._" + proto + "." + owner
		if !b.name(name) {
			continue
		}
		for _, m := range shown {
			b.target(name, uint16(port.Port), m)
		}
	}
}

// origin gives the zone authority over everything below name.
func (b *builder) origin(name string) {
	if b.zone.origins[name] != nil {
		return
	}
	soa := &dns.SOA{
		Hdr: header(name, dns.TypeSOA), Ns: b.ns, Mbox: "hostmaster." + b.domain,
		Serial: uint32(b.zone.sequence.Rev), Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: ttl,
	}
	b.zone.origins[name] = soa
	b.name(name)
	n := b.zone.nodes[name]
	n.add(soa)
	n.add(&dns.NS{Hdr: header(name, dns.TypeNS), Ns: b.ns})
}

// name declares a name and all above it up to its origin; false: it can be none.
func (b *builder) name(name string) bool {
	if _, ok := dns.IsDomainName(name); !ok || b.zone.authority(name) == nil {
		return false
	}
	for at, end := 0, false; !end && b.zone.nodes[name[at:]] == nil; at, end = dns.NextLabel(name, at) {
		b.zone.nodes[name[at:]] = &node{}
		if b.zone.origins[name[at:]] != nil {
			break
		}
	}
	return true
}

// address adds an A or AAAA record to a declared name; an invalid address adds none.
func (b *builder) address(owner string, addr netip.Addr) {
	addr = addr.Unmap()
	if !addr.IsValid() || b.twice(record{owner: owner, addr: addr}) {
		return
	}
	b.zone.nodes[owner].add(addressRR(owner, addr))
}

// target adds an SRV record of a member to a declared name.
func (b *builder) target(owner string, port uint16, m member) {
	if b.twice(record{owner: owner, to: m.name, port: port}) {
		return
	}
	srv := &dns.SRV{Hdr: header(owner, dns.TypeSRV), Weight: 100, Port: port, Target: m.name}
	b.zone.nodes[owner].add(srv, addressRR(m.name, m.addr))
}

// pointer adds the reverse record of an address. Outside of the members' range
// the zone has authority over that one address only.
func (b *builder) pointer(addr netip.Addr, to string) {
	addr = addr.Unmap()
	if !addr.IsValid() {
		return
	}
	owner := reverseName(addr, addr.BitLen())
	if b.zone.authority(owner) == nil {
		b.origin(owner)
	}
	b.name(owner)
	if !b.twice(record{owner: owner, to: to}) {
		b.zone.nodes[owner].add(&dns.PTR{Hdr: header(owner, dns.TypePTR), Ptr: to})
	}
}

func (b *builder) twice(r record) bool {
	if b.seen[r] {
		return true
	}
	b.seen[r] = true
	return false
}

func header(owner string, kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

func addressRR(owner string, addr netip.Addr) dns.RR {
	if addr.Is4() {
		return &dns.A{Hdr: header(owner, dns.TypeA), A: addr.AsSlice()}
	}
	return &dns.AAAA{Hdr: header(owner, dns.TypeAAAA), AAAA: addr.AsSlice()}
}

// isDomain reports whether s, canonical, is made of labels and leaves room for
// the names below it.
func isDomain(s string) bool {
	s, dotted := strings.CutSuffix(s, ".")
	for label := range strings.SplitSeq(s, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return dotted && len(s) <= 128
}

// isLabel reports whether s is one label of lower-case letters, digits, - and _.
func isLabel(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
