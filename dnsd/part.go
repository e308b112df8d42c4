package dnsd

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/miekg/dns"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// part is the names of one set, as far as they come from it alone.
type part struct {
	// What the names were made from; names is its own, peers the snapshot's.
	service string
	former  string
	peers   []records.Peer
	names   []records.DNSName
	brief   bool // it has the names of members alone; of services there is no telling who is ready

	nodes    map[string]*node // below the domain, by wire name
	pointers map[string]*node // reverse names, by wire name
	services []string         // keys of all service names, as those of others
	made     map[string]madeMember
	asked    *atomic.Bool // since it was last reported; the set's parts share it, one after the other
}

// of reports whether the part is what newPart would make of p, in the same domain.
func (t *part) of(p records.Snapshot) bool {
	return t.brief == p.Brief && t.service == p.Service && t.former == p.Former && samePeers(t.peers, p.Peers) && reflect.DeepEqual(t.names, p.Names)
}

// samePeers looks at each only where they are not the same list.
func samePeers(a, b []records.Peer) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) || slices.Equal(a, b)
}

// newPart makes the names of a set and packs their answers. The part before it may be nil; the names of members that are as they were
// there are its own.
func newPart(p records.Snapshot, domain string, before *part) *part {
	t := &part{
		brief: p.Brief, service: p.Service, former: p.Former, peers: p.Peers, names: slices.Clone(p.Names),
		nodes: map[string]*node{}, pointers: map[string]*node{}, asked: new(atomic.Bool), made: make(map[string]madeMember, len(p.Peers)),
	}
	var made map[string]madeMember
	if before != nil {
		t.asked = before.asked
		if before.service == t.service {
			made = before.made
		}
	}
	for i := range t.names {
		t.names[i].Ports = slices.Clone(t.names[i].Ports)
	}
	base := "." + string(p.Ref.Namespace) + ".svc." + domain
	members := t.members(t.service, base, made)
	for _, m := range members {
		t.keep(&m, made[m.label])
	}
	former := t.members(t.former, base, nil)
	if p.Brief {
		t.dropServices(base)
	} else {
		t.serveAll(&p, base, members, former)
	}
	asked := []*atomic.Bool{t.asked}
	for _, named := range []map[string]*node{t.nodes, t.pointers} {
		for _, n := range named {
			if !n.finished { // those of the part before are answered from
				n.finish()
				n.asked = asked
			}
		}
	}
	return t
}

// dropServices takes out the names of services: they are unfollowed.
func (t *part) dropServices(base string) {
	for _, service := range []string{t.service, t.former} {
		if wire, ok := wireName(service + base); ok {
			delete(t.nodes, wire)
		}
	}
}

// serveAll adds all services of the set.
func (t *part) serveAll(set *records.Snapshot, base string, members, former []member) {
	inShort := records.SetNames{Ref: set.Ref, Service: t.service, Names: []string{t.former}}
	for _, n := range t.names {
		inShort.Names = append(inShort.Names, n.Name)
		switch {
		case !isLabel(n.Name):
		case n.Name == t.former: // whoever asks by the former name gets former names
			t.serve(n, n.Name+base, selected(set, &n, former))
		default:
			t.serve(n, n.Name+base, selected(set, &n, members))
		}
	}
	t.services = serviceKeys(&inShort)
}

// selected are the members that a service selects.
func selected(set *records.Snapshot, n *records.DNSName, members []member) []member {
	of := set.Selected(n)
	if of == nil {
		return members
	}
	return slices.DeleteFunc(slices.Clone(members), func(m member) bool { return !of(m.ordinal) })
}

// serve adds one service name with the members of the set: those that are ready,
// or all that have an address.
func (t *part) serve(service records.DNSName, owner string, members []member) {
	switch {
	case service.ExternalName != "":
		t.serveAlias(service.ExternalName, owner)
		return
	case service.Address.IsValid():
		t.serveAddress(service, owner)
		return
	case len(service.Endpoints) > 0:
		t.serveEndpoints(service.Endpoints, owner)
		return
	}
	n := declare(t.nodes, owner)
	if n == nil {
		return
	}
	shown := make([]member, 0, len(members))
	for _, m := range members {
		if m.addr.IsValid() && (m.ready || service.PublishNotReady) {
			shown = append(shown, m)
			n.add(addressRR(owner, m.addr))
		}
	}
	for _, port := range service.Ports {
		for _, m := range shown {
			t.servePort(port, owner, m)
		}
		if len(shown) == 0 {
			t.servePort(port, owner, member{})
		}
	}
}

// serveAddress adds a service name that has an address of its own: whoever is ready, it is the answer.
func (t *part) serveAddress(service records.DNSName, owner string) {
	n := declare(t.nodes, owner)
	if n == nil {
		return
	}
	own := member{name: owner, addr: service.Address.Unmap()}
	n.add(addressRR(owner, own.addr))
	addPointer(t.pointers, own.addr, owner)
	for _, port := range service.Ports {
		t.servePort(port, owner, own)
	}
}

// serveEndpoints adds a service name that resolves to endpoints, and a name of each below it, as Kubernetes has
// them: by its host's name, or by its address with - in place of the dots.
func (t *part) serveEndpoints(list []records.Endpoint, owner string) {
	n := declare(t.nodes, owner)
	if n == nil {
		return
	}
	for _, e := range list {
		host := cmp.Or(e.Host, strings.ReplaceAll(e.Address.String(), ".", "-"))
		m := member{name: host + "." + owner, addr: e.Address.Unmap()}
		own := declare(t.nodes, m.name)
		if !isLabel(host) || own == nil {
			continue
		}
		n.add(addressRR(owner, m.addr))
		own.add(addressRR(m.name, m.addr))
		t.servePort(spec.ServicePort{Name: e.PortName, Port: e.Port, Protocol: e.Protocol}, owner, m)
	}
}

// serveAlias makes owner the alias of a name. What cannot be a name is declared without a record.
func (t *part) serveAlias(name, owner string) {
	n, target := declare(t.nodes, owner), dns.CanonicalName(name)
	if _, ok := wireName(target); n != nil && ok {
		n.add(&dns.CNAME{Hdr: header(owner, dns.TypeCNAME), Target: target})
	}
}

// servePort adds to the name of a service's port that it is at m, or (without an address) declares it.
func (t *part) servePort(port spec.ServicePort, owner string, m member) {
	proto := strings.ToLower(cmp.Or(port.Protocol, "TCP"))
	if !isLabel(port.Name) || !isLabel(proto) || port.Port < 1 || port.Port > 65535 {
		return
	}
	name := "_" + port.Name + "._" + proto + "." + owner
	if n := declare(t.nodes, name); n != nil && m.addr.IsValid() {
		if m.own == nil {
			m.own = addressRR(m.name, m.addr)
		}
		n.add(&dns.SRV{Hdr: header(name, dns.TypeSRV), Weight: 100, Port: uint16(port.Port), Target: m.name}, m.own)
	}
}

// declare returns the node of a name, made if need be; nil: it cannot be a name.
func declare(nodes map[string]*node, name string) *node {
	wire, ok := wireName(name)
	if !ok {
		return nil
	}
	return declareWire(nodes, wire)
}

// declareWire is declare of a wire name. A node that is finished is answered from, and copied.
func declareWire(nodes map[string]*node, wire string) *node {
	switch n := nodes[wire]; {
	case n == nil:
		nodes[wire] = &node{}
	case n.finished:
		nodes[wire] = n.again()
	}
	return nodes[wire]
}

// addPointer adds the reverse record of an address, and returns its wire name.
func addPointer(pointers map[string]*node, addr netip.Addr, to string) string {
	owner := reverseName(addr, addr.BitLen())
	wire, _ := wireName(owner) // every address has one
	declareWire(pointers, wire).add(&dns.PTR{Hdr: header(owner, dns.TypePTR), Ptr: to})
	return wire
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

// reverseOrigins names the reverse zones that cover a range exactly: DNS can cut
// only at whole octets (IPv6: nibbles), so a /20 is sixteen zones of a /24 each.
func reverseOrigins(r netip.Prefix) []string {
	if !r.IsValid() || r.Bits() == 0 {
		return nil
	}
	r = netip.PrefixFrom(r.Addr().Unmap(), r.Bits()).Masked()
	step := 8
	if r.Addr().Is6() {
		step = 4
	}
	bits := (r.Bits() + step - 1) / step * step
	var names []string
	for i := range 1 << (bits - r.Bits()) {
		raw := r.Addr().AsSlice()
		raw[(bits-1)/8] |= byte(i << ((8 - bits%8) % 8))
		addr, _ := netip.AddrFromSlice(raw)
		names = append(names, reverseName(addr, bits))
	}
	return names
}

// reverseName is the in-addr.arpa or ip6.arpa name of the first bits of an
// address; bits are whole octets (IPv6: nibbles).
func reverseName(addr netip.Addr, bits int) string {
	name, _ := dns.ReverseAddr(addr.String()) // every address has one
	step := 8
	if addr.Is6() {
		step = 4
	}
	for range (addr.BitLen() - bits) / step {
		_, name, _ = strings.Cut(name, ".")
	}
	return name
}
