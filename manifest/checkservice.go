package manifest

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func (c *checks) service(s *spec.Service) {
	c.label("metadata.name", s.Metadata.Name)
	c.metadata("metadata", &s.Metadata)
	serviceChecks{c}.clients(s)
	switch s.Spec.Type {
	case "ClusterIP":
	case "LoadBalancer", "NodePort":
		if s.Spec.Type == "LoadBalancer" && !c.balanced {
			c.warn("spec.type", "LoadBalancer has no address outside: from there the Service is reached as one of type NodePort",
				"use the address of any node, with the ports that 'stead get svc' shows; or start the servers with --load-balancer-cidr")
		}
		if s.Spec.Headless() {
			c.fail("spec.clusterIP", "None does not go with type "+s.Spec.Type, "write type: ClusterIP")
		}
	case "ExternalName":
		c.alias(&s.Spec)
		return
	default:
		c.fail("spec.type", scalar.Quote(s.Spec.Type)+" is unknown", "write ClusterIP")
	}
	if s.Spec.ExternalName != "" {
		c.warn("spec.externalName", noEffect, "it counts for type ExternalName only")
	}
	if a, err := netip.ParseAddr(s.Spec.ClusterIP); s.Spec.ClusterIP != "" && !s.Spec.Headless() && (err != nil || !a.Is4()) {
		c.fail("spec.clusterIP", scalar.Quote(s.Spec.ClusterIP)+" is not an IPv4 address", "leave it out, or write None or an address of the range of services")
	}
	if len(s.Spec.Selector) == 0 && s.Spec.PublishNotReadyAddresses {
		c.warn("spec.publishNotReadyAddresses", noEffect, "without a selector the Service leads to the endpoints that are ready in its Endpoints and EndpointSlices")
	}
	c.labels("spec.selector", s.Spec.Selector)
	c.servicePorts(&s.Spec)
	serviceChecks{c}.outside(&s.Spec)
	c.traffic(&s.Spec)
}

// alias checks a service of type ExternalName, as Kubernetes does. What says where an address leads, or to which
// members, changes nothing, there as here.
func (c *checks) alias(s *spec.ServiceSpec) {
	switch name := strings.TrimSuffix(s.ExternalName, "."); {
	case name == "":
		c.fail("spec.externalName", "is missing", "write the name that the Service's name is to stand for")
	case !scalar.ValidSubdomain(name):
		c.fail("spec.externalName", scalar.Quote(s.ExternalName)+" is not a DNS name", "write one of lower-case letters, digits, - and dots, without a scheme or a port")
	}
	if _, err := netip.ParseAddr(s.ExternalName); err == nil {
		c.warn("spec.externalName", "is taken for a name, as in Kubernetes, and no resolver answers a name of this form", "write a name")
	}
	if s.ClusterIP != "" {
		c.fail("spec.clusterIP", "may not be set with type ExternalName", "remove it, or write type: ClusterIP")
	}
	if len(s.Selector) > 0 {
		c.warn("spec.selector", noEffect, ofAlias)
	}
	c.labels("spec.selector", s.Selector)
	c.servicePorts(s)
	serviceChecks{c}.outside(s)
	c.traffic(s)
}

// ofAlias says why a field has no effect with type ExternalName.
const ofAlias = "the name resolves to externalName, which clients then connect to by themselves"

// servicePorts checks the ports. With an address there must be one, as in Kubernetes.
func (c *checks) servicePorts(s *spec.ServiceSpec) {
	if len(s.Ports) == 0 && !s.Headless() && !s.IsAlias() {
		c.fail("spec.ports", "is missing", "write a port, or clusterIP: None")
	}
	seen, taken, opened := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range s.Ports {
		p, at := &s.Ports[i], index("spec.ports", i)
		c.between(at+".port", int64(p.Port), 1, 65535)
		c.choice(at+".protocol", p.Protocol, protocols)
		c.nodePort(at+".nodePort", p.NodePort, s.Type)
		if len(s.Ports) > 1 || p.Name != "" {
			c.label(at+".name", p.Name)
		}
		c.once(at+".name", p.Name, seen)
		c.once(at+".port", fmt.Sprintf("%d/%s", p.Port, p.Protocol), taken)
		if p.NodePort != 0 {
			c.once(at+".nodePort", fmt.Sprintf("%d/%s", p.NodePort, p.Protocol), opened)
		}
	}
}

func (c *checks) nodePort(at string, port int32, kind string) {
	switch {
	case port == 0:
	case kind == "ClusterIP" || kind == "ExternalName":
		c.fail(at, "may not be used with type "+kind, "write type: NodePort, or remove it")
	default:
		c.between(at, int64(port), spec.FirstNodePort, spec.LastNodePort)
	}
}

// traffic checks how connections to the address are led. A headless service has none.
func (c *checks) traffic(s *spec.ServiceSpec) {
	if s.SessionAffinity != "" {
		c.choice("spec.sessionAffinity", s.SessionAffinity, []string{"None", "ClientIP"})
	}
	if s.InternalTrafficPolicy != "" {
		c.choice("spec.internalTrafficPolicy", s.InternalTrafficPolicy, []string{"Cluster", "Local"})
	}
	if f := s.SessionAffinityConfig; f != nil && f.ClientIP != nil {
		if s.SessionAffinity != "ClientIP" {
			c.fail("spec.sessionAffinityConfig", "must not be set while sessionAffinity is None", "write sessionAffinity: ClientIP, or remove it")
		}
		if t := f.ClientIP.TimeoutSeconds; t != nil {
			c.between("spec.sessionAffinityConfig.clientIP.timeoutSeconds", int64(*t), 1, 86400)
		}
	}
	why := ownChoice
	switch {
	case s.IsAlias():
		why = ofAlias
	case !s.Headless():
		return
	}
	if s.SessionAffinity == "ClientIP" {
		c.warn("spec.sessionAffinity", noEffect, why)
	}
	if s.OnNode() {
		c.warn("spec.internalTrafficPolicy", noEffect, why)
	}
	if s.IsAlias() && s.PublishNotReadyAddresses {
		c.warn("spec.publishNotReadyAddresses", noEffect, why)
	}
}

// ownChoice says why how connections are led does not matter for a headless service.
const ownChoice = "with clusterIP None clients choose among the addresses that the name resolves to"
