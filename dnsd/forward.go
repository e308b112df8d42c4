package dnsd

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// forwarder asks other resolvers.
type forwarder struct {
	upstreams []string
	timeout   time.Duration
	quota     *quota
	last      atomic.Int32 // the upstream that answered last is asked first
}

// fill puts an upstream's answer to req into m, which says SERVFAIL and stays so
// when none answers in time, or too many forwards are in progress, in all or of the client.
func (f *forwarder) fill(ctx context.Context, m, req *dns.Msg, from netip.Addr) {
	if !f.quota.acquire(from) {
		return
	}
	defer f.quota.release(from)
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()

	ask := &dns.Msg{MsgHdr: dns.MsgHdr{RecursionDesired: req.RecursionDesired, CheckingDisabled: req.CheckingDisabled}}
	ask.Question = []dns.Question{req.Question[0]}
	opt := req.IsEdns0()
	ask.SetEdns0(maxUDP, opt != nil && opt.Do())

	first := int(f.last.Load())
	for i := range f.upstreams {
		at := (first + i) % len(f.upstreams)
		in := f.exchange(ctx, ask, f.upstreams[at], len(f.upstreams)-i)
		if in == nil {
			continue
		}
		take(m, in)
		if in.Rcode != dns.RcodeServerFailure && in.Rcode != dns.RcodeRefused {
			f.last.Store(int32(at))
			return
		}
	}
}

// exchange asks one upstream, over TCP when its answer does not fit UDP. It takes
// its part of the time that is left for so many upstreams. nil: no usable answer.
func (f *forwarder) exchange(ctx context.Context, ask *dns.Msg, upstream string, left int) *dns.Msg {
	deadline, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
	defer cancel()
	for _, network := range []string{"udp", "tcp"} {
		in, err := exchangeOnce(ctx, ask, network, upstream)
		if err != nil || !answers(in, ask) || in.Rcode > 0xF { // extended codes are about our EDNS
			return nil
		}
		if !in.Truncated {
			return in
		}
	}
	return nil
}

// exchangeOnce asks under a new id from a new port. The library heeds the
// deadline of ctx only, so its end closes the connection.
func exchangeOnce(ctx context.Context, ask *dns.Msg, network, upstream string) (*dns.Msg, error) {
	ask.Id = dns.Id()
	deadline, _ := ctx.Deadline()
	client := dns.Client{Net: network, UDPSize: maxUDP, Timeout: time.Until(deadline)}
	conn, err := client.DialContext(ctx, upstream)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	in, _, err := client.ExchangeWithConnContext(ctx, ask, conn)
	return in, err
}

// answers reports whether in is an answer to this very question.
func answers(in, ask *dns.Msg) bool {
	return in.Response && in.Id == ask.Id && len(in.Question) == 1 &&
		in.Question[0].Qtype == ask.Question[0].Qtype &&
		in.Question[0].Qclass == ask.Question[0].Qclass &&
		strings.EqualFold(in.Question[0].Name, ask.Question[0].Name)
}

// take copies what an upstream said; EDNS is between neighbours and stays ours.
func take(m, in *dns.Msg) {
	m.Rcode = in.Rcode
	m.AuthenticatedData = in.AuthenticatedData
	m.Answer, m.Ns = in.Answer, in.Ns
	var extra []dns.RR
	for _, rr := range in.Extra {
		if rr.Header().Rrtype != dns.TypeOPT {
			extra = append(extra, rr)
		}
	}
	for _, rr := range m.Extra {
		if rr.Header().Rrtype == dns.TypeOPT {
			extra = append(extra, rr)
		}
	}
	m.Extra = extra
}

// HostUpstreams reads the resolvers of a resolv.conf.
func HostUpstreams(path string) ([]string, error) {
	conf, err := dns.ClientConfigFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("read resolvers of %s: %w", path, err)
	}
	return conf.Servers, nil
}

// usableUpstreams completes ports and leaves out our own addresses, which would
// ask us again without end.
func usableUpstreams(upstreams []string, listen []netip.AddrPort) ([]string, error) {
	var out []string
	for _, u := range upstreams {
		addr, err := netip.ParseAddrPort(u)
		if err != nil {
			ip, err := netip.ParseAddr(strings.Trim(u, "[]"))
			if err != nil {
				return nil, fmt.Errorf("dns: upstream %q is not an address; write 192.0.2.1 or 192.0.2.1:53", u)
			}
			addr = netip.AddrPortFrom(ip, 53)
		}
		if !loops(addr, listen) {
			out = append(out, addr.String())
		}
	}
	return out, nil
}

// loops reports whether a question to upstream would come back to us.
func loops(upstream netip.AddrPort, listen []netip.AddrPort) bool {
	for _, l := range listen {
		if l.Port() != upstream.Port() {
			continue
		}
		if l.Addr() == upstream.Addr() || upstream.Addr().IsUnspecified() {
			return true
		}
		if l.Addr().IsUnspecified() && (upstream.Addr().IsLoopback() || slices.Contains(hostAddresses(), upstream.Addr())) {
			return true
		}
	}
	return false
}

// quota limits the forwards in progress, in all and for each client, so that a client that
// sends endless queries leaves some to others.
type quota struct {
	most, each int

	mu   sync.Mutex
	used int
	by   map[netip.Addr]int // clients with forwards in progress
}

func newQuota(most, each int) *quota {
	return &quota{most: most, each: each, by: map[netip.Addr]int{}}
}

// acquire counts one more forward of client; false: the quota is used up. Whoever gets true
// must release it.
func (q *quota) acquire(client netip.Addr) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used >= q.most || q.by[client] >= q.each {
		return false
	}
	q.used++
	q.by[client]++
	return true
}

func (q *quota) release(client netip.Addr) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used--
	q.by[client]--
	if q.by[client] == 0 {
		delete(q.by, client)
	}
}

// near says who is served as a neighbour: members, and this host under any of
// its addresses.
type near struct {
	members netip.Prefix
	list    func() []netip.Addr // the host's addresses
	own     atomic.Pointer[ownAddresses]
}

// ownAddresses are those of this host as of a moment.
type ownAddresses struct {
	addrs []netip.Addr
	until time.Time // then they are read again; they are not read for each query
}

// has reports whether addr is near; an invalid address is not.
func (n *near) has(addr netip.Addr) bool {
	if !addr.IsValid() {
		return false
	}
	if addr.IsLoopback() || n.members.Contains(addr) {
		return true
	}
	own := n.own.Load()
	if own == nil || time.Now().After(own.until) {
		own = &ownAddresses{addrs: n.list(), until: time.Now().Add(time.Second)}
		n.own.Store(own)
	}
	return slices.Contains(own.addrs, addr)
}

// clientAddr is the address of the other end of a connection; zero if it has none.
func clientAddr(from net.Addr) netip.Addr {
	var addr netip.Addr
	switch from := from.(type) {
	case *net.UDPAddr:
		addr = from.AddrPort().Addr()
	case *net.TCPAddr:
		addr = from.AddrPort().Addr()
	}
	return addr.Unmap().WithZone("")
}

// hostAddresses are this host's addresses; none when they cannot be read.
func hostAddresses() []netip.Addr {
	own, _ := net.InterfaceAddrs()
	var addrs []netip.Addr
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			addrs = append(addrs, p.Addr())
		}
	}
	return addrs
}
