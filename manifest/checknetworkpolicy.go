package manifest

import (
	"net/netip"
	"slices"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
	"github.com/stead-project/stead/spec/scalar"
)

// The versions of NetworkPolicy. Kubernetes removed the old one in 1.16; it reads the same.
const (
	networkPolicies    = "networking.k8s.io/v1"
	oldNetworkPolicies = "extensions/v1beta1"
)

// policyChecks are the checks of NetworkPolicies.
type policyChecks struct{ *checks }

func (c policyChecks) networkPolicy(p *netpol.NetworkPolicy) {
	c.subdomain("metadata.name", p.Metadata.Name)
	c.metadata("metadata", &p.Metadata)
	c.memberSelector("spec.podSelector", &p.Spec.PodSelector)
	for i, t := range p.Spec.PolicyTypes {
		at := index("spec.policyTypes", i)
		c.choice(at, t, []string{netpol.Ingress, netpol.Egress})
		if slices.Index(p.Spec.PolicyTypes, t) < i {
			c.fail(at, "is there twice", "remove one of them")
		}
	}
	for i := range p.Spec.Ingress {
		at, rule := index("spec.ingress", i), &p.Spec.Ingress[i]
		c.policyPorts(at+".ports", rule.Ports)
		c.policyPeers(at+".from", rule.From)
	}
	for i := range p.Spec.Egress {
		at, rule := index("spec.egress", i), &p.Spec.Egress[i]
		c.policyPorts(at+".ports", rule.Ports)
		c.policyPeers(at+".to", rule.To)
	}
	for direction, rules := range map[string]int{netpol.Ingress: len(p.Spec.Ingress), netpol.Egress: len(p.Spec.Egress)} {
		if rules > 0 && !p.Spec.Isolates(direction) {
			c.warn("spec."+map[string]string{netpol.Ingress: "ingress", netpol.Egress: "egress"}[direction],
				"has no effect, as in Kubernetes: policyTypes does not name "+direction, "")
		}
	}
}

func (c policyChecks) policyPorts(path string, ports []netpol.PolicyPort) {
	for i := range ports {
		p, at := &ports[i], index(path, i)
		c.choice(at+".protocol", p.Protocol, protocols)
		switch end := p.EndPort; {
		case end == nil:
		case p.Port == nil || p.Port.Name != "":
			c.fail(at+".endPort", "needs the number of a port as port", "write the first port of the range as port")
		case *end < p.Port.Number || *end > 65535:
			c.fail(at+".endPort", scalar.Quote(scalar.PortRef{Number: *end}.String())+" is not the end of a range that begins at "+p.Port.String(),
				"write "+p.Port.String()+" to 65535")
		}
	}
}

func (c policyChecks) policyPeers(path string, peers []netpol.PolicyPeer) {
	for i := range peers {
		p, at := &peers[i], index(path, i)
		switch {
		case p.PodSelector == nil && p.NamespaceSelector == nil && p.IPBlock == nil:
			c.fail(at, "is empty", "write podSelector, namespaceSelector or ipBlock; for everybody leave out the whole list")
		case p.IPBlock != nil && (p.PodSelector != nil || p.NamespaceSelector != nil):
			c.fail(at+".ipBlock", "does not go with podSelector or namespaceSelector", "write it as an entry of its own")
		}
		if p.PodSelector != nil {
			c.memberSelector(at+".podSelector", p.PodSelector)
		}
		if p.NamespaceSelector != nil {
			c.namespaceSelector(at+".namespaceSelector", p.NamespaceSelector)
		}
		if p.IPBlock != nil {
			c.ipBlock(at+".ipBlock", p.IPBlock)
		}
	}
}

// memberSelector checks a selector of members. They have no label of their revision here.
func (c policyChecks) memberSelector(path string, s *spec.LabelSelector) {
	c.selector(path, s)
	const revision = "controller-revision-hash"
	if selectsBy(s, func(key string) bool { return key == revision }) {
		c.fail(path, "selects by the label "+revision+", which says nothing here", "select by labels of the template")
	}
}

// namespaceSelector warns of what selects no namespace, or all, because none has a label that somebody gave it.
func (c policyChecks) namespaceSelector(path string, s *spec.LabelSelector) {
	c.selector(path, s)
	if selectsBy(s, func(key string) bool { return key != netpol.LabelNamespace }) {
		c.warn(path, "selects by a label that no namespace has: the only one here is "+netpol.LabelNamespace,
			"write matchLabels: {"+netpol.LabelNamespace+": NAMESPACE}")
	}
}

func selectsBy(s *spec.LabelSelector, key func(string) bool) bool {
	for k := range s.MatchLabels {
		if key(k) {
			return true
		}
	}
	return slices.ContainsFunc(s.MatchExpressions, func(r spec.SelectorRequirement) bool { return key(r.Key) })
}

// ipBlock checks a block. Members have IPv4 addresses only: one of IPv6 is nobody.
func (c policyChecks) ipBlock(path string, b *netpol.IPBlock) {
	all, err := netip.ParsePrefix(b.CIDR)
	switch {
	case b.CIDR == "":
		c.fail(path+".cidr", "is missing", "write a range such as 10.0.0.0/8")
		return
	case err != nil:
		c.fail(path+".cidr", scalar.Quote(b.CIDR)+" is not a range of addresses", "write it as 10.0.0.0/8")
		return
	case !all.Addr().Is4():
		c.warn(path+".cidr", "has no effect here: members have IPv4 addresses only", "")
	}
	for i, text := range b.Except {
		e, err := netip.ParsePrefix(text)
		if err != nil || e.Addr().Is4() != all.Addr().Is4() || e.Bits() <= all.Bits() || !all.Contains(e.Addr()) {
			c.fail(index(path+".except", i), scalar.Quote(text)+" is not a range within "+all.Masked().String(), "write a smaller range of it, or remove it")
		}
	}
}
