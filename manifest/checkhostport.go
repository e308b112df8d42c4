package manifest

import (
	"fmt"
	"net/netip"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// hostPort checks the host's side of a port.
func (c containerChecks) hostPort(at string, p *spec.ContainerPort) {
	c.between(at+".hostPort", int64(p.HostPort), 0, 65535)
	if p.HostPort != 0 && p.Protocol == "SCTP" {
		c.fail(at+".hostPort", "is not supported for SCTP", "omit it, or write protocol TCP or UDP")
	}
	if p.HostIP == "" {
		return
	}
	switch a, err := netip.ParseAddr(p.HostIP); {
	case err != nil || !a.Is4():
		c.fail(at+".hostIP", scalar.Quote(p.HostIP)+" is not an IPv4 address", "write it as in 192.0.2.1, or omit it")
	case a.IsLoopback():
		c.fail(at+".hostIP", "a host port is not reached through "+p.HostIP, "write another address of the host, or omit it")
	case a.IsMulticast():
		c.fail(at+".hostIP", p.HostIP+" is not an address of a host", "")
	}
}

// hostPorts checks that no two ports of a member are the same on the host.
func (c containerChecks) hostPorts(at string, containers []spec.Container) {
	type place struct {
		at   string
		port spec.HostPort
	}
	var seen []place
	for i := range containers {
		for j := range containers[i].Ports {
			p := &containers[i].Ports[j]
			if p.HostPort == 0 {
				continue
			}
			now := place{index(index(at, i)+".ports", j) + ".hostPort", p.OnHost()}
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
