package dnsd

import (
	"slices"

	"github.com/miekg/dns"
)

// Transport is how a question arrived; it limits the size of the answer.
type Transport int

// The transports.
const (
	UDP Transport = iota
	TCP
)

// maxUDP is the largest UDP answer we send and advertise, in bytes: what fits
// into every path's MTU (DNS flag day 2020).
const maxUDP = 1232

// Answer answers one question. It never fails and never changes req: what cannot
// be answered gets an error code, an unfollowed name SERVFAIL. The answer is within the size that the client and the
// transport allow. It shares records with the zone: do not change them. An alias is answered without
// what its target has.
func (z *Zone) Answer(req *dns.Msg, via Transport) *dns.Msg {
	m := reply(req)
	if m.Rcode == dns.RcodeSuccess {
		switch said, _ := z.fill(m); said {
		case foreign:
			m.Rcode = dns.RcodeRefused
		case unknown:
			m.Rcode = dns.RcodeServerFailure
		}
	}
	fit(m, req, via)
	return m
}

// reply starts an answer to req: id, flags, question and EDNS. For a question that cannot
// be answered here, it sets the error code.
func reply(req *dns.Msg) *dns.Msg {
	m := &dns.Msg{MsgHdr: dns.MsgHdr{
		Id: req.Id, Response: true, Opcode: req.Opcode,
		RecursionDesired: req.RecursionDesired, RecursionAvailable: true,
		CheckingDisabled: req.CheckingDisabled,
	}}
	if len(req.Question) > 0 {
		m.Question = req.Question[:1:1]
	}
	if opt := req.IsEdns0(); opt != nil {
		m.Extra = []dns.RR{optRR(opt.Do())}
		if opt.Version() != 0 {
			m.Rcode = dns.RcodeBadVers
			return m
		}
	}
	switch {
	case req.Opcode != dns.OpcodeQuery:
		m.Rcode = dns.RcodeNotImplemented
	case len(req.Question) != 1:
		m.Rcode = dns.RcodeFormatError
	case req.Question[0].Qclass != dns.ClassINET,
		req.Question[0].Qtype == dns.TypeAXFR, req.Question[0].Qtype == dns.TypeIXFR:
		m.Rcode = dns.RcodeRefused
	}
	return m
}

// said is what a zone has to a question.
type said int

const (
	// answered, if only that there is nothing.
	answered said = iota
	// foreign: the name is not below a domain of the zone.
	foreign
	// unknown: the name is unfollowed.
	unknown
	// aliased: the name is the alias of another one, whose records were asked for. The answer is that.
	aliased
)

// fill looks the question up in the zone. Unless it is answered, nothing is changed. What is
// unknown comes with what must be known.
func (z *Zone) fill(m *dns.Msg) (said, Interest) {
	q := m.Question[0]
	name, ok := wireName(q.Name)
	var top *origin
	var below int
	if ok {
		top, below = z.authority([]byte(name))
	}
	if top == nil {
		return foreign, Interest{}
	}
	n := z.nodes[name]
	if n == nil {
		what, i := z.missing([]byte(name), top, below)
		if what == unfollowed {
			return unknown, i
		}
		deny(m, top, what)
		return answered, Interest{}
	}
	n.mark()
	m.Authoritative = true
	set := n.find(q.Qtype)
	if q.Qtype == dns.TypeANY && len(n.sets) > 0 {
		set = &n.sets[0] // one of them is enough (RFC 8482)
	}
	said := answered
	if set == nil {
		set, said = n.find(dns.TypeCNAME), aliased
	}
	if set == nil {
		m.Ns = []dns.RR{top.soa}
		return answered, Interest{}
	}
	m.Answer = spelled(set.rrs, q.Name)
	if len(set.extra) > 0 {
		m.Extra = slices.Concat(set.extra, m.Extra)
	}
	return said, Interest{}
}

// deny says that a name is absent, or empty.
func deny(m *dns.Msg, top *origin, what missing) {
	m.Authoritative = true
	if what == absent {
		m.Rcode = dns.RcodeNameError
	}
	m.Ns = []dns.RR{top.soa}
}

// spelled returns the records with the owner name in the client's spelling: some resolvers
// compare it exactly, to detect forged answers.
func spelled(rrs []dns.RR, name string) []dns.RR {
	if rrs[0].Header().Name == name {
		return rrs
	}
	out := make([]dns.RR, len(rrs))
	for i, rr := range rrs {
		out[i] = dns.Copy(rr)
		out[i].Header().Name = name
	}
	return out
}

// fit cuts the answer to what client and transport accept. Additional records are removed
// first, without setting TC: a client that needs them can ask (RFC 2181, 9).
func fit(m, req *dns.Msg, via Transport) {
	limit := dns.MaxMsgSize
	opt := req.IsEdns0()
	if via == UDP {
		limit = dns.MinMsgSize
		if opt != nil {
			limit = udpLimit(opt.UDPSize())
		}
	}
	if m.Len() <= limit {
		return
	}
	m.Compress = true
	if m.Len() <= limit {
		return
	}
	m.Extra = nil
	if opt != nil {
		m.Extra = []dns.RR{optRR(opt.Do())}
	}
	m.Truncate(limit)
}

func optRR(do bool) *dns.OPT {
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	opt.SetUDPSize(maxUDP)
	if do {
		opt.SetDo()
	}
	return opt
}
