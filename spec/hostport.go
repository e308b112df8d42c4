package spec

import (
	"cmp"
	"fmt"
	"net/netip"
)

// HostPort is a port of a node that leads to one of a member.
type HostPort struct {
	Protocol string // TCP or UDP; of a member in the network of its host also SCTP
	// Address of the node; zero: each.
	Address netip.Addr
	Port    uint16
	// To is the member's port.
	To uint16
}

// HostPorts are those that the members' containers and sidecars ask for, in their order; what an
// init container says of ports is for readers only, as in Kubernetes. In the network of the host each port
// is one.
func (s *MemberSpec) HostPorts() []HostPort {
	var out []HostPort
	for c := range s.Lasting() {
		for i := range c.Ports {
			if p := &c.Ports[i]; p.HostPort != 0 || s.HostNetwork {
				out = append(out, p.OnHost())
			}
		}
	}
	return out
}

// OnHost is p as the host sees it. p was checked; without a HostPort it is a port of a member in the network of
// its host.
func (p *ContainerPort) OnHost() HostPort {
	h := HostPort{Protocol: p.Protocol, Port: uint16(cmp.Or(p.HostPort, p.ContainerPort)), To: uint16(p.ContainerPort)}
	if h.Protocol == "" {
		h.Protocol = "TCP"
	}
	if a, err := netip.ParseAddr(p.HostIP); err == nil && !a.IsUnspecified() {
		h.Address = a
	}
	return h
}

// Meets reports whether a packet could be meant for both: not both can be on one node.
func (h HostPort) Meets(o HostPort) bool {
	return h.Protocol == o.Protocol && h.Port == o.Port &&
		(!h.Address.IsValid() || !o.Address.IsValid() || h.Address == o.Address)
}

// String is as in 8080/TCP or 192.0.2.1:8080/TCP.
func (h HostPort) String() string {
	if h.Address.IsValid() {
		return fmt.Sprintf("%s/%s", netip.AddrPortFrom(h.Address, h.Port), h.Protocol)
	}
	return fmt.Sprintf("%d/%s", h.Port, h.Protocol)
}
