package network

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/stead-project/stead/internal/wrap"
)

// Service is one port of an address that leads to members. The same port of the same address with
// another protocol is another service.
type Service struct {
	// Address is IPv4, of the range of services or another; zero: every address of the host itself
	// but 127.0.0.0/8 and the gateway (a node port).
	Address netip.Addr
	// Port is 1 to 65535.
	Port uint16
	// Protocol is "TCP", "UDP" or "SCTP".
	Protocol string
	// Affinity is how long a client, known by its address, is led to the endpoint of its last
	// connection; parts of a second are rounded up. 0: each connection is led anew. A client whose endpoint goes
	// is led to another one at once, and others stay where they are.
	Affinity time.Duration
	// Endpoints are IPv4, sorted and distinct; none: connections are rejected at once.
	Endpoints []netip.AddrPort
	// OnlyNear: clients outside, who are neither members nor this host, are led to Near alone, and are seen there with
	// their own address. While Near is empty, and Endpoints is not, what they send is dropped.
	OnlyNear bool
	// Near are some of Endpoints, sorted and distinct: those on this host.
	Near []netip.AddrPort
	// Sources are the ranges from which connections to Address are led; what comes from elsewhere is dropped, whoever
	// sends it. A range of IPv6 is nobody's. None: all are led.
	Sources []netip.Prefix
}

// SetServices makes the host lead connections to exactly these services, whether members, the host
// itself or others open them, to an endpoint at random. rng is the range of services' addresses: what goes to
// an address of it and is not led is rejected, and never leaves the host; zero: there is none. Connections
// under way stay where they are, unless their endpoint is gone: those of TCP and SCTP end with it, those of UDP
// are led to another one with their next packet.
//
// It remembers the services for Setup, which restores what was removed, and which does all of it when it was
// not called yet. Before the first call, what an earlier process left is not touched. After
// an error it may be called again; nothing is written when a service is invalid, or rng overlaps the host's
// network (ErrOverlap). One goroutine at a time may call it.
func (n *Network) SetServices(rng netip.Prefix, services []Service) (err error) {
	defer wrap.Error(&err, "set services")
	if err := n.checkServices(rng, services); err != nil {
		return err
	}
	return n.enforce(func() { n.services.want(rng, services) }, n.services.ensure)
}

// checkServices finds what cannot be led.
func (n *node) checkServices(rng netip.Prefix, services []Service) error {
	switch {
	case !rng.IsValid():
	case !rng.Addr().Is4() || rng != rng.Masked() || rng.Bits() < 8:
		return fmt.Errorf("range of services %s must be an IPv4 range of /8 or smaller", rng)
	case rng.Overlaps(n.cfg.CIDR) || rng.Contains(n.cfg.Gateway):
		return fmt.Errorf("range of services %s overlaps the members' range %s, or contains the gateway %s", rng, n.cfg.CIDR, n.cfg.Gateway)
	}
	seen := map[serviceID]bool{}
	for _, s := range services {
		id, at := s.id(), s.Address
		switch {
		case protocolNumbers[s.Protocol] == 0 || s.Port == 0:
			return fmt.Errorf("service %s: invalid port or protocol", s)
		case at.IsValid() && (!at.Is4() || at.IsUnspecified() || at.IsLoopback() || n.cfg.CIDR.Contains(at) || at == n.cfg.Gateway):
			return fmt.Errorf("service %s: the address must be IPv4, not 127.0.0.0/8, not the gateway and not a member's", s)
		case seen[id]:
			return fmt.Errorf("service %s is there twice", s)
		case s.Affinity < 0:
			return fmt.Errorf("service %s: invalid affinity %s", s, s.Affinity)
		}
		seen[id] = true
		if err := s.checkClients(); err != nil {
			return err
		}
		distinct := map[netip.AddrPort]bool{}
		for _, e := range s.Endpoints {
			if !e.Addr().Is4() || e.Addr().IsUnspecified() || e.Port() == 0 || distinct[e] {
				return fmt.Errorf("service %s: endpoint %s must be an IPv4 address and a port, and be there once", s, e)
			}
			distinct[e] = true
		}
	}
	return nil
}

// checkClients finds what cannot be led of what is about clients outside.
func (s Service) checkClients() error {
	if len(s.Near) > 0 && !s.OnlyNear {
		return fmt.Errorf("service %s: endpoints near without OnlyNear", s)
	}
	for _, e := range s.Near {
		if !slices.Contains(s.Endpoints, e) {
			return fmt.Errorf("service %s: endpoint near %s is not one of its endpoints", s, e)
		}
	}
	for _, p := range s.Sources {
		if !p.IsValid() || !s.Address.IsValid() {
			return fmt.Errorf("service %s: source %s must be a range, and the service have an address", s, p)
		}
	}
	return nil
}

// String is "10.96.0.1:80/TCP", or "80/TCP" of a node port.
func (s Service) String() string {
	if !s.Address.IsValid() {
		return fmt.Sprintf("%d/%s", s.Port, s.Protocol)
	}
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(s.Address, s.Port), s.Protocol)
}
