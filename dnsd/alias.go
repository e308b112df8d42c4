package dnsd

import (
	"context"
	"net/netip"

	"github.com/miekg/dns"
)

// maxAliases bounds how many aliases of aliases an answer follows.
const maxAliases = 8

// resolve adds to an answer that is an alias the records of its target, as resolvers expect that do not look on by
// themselves: those of the zone, or those that an upstream has. The whole is SERVFAIL when the target's are; for who
// is not served other names the alias is all.
func (s *Server) resolve(ctx context.Context, m, req *dns.Msg, from netip.Addr) {
	for range maxAliases {
		alias, ok := m.Answer[len(m.Answer)-1].(*dns.CNAME)
		if !ok {
			return
		}
		next := *req
		next.Question = []dns.Question{{Name: alias.Target, Qtype: req.Question[0].Qtype, Qclass: dns.ClassINET}}
		out := &dns.Msg{Question: next.Question}
		said := s.lookUp(ctx, out, &next, from)
		switch {
		case said == foreign && !s.near.has(from):
			return
		case out.Rcode != dns.RcodeSuccess && out.Rcode != dns.RcodeNameError:
			m.Answer, m.Rcode = nil, dns.RcodeServerFailure
			return
		}
		m.Rcode = out.Rcode
		m.Answer, m.Ns, m.Extra = append(m.Answer[:len(m.Answer):len(m.Answer)], out.Answer...), out.Ns, append(out.Extra, m.Extra...)
		if said != aliased {
			m.Authoritative = m.Authoritative && said != foreign
			return
		}
	}
	m.Answer, m.Rcode = nil, dns.RcodeServerFailure
}
