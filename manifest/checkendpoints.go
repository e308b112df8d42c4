package manifest

import (
	"net/netip"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/scalar"
)

// The bounds of an EndpointSlice are Kubernetes'; Endpoints have the first one in all.
const (
	maxEndpoints         = 1000
	maxEndpointAddresses = 100
	maxEndpointPorts     = 100
)

// endpointChecks are those of Endpoints and EndpointSlices.
type endpointChecks struct{ *checks }

func (c endpointChecks) endpoints(e *records.Endpoints) {
	c.subdomain("metadata.name", e.Metadata.Name)
	c.metadata("metadata", &e.Metadata)
	all := 0
	for i := range e.Subsets {
		s, at := &e.Subsets[i], index("subsets", i)
		if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
			c.fail(at+".addresses", "is missing", "write at least one, here or as notReadyAddresses")
		}
		all += len(s.Addresses) + len(s.NotReadyAddresses)
		for of, list := range map[string][]records.EndpointAddress{".addresses": s.Addresses, ".notReadyAddresses": s.NotReadyAddresses} {
			for j, a := range list {
				at := index(at+of, j)
				c.endpointAddress(at+".ip", a.IP)
				c.endpointHost(at, a.Hostname, a.NodeName)
			}
		}
		c.endpointPorts(at+".ports", s.Ports)
	}
	if all > maxEndpoints {
		c.fail("subsets", "has more than 1000 addresses", "write EndpointSlices instead, of at most 1000 endpoints each")
	}
}

func (c endpointChecks) endpointSlice(e *records.EndpointSlice) {
	c.subdomain("metadata.name", e.Metadata.Name)
	c.metadata("metadata", &e.Metadata)
	if e.Metadata.Labels[records.ServiceNameLabel] == "" {
		c.warn("metadata.labels", "no Service leads to it", "write the label "+records.ServiceNameLabel+" with the name of one")
	}
	switch e.AddressType {
	case "IPv4":
	case "FQDN":
		c.fail("addressType", "FQDN is not supported", "write a Service with type: ExternalName")
	case "IPv6":
		c.fail("addressType", "IPv6 is not supported", "write IPv4 and addresses of that kind")
	default:
		c.choice("addressType", e.AddressType, []string{"IPv4"})
	}
	for i := range e.Endpoints {
		one, at := &e.Endpoints[i], index("endpoints", i)
		c.between(at+".addresses", int64(len(one.Addresses)), 1, maxEndpointAddresses)
		for j, a := range one.Addresses {
			if e.AddressType == "IPv4" {
				c.endpointAddress(index(at+".addresses", j), a)
			}
		}
		c.endpointHost(at, one.Hostname, one.NodeName)
	}
	if len(e.Endpoints) > maxEndpoints {
		c.fail("endpoints", "has more than 1000 endpoints", "write several EndpointSlices")
	}
	c.endpointPorts("ports", e.Ports)
}

func (c endpointChecks) endpointHost(at, host, node string) {
	if host != "" {
		c.label(at+".hostname", host)
	}
	if node != "" {
		c.subdomain(at+".nodeName", node)
	}
}

// endpointAddress refuses addresses that Kubernetes refuses, too.
func (c endpointChecks) endpointAddress(at, text string) {
	a, err := netip.ParseAddr(text)
	kind := ""
	switch {
	case err != nil || !a.Is4():
		c.fail(at, scalar.Quote(text)+" is not an IPv4 address", "write one, as 192.0.2.7")
		return
	case a.IsUnspecified():
		kind = "the unspecified address"
	case a.IsLoopback():
		kind = "an address of loopback, which each host has for itself"
	case a.IsLinkLocalUnicast():
		kind = "a link-local address, which means another machine on each link"
	case a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		kind = "an address of many machines"
	default:
		return
	}
	c.fail(at, text+" is "+kind, "write the address of one machine, or of a member")
}

func (c endpointChecks) endpointPorts(at string, ports []records.EndpointPort) {
	seen := map[string]bool{}
	for i := range ports {
		p, at := &ports[i], index(at, i)
		c.between(at+".port", int64(p.Port), 1, 65535)
		c.choice(at+".protocol", p.Protocol, protocols)
		if len(ports) > 1 || p.Name != "" {
			c.label(at+".name", p.Name)
		}
		c.once(at+".name", p.Name, seen)
	}
	if len(ports) > maxEndpointPorts {
		c.fail(at, "has more than 100 ports", "write fewer")
	}
}
