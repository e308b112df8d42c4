// Package dnsd answers the names of sets and members, and forwards the rest.
//
// A Zone is an immutable value: Build makes it from the pictures of all sets, a
// Server swaps it by one pointer, and Answer looks names up in it without a lock.
// Build and Answer are pure; only the Server does I/O.
//
// The names, under the domain (default cluster.local):
//
//	<set>-<n>.<service>.<ns>.svc   A or AAAA of a member, from the moment it has an address
//	<service>.<ns>.svc             the addresses of the ready members (of all, when published so), the
//	                               service's own address, or CNAME of type ExternalName
//	_<port>._<proto>.<service>...  SRV of each named port, with the targets' addresses
//	d.c.b.a.in-addr.arpa           PTR to the member
//	the domain itself              SOA (serial: store revision) and NS
//
// A declared name without a record of the type asked for is NODATA; an undeclared
// one is NXDOMAIN; both carry the SOA. Every TTL, also the negative one, is 1 s.
//
// Of sets without a member on the node a snapshot may have the names only (Others). A name
// that one of them may have is unfollowed: a question for it waits, at most 2 s, until
// Config.Follow has put the set in the zone in use; otherwise it is SERVFAIL.
package dnsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"github.com/stead-project/stead/spec"
)

// Config of a Server.
type Config struct {
	// Listen are the addresses to answer on, UDP and TCP each; port 0 picks one.
	Listen []netip.AddrPort
	// Upstreams are resolvers for names that are not ours, asked in this order,
	// as host:port or plain address (port 53). Our own addresses are
	// skipped. None: such names are answered SERVFAIL at once.
	Upstreams []string
	// Members is the range of addresses whose questions for other names are
	// forwarded, beside loopback's and this host's own; all others are REFUSED
	// those, because others could otherwise send queries in the name of this host. Zero: no further range.
	Members netip.Prefix
	// UpstreamTimeout bounds one forwarded question over all upstreams; zero: 4s,
	// below the 5 s after which resolvers ask again.
	UpstreamTimeout time.Duration
	// MaxForwards limits the forwards in progress; those beyond are
	// answered SERVFAIL at once. Zero: 256.
	MaxForwards int
	// MaxForwardsEach limits those of one client in the same way. Zero: 32.
	MaxForwardsEach int
	// Follow is called for an unfollowed name and returns when the zone in use shows all that there is of
	// the interest: all of a set, or the set that has an address, if any has. It is called once at
	// a time for each interest, from goroutines of its own; each call has two seconds, and
	// must return when its ctx ends. nil: unfollowed names are answered SERVFAIL at once.
	Follow func(context.Context, Interest) error
	// Asked is called for each set of the zone in use that was asked for, by name or address of its
	// members or services, within a minute after that, and at most once a minute. It must not block.
	// nil: nobody wants to know.
	Asked func(spec.SetRef)
	// MaxConns bounds the open TCP connections of each address; zero: 256.
	MaxConns int
	// Grace is how long questions under way may take once Run is to end; zero: they are answered SERVFAIL
	// then, unless the zone has the answer. Set, it also lets what a TCP client has sent arrive.
	Grace  time.Duration
	Logger *slog.Logger // nil: silent

	hold time.Duration // zero: holdTime; tests set others
}

// Server answers from the zone it was last given. Its methods may be called from
// any goroutine.
type Server struct {
	cfg     Config
	zone    atomic.Pointer[Zone]
	forward *forwarder // nil: no upstream
	follows *follows   // nil: unfollowed names remain so
	near    near       // whose questions are forwarded
	sockets []*pair
	slow    tally                    // of all but the packed answers
	packed  atomic.Pointer[[]*tally] // one a socket; nil before Run
}

// New checks the configuration. The server listens only after Listen or Run.
func New(cfg Config) (*Server, error) {
	if len(cfg.Listen) == 0 {
		return nil, errors.New("dns: no address to listen on")
	}
	for _, addr := range cfg.Listen {
		if !addr.IsValid() {
			return nil, fmt.Errorf("dns: %v is not an address and port to listen on", addr)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.UpstreamTimeout = orDefault(cfg.UpstreamTimeout, 4*time.Second)
	cfg.MaxForwards = orDefault(cfg.MaxForwards, 256)
	cfg.MaxForwardsEach = orDefault(cfg.MaxForwardsEach, 32)
	cfg.MaxConns = orDefault(cfg.MaxConns, 256)
	upstreams, err := usableUpstreams(cfg.Upstreams, cfg.Listen)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, near: near{members: cfg.Members, list: hostAddresses}}
	if cfg.Follow != nil {
		s.follows = newFollows(cfg.Follow, orDefault(cfg.hold, holdTime))
	}
	if len(upstreams) > 0 {
		s.forward = &forwarder{
			upstreams: upstreams, timeout: cfg.UpstreamTimeout, quota: newQuota(cfg.MaxForwards, cfg.MaxForwardsEach),
		}
	}
	return s, nil
}

func orDefault[T time.Duration | int](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Swap makes z the zone that is answered from. A zone of a lower sequence than
// the present one is refused (false): answers never go back in time.
func (s *Server) Swap(z *Zone) bool {
	for {
		old := s.zone.Load()
		if old != nil && z.sequence.Compare(old.sequence) < 0 {
			return false
		}
		if s.zone.CompareAndSwap(old, z) {
			return true
		}
	}
}

// Listen binds all addresses and returns them as bound, in the order of the
// configuration. It fails, binding none, when one is taken or not this host's.
// The caller must Run (or Close) the server afterwards.
func (s *Server) Listen(ctx context.Context) ([]netip.AddrPort, error) {
	if s.sockets != nil {
		return nil, errors.New("dns: already listening")
	}
	var bound []netip.AddrPort
	for _, addr := range s.cfg.Listen {
		k, err := bind(ctx, addr)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.sockets = append(s.sockets, k)
		bound = append(bound, k.addr)
	}
	return bound, nil
}

// Close releases the addresses of a server that was never run.
func (s *Server) Close() {
	for _, k := range s.sockets {
		k.close()
	}
	s.sockets = nil
}

// handler answers one question; ctx is that of all that are under way.
func (s *Server) handler(ctx context.Context) dns.HandlerFunc {
	return func(w dns.ResponseWriter, req *dns.Msg) {
		via := UDP
		if w.LocalAddr().Network() == "tcp" {
			via = TCP
		}
		m := s.answer(ctx, req, via, clientAddr(w.RemoteAddr()))
		s.slow.add(typeOf(req), m.Rcode)
		// An error means that the client is gone: there is nothing to do.
		_ = w.WriteMsg(m)
	}
}

// typeOf is the type of the question; 0: there is no question.
func typeOf(req *dns.Msg) uint16 {
	if len(req.Question) == 0 {
		return 0
	}
	return req.Question[0].Qtype
}

// answer answers req from the zone, or forwards it if the name is not in it.
func (s *Server) answer(ctx context.Context, req *dns.Msg, via Transport, from netip.Addr) *dns.Msg {
	m := reply(req)
	if m.Rcode == dns.RcodeSuccess {
		s.fill(ctx, m, req, from)
	}
	fit(m, req, via)
	return m
}

// fill looks the question up, and what the answer is an alias of.
func (s *Server) fill(ctx context.Context, m, req *dns.Msg, from netip.Addr) {
	if s.lookUp(ctx, m, req, from) == aliased {
		s.resolve(ctx, m, req, from)
	}
}

// lookUp answers the question of m, which is that of req, from the zone or an upstream. Without a zone every name
// gets SERVFAIL, because the client would believe a "does not exist".
func (s *Server) lookUp(ctx context.Context, m, req *dns.Msg, from netip.Addr) said {
	z := s.zone.Load()
	if z == nil {
		m.Rcode = dns.RcodeServerFailure
		return answered
	}
	said, interest := z.fill(m)
	switch {
	case said == answered, said == aliased:
	case said == unknown:
		said = s.hold(ctx, m, interest, from)
		s.slow.addHeld(m.Rcode)
	case !s.near.has(from):
		m.Rcode = dns.RcodeRefused
	default:
		// Not REFUSED: glibc ends the search list at it, and musl waits for its time-out.
		m.Rcode = dns.RcodeServerFailure
		if s.forward != nil {
			s.slow.forwarded.Add(1)
			s.forward.fill(ctx, m, req, from)
		}
	}
	return said
}
