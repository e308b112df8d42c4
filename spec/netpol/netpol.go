// Package netpol has NetworkPolicies as manifests have them, and what of sets, namespaces and DNS their selectors
// see.
package netpol

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// NetworkPolicy says what may reach the members that it selects, and what they may reach:
// networking.k8s.io/v1. A member that no policy selects is open; of several policies each allows what it allows.
type NetworkPolicy struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   spec.ObjectMeta   `json:"metadata"`
	Spec       NetworkPolicySpec `json:"spec"`
}

// NetworkPolicySpec is what a NetworkPolicy says.
type NetworkPolicySpec struct {
	// PodSelector selects members of the namespace by the labels of their set's template, and their
	// own (LabelMemberName, LabelMemberIndex); an empty one selects all.
	PodSelector spec.LabelSelector `json:"podSelector"`
	// Ingress is what may reach them; none: nothing. Their own host and themselves always may.
	Ingress []PolicyIngress `json:"ingress,omitempty"`
	// Egress is what they may reach; none: nothing. It is for DNS, too, which counts as a member of the namespace
	// kube-system with the label k8s-app: kube-dns.
	Egress []PolicyEgress `json:"egress,omitempty"`
	// PolicyTypes are the directions that the policy is about: Ingress, Egress; default: Ingress, and Egress if
	// there are rules for it.
	PolicyTypes []string `json:"policyTypes,omitempty"`
}

// PolicyIngress allows one of From to reach one of Ports.
type PolicyIngress struct {
	// Ports are of the selected members; none: all.
	Ports []PolicyPort `json:"ports,omitempty"`
	// From is from where; none: from everywhere.
	From []PolicyPeer `json:"from,omitempty"`
}

// PolicyEgress allows to reach one of Ports at one of To.
type PolicyEgress struct {
	// Ports are of the destination; none: all.
	Ports []PolicyPort `json:"ports,omitempty"`
	// To is where to; none: everywhere.
	To []PolicyPeer `json:"to,omitempty"`
}

// PolicyPort is a port of a member, or a range of ports.
type PolicyPort struct {
	// Protocol is TCP, UDP or SCTP; default TCP.
	Protocol string `json:"protocol,omitempty"`
	// Port is a number, or the name of a port, which may be another number at each set; nil: every port of the
	// protocol.
	Port *scalar.PortRef `json:"port,omitempty"`
	// EndPort is the last of a range that begins at Port, which is a number then.
	EndPort *int32 `json:"endPort,omitempty"`
}

// PolicyPeer is members that both selectors select, or addresses.
type PolicyPeer struct {
	// PodSelector selects members: of the policy's own namespace, or of those that NamespaceSelector selects; nil:
	// all of these.
	PodSelector *spec.LabelSelector `json:"podSelector,omitempty"`
	// NamespaceSelector selects namespaces, which have the label kubernetes.io/metadata.name alone.
	NamespaceSelector *spec.LabelSelector `json:"namespaceSelector,omitempty"`
	// IPBlock is a range of addresses.
	IPBlock *IPBlock `json:"ipBlock,omitempty"`
}

// IPBlock is a range of addresses without some.
type IPBlock struct {
	// CIDR is as 10.0.0.0/8.
	CIDR string `json:"cidr"`
	// Except are ranges within CIDR.
	Except []string `json:"except,omitempty"`
}

// The directions of a NetworkPolicy.
const (
	Ingress = "Ingress"
	Egress  = "Egress"
)

// Labels that members and namespaces have of themselves.
const (
	LabelMemberName  = "statefulset.kubernetes.io/pod-name"
	LabelMemberIndex = "apps.kubernetes.io/pod-index"
	LabelNamespace   = "kubernetes.io/metadata.name"
)

// NamespaceLabels are the labels of a namespace.
func NamespaceLabels(ns spec.Namespace) map[string]string {
	return map[string]string{LabelNamespace: string(ns)}
}

// DNSNamespace and DNSPort are where DNS is for NetworkPolicies: a member of this namespace, with DNSLabels, as a
// cluster's DNS is in Kubernetes.
const (
	DNSNamespace spec.Namespace = "kube-system"
	DNSPort      int32          = 53
)

// DNSLabels are the labels of DNS.
func DNSLabels() map[string]string { return map[string]string{"k8s-app": "kube-dns"} }

// DNSPortNamed is the number of DNS's port of this name and protocol; 0: there is none.
func DNSPortNamed(name, protocol string) int32 {
	if name == "dns" && protocol == "UDP" || name == "dns-tcp" && protocol == "TCP" {
		return DNSPort
	}
	return 0
}

// Default fills the defaults.
func Default(s *NetworkPolicySpec) {
	if len(s.PolicyTypes) == 0 {
		s.PolicyTypes = []string{Ingress}
		if len(s.Egress) > 0 {
			s.PolicyTypes = append(s.PolicyTypes, Egress)
		}
	}
	fill := func(ports []PolicyPort) {
		for i := range ports {
			ports[i].Protocol = cmp.Or(ports[i].Protocol, "TCP")
		}
	}
	for i := range s.Ingress {
		fill(s.Ingress[i].Ports)
	}
	for i := range s.Egress {
		fill(s.Egress[i].Ports)
	}
}

// Isolates reports whether the policy is about this direction.
func (s *NetworkPolicySpec) Isolates(direction string) bool {
	return slices.Contains(s.PolicyTypes, direction)
}

// PortNamed is the number of the port of t's members of this name and protocol; 0: there is none.
func PortNamed(t *spec.Template, name, protocol string) int32 {
	for c := range t.Spec.Lasting() {
		for _, port := range c.Ports {
			if port.Name == name && cmp.Or(port.Protocol, "TCP") == cmp.Or(protocol, "TCP") {
				return port.ContainerPort
			}
		}
	}
	return 0
}

// ownLabels are the labels that each member of a set has of itself.
var ownLabels = []string{LabelMemberName, LabelMemberIndex}

// MemberLabels are the labels that a member has of itself.
func MemberLabels(id spec.Identity) map[string]string {
	return map[string]string{LabelMemberName: id.MemberName(), LabelMemberIndex: strconv.Itoa(id.Ordinal)}
}

// SplitOwn divides s, of which all must match, into what is about labels that all members of a set have, and what
// is about labels that each has of itself; nil: nothing is.
func SplitOwn(s *spec.LabelSelector) (common, own *spec.LabelSelector) {
	common, own = &spec.LabelSelector{}, &spec.LabelSelector{}
	at := func(key string) *spec.LabelSelector {
		if slices.Contains(ownLabels, key) {
			return own
		}
		return common
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		to := at(key)
		if to.MatchLabels == nil {
			to.MatchLabels = map[string]string{}
		}
		to.MatchLabels[key] = s.MatchLabels[key]
	}
	for _, r := range s.MatchExpressions {
		to := at(r.Key)
		to.MatchExpressions = append(to.MatchExpressions, r)
	}
	if len(own.MatchLabels)+len(own.MatchExpressions) == 0 {
		own = nil
	}
	return common, own
}

// IsEmpty reports whether s selects everything.
func IsEmpty(s *spec.LabelSelector) bool { return len(s.MatchLabels)+len(s.MatchExpressions) == 0 }
