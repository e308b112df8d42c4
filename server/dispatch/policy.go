package dispatch

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
)

// policiesOf are the NetworkPolicies that select members of set, of those of its namespace, as nodes are sent
// them: sets are named, ports are numbers. all are the sets of each namespace, set among them.
func policiesOf(set *records.Set, policies []*records.NetworkPolicyRecord, all map[spec.Namespace][]*records.Set) []records.SetPolicy {
	var out []records.SetPolicy
	for _, r := range policies {
		if !r.Selects(set) {
			continue
		}
		_, own := netpol.SplitOwn(&r.Spec.PodSelector)
		p := records.SetPolicy{Name: r.Name, Members: own, Ingress: r.Spec.Isolates(netpol.Ingress), Egress: r.Spec.Isolates(netpol.Egress)}
		c := policyResolver{ns: r.Namespace, all: all}
		if p.Ingress {
			for i := range r.Spec.Ingress {
				p.From = append(p.From, c.from(&r.Spec.Ingress[i], set)...)
			}
		}
		if p.Egress {
			for i := range r.Spec.Egress {
				p.To = append(p.To, c.to(&r.Spec.Egress[i])...)
			}
		}
		out = append(out, p)
	}
	return out
}

// policyResolver finds what rules of a policy of ns name.
type policyResolver struct {
	ns  spec.Namespace
	all map[spec.Namespace][]*records.Set
}

// from is a rule for ingress of set's members. A rule that no port or party is left of allows nothing.
func (c *policyResolver) from(rule *netpol.PolicyIngress, set *records.Set) []records.PolicyRule {
	var ports []records.PolicyPorts
	for i := range rule.Ports {
		p := &rule.Ports[i]
		if p.Port == nil || p.Port.Name == "" {
			ports = append(ports, numbered(p))
		} else if number := netpol.PortNamed(&set.Spec.Template, p.Port.Name, p.Protocol); number != 0 {
			ports = append(ports, records.PolicyPorts{Protocol: p.Protocol, First: number, Last: number})
		}
	}
	if len(rule.Ports) > 0 && len(ports) == 0 {
		return nil
	}
	parties := slices.DeleteFunc(c.parties(rule.From, false), func(p records.PolicyParty) bool { return p.DNS })
	return ruleOf(len(rule.From) == 0, parties, ports)
}

// to are the rules for egress that one of a policy is: one with its numbers, and one for each number that a
// name of a port has somewhere.
func (c *policyResolver) to(rule *netpol.PolicyEgress) (out []records.PolicyRule) {
	var ports []records.PolicyPorts
	var named []*netpol.PolicyPort
	for i := range rule.Ports {
		if p := &rule.Ports[i]; p.Port != nil && p.Port.Name != "" {
			named = append(named, p)
		} else {
			ports = append(ports, numbered(p))
		}
	}
	if len(ports) > 0 || len(rule.Ports) == 0 {
		out = ruleOf(len(rule.To) == 0, c.parties(rule.To, false), ports)
	}
	if len(named) == 0 {
		return out
	}
	peers := rule.To
	if len(peers) == 0 {
		peers = []netpol.PolicyPeer{{NamespaceSelector: &spec.LabelSelector{}}}
	}
	each := c.parties(peers, true)
	for _, p := range named {
		at := map[int32][]records.PolicyParty{}
		for _, party := range each {
			if number := c.portOf(&party, p); number != 0 {
				at[number] = append(at[number], party)
			}
		}
		for _, number := range slices.Sorted(maps.Keys(at)) {
			out = append(out, ruleOf(false, at[number], []records.PolicyPorts{{Protocol: p.Protocol, First: number, Last: number}})...)
		}
	}
	return out
}

func ruleOf(anybody bool, parties []records.PolicyParty, ports []records.PolicyPorts) []records.PolicyRule {
	if !anybody && len(parties) == 0 {
		return nil
	}
	return []records.PolicyRule{{Anybody: anybody, Parties: parties, Ports: ports}}
}

// numbered is a port without a name.
func numbered(p *netpol.PolicyPort) records.PolicyPorts {
	out := records.PolicyPorts{Protocol: p.Protocol}
	if p.Port != nil {
		out.First, out.Last = p.Port.Number, p.Port.Number
	}
	if p.EndPort != nil {
		out.Last = *p.EndPort
	}
	return out
}

// portOf is the number that a named port has at a party; 0: none.
func (c *policyResolver) portOf(party *records.PolicyParty, p *netpol.PolicyPort) int32 {
	if party.DNS {
		return netpol.DNSPortNamed(p.Port.Name, p.Protocol)
	}
	for _, set := range c.all[party.Namespace] {
		if set.Ref.Name == party.Set {
			return netpol.PortNamed(&set.Spec.Template, p.Port.Name, p.Protocol)
		}
	}
	return 0
}

// parties are those that one of peers selects; of each member's set by its own name, and no addresses, if
// each is true.
func (c *policyResolver) parties(peers []netpol.PolicyPeer, each bool) (out []records.PolicyParty) {
	for i := range peers {
		p := &peers[i]
		switch {
		case p.IPBlock != nil && each:
		case p.IPBlock != nil:
			if b, ok := blockOf(p.IPBlock); ok {
				out = append(out, b)
			}
		case isEverybody(p) && !each:
			out = append(out, records.PolicyParty{Everyone: true})
		default:
			out = append(out, c.selected(p, each)...)
		}
	}
	return out
}

// isEverybody reports whether a peer selects all members of all namespaces.
func isEverybody(p *netpol.PolicyPeer) bool {
	return p.NamespaceSelector != nil && netpol.IsEmpty(p.NamespaceSelector) && (p.PodSelector == nil || netpol.IsEmpty(p.PodSelector))
}

// selected are the members that a peer selects, and DNS.
func (c *policyResolver) selected(p *netpol.PolicyPeer, each bool) (out []records.PolicyParty) {
	pods := p.PodSelector
	if pods == nil {
		pods = &spec.LabelSelector{}
	}
	common, own := netpol.SplitOwn(pods)
	for _, ns := range slices.Sorted(maps.Keys(c.all)) {
		if !c.inNamespace(p, ns) {
			continue
		}
		if netpol.IsEmpty(common) && !each {
			out = append(out, records.PolicyParty{Namespace: ns, Members: own})
			continue
		}
		for _, set := range c.all[ns] {
			if common.Matches(set.Spec.Template.Metadata.Labels) {
				out = append(out, records.PolicyParty{Namespace: ns, Set: set.Ref.Name, Members: own})
			}
		}
	}
	if c.inNamespace(p, netpol.DNSNamespace) && pods.Matches(netpol.DNSLabels()) {
		out = append(out, records.PolicyParty{DNS: true})
	}
	return out
}

func (c *policyResolver) inNamespace(p *netpol.PolicyPeer, ns spec.Namespace) bool {
	if p.NamespaceSelector == nil {
		return ns == c.ns
	}
	return p.NamespaceSelector.Matches(netpol.NamespaceLabels(ns))
}

// blockOf is a block of IPv4 addresses; members have no others.
func blockOf(b *netpol.IPBlock) (out records.PolicyParty, ok bool) {
	p, err := netip.ParsePrefix(b.CIDR)
	if err != nil || !p.Addr().Is4() {
		return out, false
	}
	out.Block = p.Masked()
	for _, text := range b.Except {
		if e, err := netip.ParsePrefix(text); err == nil && e.Addr().Is4() {
			out.Except = append(out.Except, e.Masked())
		}
	}
	return out, true
}
