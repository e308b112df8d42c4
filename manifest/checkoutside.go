package manifest

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// serviceChecks are those of what of a service is for clients outside.
type serviceChecks struct{ *checks }

// outside checks the addresses for clients outside. Whose they are is for the servers to say.
func (c serviceChecks) outside(s *spec.ServiceSpec) {
	switch {
	case s.LoadBalancerIP == "":
	case s.Type != "LoadBalancer":
		c.warn("spec.loadBalancerIP", noEffect, "it counts for type LoadBalancer only")
	case !c.balanced:
		c.warn("spec.loadBalancerIP", noEffect, noBalancer)
	default:
		c.outsideAddress("spec.loadBalancerIP", s.LoadBalancerIP)
	}
	if len(s.ExternalIPs) > 0 && (s.Headless() || s.IsAlias()) {
		c.warn("spec.externalIPs", noEffect, "the Service has no address of its own, and leads no connections")
		return
	}
	seen := map[string]bool{}
	for i, text := range s.ExternalIPs {
		at := index("spec.externalIPs", i)
		c.outsideAddress(at, text)
		c.once(at, text, seen)
	}
}

// outsideAddress refuses addresses that no machine outside reaches this cluster by.
func (c serviceChecks) outsideAddress(at, text string) {
	if a, err := netip.ParseAddr(text); err != nil || !a.Is4() || a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() {
		c.fail(at, scalar.Quote(text)+" is not an IPv4 address that clients outside reach", "write one of those that the operator gave, or leave it out")
	}
}

// clients checks to which members, and from where, clients outside are led.
func (c serviceChecks) clients(s *spec.Service) {
	if p := s.Spec.ExternalTrafficPolicy; p != "" {
		c.choice("spec.externalTrafficPolicy", p, []string{"Cluster", "Local"})
	}
	if s.Spec.OutsideOnNode() && !s.Spec.IsReachedOutside() {
		c.warn("spec.externalTrafficPolicy", noEffect, "it counts for types NodePort and LoadBalancer, and for externalIPs")
	}
	c.healthPort(&s.Spec)
	c.sourceRanges(s)
}

func (c serviceChecks) healthPort(s *spec.ServiceSpec) {
	const path = "spec.healthCheckNodePort"
	port := s.HealthCheckNodePort
	switch {
	case port == 0:
		return
	case !s.AnswersHealth():
		c.warn(path, noEffect, "it counts for type LoadBalancer with externalTrafficPolicy Local only")
		return
	}
	c.between(path, int64(port), spec.FirstNodePort, spec.LastNodePort)
	for i, p := range s.Ports {
		if p.NodePort == port {
			c.fail(path, fmt.Sprintf("%d is %s, too", port, index("spec.ports", i)+".nodePort"), "write another, or leave it out")
		}
	}
}

// rangesAnnotation holds the ranges, with commas between them, where the field has none: it is older than that.
const rangesAnnotation = "service.beta.kubernetes.io/load-balancer-source-ranges"

// sourceRanges checks the ranges of clients, in the field or the annotation.
func (c serviceChecks) sourceRanges(s *spec.Service) {
	list, path := s.Spec.LoadBalancerSourceRanges, "spec.loadBalancerSourceRanges"
	at := func(i int) string { return index(path, i) }
	if len(list) == 0 {
		list, path = annotatedRanges(s), "metadata.annotations["+rangesAnnotation+"]"
		at = func(int) string { return path }
	}
	switch {
	case len(list) == 0:
		return
	case s.Spec.Type != "LoadBalancer":
		c.warn(path, noEffect, "it counts for type LoadBalancer only")
	case !c.balanced:
		c.warn(path, noEffect, noBalancer)
	}
	for i, text := range list {
		switch p, err := netip.ParsePrefix(strings.TrimSpace(text)); {
		case err != nil:
			c.fail(at(i), scalar.Quote(text)+" is not a range of addresses", "write it as 192.0.2.0/24")
		case !p.Addr().Is4():
			c.warn(at(i), noEffect, "no client comes from it: Services have IPv4 addresses only")
		}
	}
}

// annotatedRanges are those that the annotation of a service names.
func annotatedRanges(s *spec.Service) []string {
	text := strings.TrimSpace(s.Metadata.Annotations[rangesAnnotation])
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
