package records

import (
	"net/netip"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
)

// NetworkPolicyRecord is networkpolicies/<ns>/<name>. Only writer: control.
type NetworkPolicyRecord struct {
	Meta
	Spec netpol.NetworkPolicySpec `json:"spec"`
}

// PolicyLevel is the level of agents (NodeFacts.Level) that enforce NetworkPolicies.
const PolicyLevel = 2

// Selects reports whether the policy selects members of set.
func (r *NetworkPolicyRecord) Selects(set *Set) bool {
	if r.Namespace != set.Ref.Namespace {
		return false
	}
	common, _ := netpol.SplitOwn(&r.Spec.PodSelector)
	return common.Matches(set.Spec.Template.Metadata.Labels)
}

// SetPolicy is a NetworkPolicy as it holds for members of one set: other sets are named, whose addresses each
// node knows, and ports are numbers.
type SetPolicy struct {
	Name string `json:"name"` // for people
	// Members are those that it selects, by the labels that each has of itself; nil: all.
	Members *spec.LabelSelector `json:"members,omitempty"`
	// Ingress: nothing may reach them but what From, or another policy, allows.
	Ingress bool         `json:"ingress,omitempty"`
	From    []PolicyRule `json:"from,omitempty"`
	// Egress: they may reach nothing but what To, or another policy, allows.
	Egress bool         `json:"egress,omitempty"`
	To     []PolicyRule `json:"to,omitempty"`
}

// PolicyRule allows each of Parties at each of Ports.
type PolicyRule struct {
	Anybody bool          `json:"anybody,omitempty"` // whoever it is; there are no Parties then
	Parties []PolicyParty `json:"parties,omitempty"`
	Ports   []PolicyPorts `json:"ports,omitempty"` // of the destination; none: all
}

// PolicyParty is one of: a range of addresses, all members and DNS, DNS alone, or members.
type PolicyParty struct {
	Block  netip.Prefix   `json:"block,omitzero"` // IPv4
	Except []netip.Prefix `json:"except,omitempty"`

	Everyone bool `json:"everyone,omitempty"`
	DNS      bool `json:"dns,omitempty"`

	// Namespace and Set are of members; "" as Set: of all sets of the namespace.
	Namespace spec.Namespace `json:"namespace,omitempty"`
	Set       spec.SetName   `json:"set,omitempty"`
	// Members are those of them, by the labels that each has of itself; nil: all.
	Members *spec.LabelSelector `json:"members,omitempty"`
}

// PolicyPorts is a range of ports of a protocol; 0 as First: all of them.
type PolicyPorts struct {
	Protocol string `json:"protocol"`
	First    int32  `json:"first,omitempty"`
	Last     int32  `json:"last,omitempty"`
}
