package dnsd

import (
	"net/netip"

	"github.com/miekg/dns"
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
	// Gateway is this node's DNS address, told as that of the zone's name server;
	// zero: the name server has no address.
	Gateway netip.Addr
	// Members is the range of members' addresses: inside it this server alone
	// knows who exists. Zero: only the addresses in Pictures are known.
	Members netip.Prefix
	// Pictures are the sets; their order does not matter.
	Pictures []spec.Picture
}

// Zone is all records of one Snapshot. It never changes and may be shared.
type Zone struct {
	sequence spec.Sequence
	origins  map[string]*dns.SOA // by canonical name: what this zone has authority over
	nodes    map[string]*node    // by canonical name; empty ones are declared names without records
}

// node is one name. It has few sets, so they are found by looking at each.
type node struct {
	sets []rrset
}

// rrset is the records of one type, and what to add when they are asked for.
type rrset struct {
	kind  uint16
	rrs   []dns.RR
	extra []dns.RR
}

// Sequence of the snapshot the zone was built from.
func (z *Zone) Sequence() spec.Sequence { return z.sequence }

// Owns reports whether name (in any spelling, with its final dot) lies in this
// zone: its absence here means that it does not exist.
func (z *Zone) Owns(name string) bool {
	return z.authority(dns.CanonicalName(name)) != nil
}

// authority finds the SOA of the closest origin above a canonical name, or nil.
func (z *Zone) authority(name string) *dns.SOA {
	for at, end := 0, false; !end; at, end = dns.NextLabel(name, at) {
		if soa, ok := z.origins[name[at:]]; ok {
			return soa
		}
	}
	return nil
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

// add appends a record, and what goes with it.
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
