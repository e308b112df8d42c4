package dnsd

import (
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/miekg/dns"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// DefaultDomain is used where a Snapshot names none.
const DefaultDomain = "cluster.local"

// ttl of every record, in seconds; also how long a negative answer may be kept.
const ttl = 1

// Snapshot is all a Zone is made from.
type Snapshot struct {
	// Domain of the cluster, with or without the final dot; zero: DefaultDomain.
	Domain string
	// Sequence of the snapshot; its revision is the serial of the SOA.
	Sequence spec.Sequence
	// Gateway is this node's DNS address, given as that of the zone's name server;
	// zero: the name server has no address.
	Gateway netip.Addr
	// Members is the range of members' addresses: inside it this server alone
	// knows who exists. Zero: only the addresses in Pictures are known.
	Members netip.Prefix
	// Services is the range of services' addresses: inside it, too, this server alone knows who exists.
	Services netip.Prefix
	// Pictures are the sets; their order does not matter. Zones keep their peers, which must not change any
	// more: a set costs the next zone nothing when it has the same list. Of one in brief the members are answered; it is
	// among Others, too.
	Pictures []records.Snapshot
	// Others are the sets that exist beside those, in any order. A set that is in neither does not
	// exist; one that is in both is answered from Pictures, as far as they go. Zones keep the slice, which must not
	// change any more. Given again as it is, or in the order of Ref, it costs the next zone less.
	Others []records.SetNames
}

// Zone is all records of one Snapshot. It never changes and may be shared, also
// by parts: the zone of the next snapshot keeps the parts that are as they were.
//
// Names are kept as on the wire (a length before each label), in lower case.
type Zone struct {
	sequence spec.Sequence
	domain   string // canonical
	parts    map[spec.SetRef]*part
	others   *others            // nil: the parts are all sets that there are
	origins  map[string]*origin // what this zone has authority over
	nodes    map[string]*node   // declared names, also those without records
}

// origin is the top of what the zone has authority over.
type origin struct {
	soa  *dns.SOA
	wire []byte // the same, as authority of a negative answer

	domain  bool // it is the domain of the cluster
	members bool // it has reverse names of members' addresses
}

// Sequence of the snapshot the zone was built from.
func (z *Zone) Sequence() spec.Sequence { return z.sequence }

// authority finds the closest origin above a wire name, or nil, and how many bytes of the name are below it.
func (z *Zone) authority(name []byte) (top *origin, below int) {
	for at := 0; name[at] != 0; at += 1 + int(name[at]) {
		if o, ok := z.origins[string(name[at:])]; ok {
			return o, at
		}
	}
	return nil, 0
}

// wireName is a name in wire format and lower case; false: the name is not valid.
func wireName(name string) (string, bool) {
	var buf [256]byte
	end, err := dns.PackDomainName(dns.CanonicalName(name), buf[:255], 0, nil, false)
	return string(buf[:end]), err == nil
}

// node is one name. It has few sets, so they are found by looking at each.
type node struct {
	sets     []rrset
	asked    []*atomic.Bool // of the parts that it is from
	finished bool           // it is packed, and may be answered from: it never changes any more
}

// again is a copy that is not finished.
func (n *node) again() *node {
	c := &node{sets: slices.Clone(n.sets)}
	for i := range c.sets {
		c.sets[i].rrs, c.sets[i].extra = slices.Clone(c.sets[i].rrs), slices.Clone(c.sets[i].extra)
	}
	return c
}

// mark notes that somebody asks for the name.
func (n *node) mark() {
	for _, asked := range n.asked {
		if !asked.Load() { // rather than write each time what all cores read
			asked.Store(true)
		}
	}
}

// rrset is the records of one type, and what to add when they are asked for.
type rrset struct {
	kind  uint16
	rrs   []dns.RR
	extra []dns.RR // none, or one for each of rrs
	wire  []byte   // rrs and extra, to follow a question of this name; nil: not for UDP
}

// find returns the set of one type, or nil.
func (n *node) find(kind uint16) *rrset {
	for i := range n.sets {
		if n.sets[i].kind == kind {
			return &n.sets[i]
		}
	}
	return nil
}

// add appends a record, and what goes with it. The node must be finished before
// anyone else sees it.
func (n *node) add(rr dns.RR, extra ...dns.RR) {
	kind := rr.Header().Rrtype
	set := n.find(kind)
	if set == nil {
		n.sets = append(n.sets, rrset{kind: kind})
		set = &n.sets[len(n.sets)-1]
	}
	set.rrs = append(set.rrs, rr)
	set.extra = append(set.extra, extra...)
}

// finish drops records that are there twice and packs the rest.
func (n *node) finish() {
	n.finished = true
	for i := range n.sets {
		n.sets[i].dedupe()
		n.sets[i].pack()
	}
}

// record identifies what must not be there twice in one set of records.
type record struct {
	addr netip.Addr
	to   string
	port uint16
}

func identify(rr dns.RR) record {
	switch rr := rr.(type) {
	case *dns.A:
		addr, _ := netip.AddrFromSlice(rr.A)
		return record{addr: addr}
	case *dns.AAAA:
		addr, _ := netip.AddrFromSlice(rr.AAAA)
		return record{addr: addr}
	case *dns.SRV:
		return record{to: rr.Target, port: rr.Port}
	case *dns.PTR:
		return record{to: rr.Ptr}
	case *dns.CNAME:
		return record{to: rr.Target}
	}
	return record{} // SOA, NS: one of each
}

func (s *rrset) dedupe() {
	if len(s.rrs) < 2 {
		return
	}
	seen := make(map[record]bool, len(s.rrs))
	kept := 0
	for i, rr := range s.rrs {
		if r := identify(rr); !seen[r] {
			seen[r] = true
			s.rrs[kept] = rr
			if len(s.extra) > 0 {
				s.extra[kept] = s.extra[i]
			}
			kept++
		}
	}
	s.rrs = s.rrs[:kept]
	if len(s.extra) > 0 {
		s.extra = s.extra[:kept]
	}
}

// union is a new node with the records of both.
func union(a, b *node) *node {
	u := &node{asked: slices.Concat(a.asked, b.asked)}
	for _, n := range []*node{a, b} {
		for _, set := range n.sets {
			for i, rr := range set.rrs {
				if len(set.extra) > 0 {
					u.add(rr, set.extra[i])
				} else {
					u.add(rr)
				}
			}
		}
	}
	u.finish()
	return u
}
