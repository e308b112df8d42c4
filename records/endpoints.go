package records

import (
	"cmp"
	"net/netip"

	"github.com/stead-project/stead/spec"
)

// EndpointsRecord is endpoints/<ns>/<name>: an Endpoints object, for the Service of its name.
type EndpointsRecord struct {
	Meta
	Subsets []EndpointSubset `json:"subsets,omitempty"`
}

// SliceRecord is endpointslices/<ns>/<name>: an EndpointSlice, for the Service that its label names.
type SliceRecord struct {
	Meta
	AddressType string          `json:"addressType"`
	Endpoints   []SliceEndpoint `json:"endpoints,omitempty"`
	Ports       []EndpointPort  `json:"ports,omitempty"`
}

// Service is the name of its Service; "": it has none.
func (r *SliceRecord) Service() string { return r.Labels[ServiceNameLabel] }

// Endpoint is an address and a port that a port of a Service leads to.
type Endpoint struct {
	Address netip.Addr `json:"address"`
	// Port is 1 to 65535; 0: it has an address alone, for names.
	Port int32 `json:"port,omitempty"`
	// PortName and Protocol are those of the Service's port that leads here.
	PortName string `json:"portName,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	// Host is the label of its own name; "": it has none.
	Host string `json:"host,omitempty"`
	// Node is where it is; "": not known.
	Node spec.NodeName `json:"node,omitempty"`
}

// Ready are the endpoints that are led to.
func (r *EndpointsRecord) Ready() (out []Endpoint) {
	for i := range r.Subsets {
		s := &r.Subsets[i]
		for _, a := range s.Addresses {
			out = addEndpoint(out, a.IP, a.Hostname, a.NodeName, s.Ports)
		}
	}
	return out
}

// Ready are the endpoints that are led to, and ending those that are while no other is.
func (r *SliceRecord) Ready() (ready, ending []Endpoint) {
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		for _, a := range e.Addresses {
			switch {
			case e.IsReady():
				ready = addEndpoint(ready, a, e.Hostname, e.NodeName, r.Ports)
			case e.IsEnding():
				ending = addEndpoint(ending, a, e.Hostname, e.NodeName, r.Ports)
			}
		}
	}
	return ready, ending
}

func addEndpoint(list []Endpoint, ip, host, node string, ports []EndpointPort) []Endpoint {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return list // apply refuses it
	}
	e := Endpoint{Address: address, Host: host, Node: spec.NodeName(node)}
	if len(ports) == 0 {
		return append(list, e)
	}
	for _, p := range ports {
		e.Port, e.PortName, e.Protocol = p.Port, p.Name, cmp.Or(p.Protocol, "TCP")
		list = append(list, e)
	}
	return list
}

// EndpointsOf are those that a port of the service n leads to, which is one of the snapshot's Names: of a set the
// members that live and are ready, or need not be; of a Service of its own its endpoints with the name and protocol
// of the port. On which node the client is does not count (DNSName.OnNode).
func (s *Snapshot) EndpointsOf(n *DNSName, p *spec.ServicePort) (out []Endpoint) {
	protocol := cmp.Or(p.Protocol, "TCP")
	for _, e := range n.Endpoints {
		if e.Port != 0 && e.PortName == p.Name && e.Protocol == protocol {
			out = append(out, e)
		}
	}
	number := p.Port // of a headless service that of the members already
	if n.Address.IsValid() {
		number = 0
		if p.TargetPort != nil {
			number = p.TargetPort.Number
		}
	}
	selected := s.Selected(n)
	for i := range s.Peers {
		if peer := &s.Peers[i]; number != 0 && (selected == nil || selected(peer.Ordinal)) && peer.Node != "" && peer.Address.IsValid() && (peer.Ready || n.PublishNotReady) {
			out = append(out, Endpoint{Address: peer.Address, Port: number, PortName: p.Name, Protocol: protocol, Host: peer.Name, Node: peer.Node})
		}
	}
	return out
}
