package spec

import (
	"fmt"
	"net/netip"
)

// HostPort is a port of a node that leads to one of a member.
type HostPort struct {
	Protocol string // TCP or UDP
	// Address of the node; zero: each.
	Address netip.Addr
	Port    uint16
	// To is the member's port.
	To uint16
}

// CauseHostPortTaken: a port of the host that the member asks for is another's.
const CauseHostPortTaken = "HostPortTaken"

// HostPorts are those that the members' containers ask for, in their order.
func (s *MemberSpec) HostPorts() []HostPort {
	var out []HostPort
	for i := range s.Containers {
		for j := range s.Containers[i].Ports {
			if p := &s.Containers[i].Ports[j]; p.HostPort != 0 {
				out = append(out, p.onHost())
			}
		}
	}
	return out
}

// onHost is p as the host sees it; p was checked.
func (p *ContainerPort) onHost() HostPort {
	h := HostPort{Protocol: p.Protocol, Port: uint16(p.HostPort), To: uint16(p.ContainerPort)}
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

// hostPort checks what a port asks of the host.
func (c *checks) hostPort(at string, p *ContainerPort) {
	c.between(at+".hostPort", int64(p.HostPort), 0, 65535)
	if p.HostPort != 0 && p.Protocol == "SCTP" {
		c.fail(at+".hostPort", "is not supported for SCTP", "leave it out, or write protocol TCP or UDP")
	}
	if p.HostIP == "" {
		return
	}
	switch a, err := netip.ParseAddr(p.HostIP); {
	case err != nil || !a.Is4():
		c.fail(at+".hostIP", quote(p.HostIP)+" is no IPv4 address", "write it as in 192.0.2.1, or leave it out")
	case a.IsLoopback():
		c.fail(at+".hostIP", "a host port is not reached through "+p.HostIP, "write another address of the host, or leave it out")
	case a.IsMulticast():
		c.fail(at+".hostIP", p.HostIP+" is no address of a host", "")
	}
}

// hostPorts checks that no two ports of a member are the same on the host.
func (c *checks) hostPorts(at string, containers []Container) {
	type place struct {
		at   string
		port HostPort
	}
	var seen []place
	for i := range containers {
		for j := range containers[i].Ports {
			p := &containers[i].Ports[j]
			if p.HostPort == 0 {
				continue
			}
			now := place{index(index(at, i)+".ports", j) + ".hostPort", p.onHost()}
			for _, before := range seen {
				if before.port.Meets(now.port) {
					c.fail(now.at, fmt.Sprintf("%s is taken by %s", now.port, before.at), "")
					break
				}
			}
			seen = append(seen, now)
		}
	}
}
