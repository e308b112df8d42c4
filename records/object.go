package records

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/quota"
	"github.com/stead-project/stead/spec/scalar"
)

// Meta is the common part of the records of services, budgets, ConfigMaps and Secrets.
type Meta struct {
	Namespace spec.Namespace `json:"namespace"`
	Name      string         `json:"name"`
	// Generation grows with each change of the content; labels and annotations are not part of it.
	Generation  int64             `json:"generation"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// MetaOf is the metadata of a new record of m.
func MetaOf(m spec.ObjectMeta) Meta {
	return Meta{Namespace: m.Namespace, Name: m.Name, Generation: 1, Labels: m.Labels, Annotations: m.Annotations}
}

// Common is the common part of the record that m is part of.
func (m *Meta) Common() *Meta { return m }

// Manifest is the metadata of the object's manifest. It shares m's labels and annotations.
func (m Meta) Manifest() spec.ObjectMeta {
	return spec.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations}
}

// SameMarks reports whether m and o have the same labels and annotations.
func (m *Meta) SameMarks(o *Meta) bool {
	return maps.Equal(m.Labels, o.Labels) && maps.Equal(m.Annotations, o.Annotations)
}

// ServiceRecord is services/<ns>/<name>. Only writer, as of the others here: control.
type ServiceRecord struct {
	Meta
	// Spec has as ClusterIP None, or what nobody reads: see Address.
	Spec spec.ServiceSpec `json:"spec"`
	// Address is the service's own, held by serviceaddresses/<ip>; invalid: it has none, because it
	// is headless, or was stored by a version that gave none.
	Address netip.Addr `json:"address,omitzero"`
	// LoadBalancer is its address for clients outside, of type LoadBalancer; invalid: it has none.
	LoadBalancer netip.Addr `json:"loadBalancer,omitzero"`
}

// Outside are the addresses for clients outside, each held by serviceaddresses/<ip>.
func (r *ServiceRecord) Outside() (out []netip.Addr) {
	if r.LoadBalancer.IsValid() {
		out = append(out, r.LoadBalancer)
	}
	for _, text := range r.Spec.ExternalIPs {
		if a, err := netip.ParseAddr(text); err == nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// Sources are the ranges from which connections to the load balancer's address are led; nil: from everywhere. One that
// cannot be read is nobody's.
func (r *ServiceRecord) Sources() (out []netip.Prefix) {
	if !r.LoadBalancer.IsValid() {
		return nil
	}
	for _, text := range r.Spec.LoadBalancerSourceRanges {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			p = netip.PrefixFrom(netip.IPv6Unspecified(), 128)
		}
		out = append(out, p.Masked())
	}
	return out
}

// NodePorts are the numbers of the nodes' ports that the service has, each held by nodeports/<port>: those of its ports, and
// the one that says who is ready. A number may be there twice.
func (r *ServiceRecord) NodePorts() (out []int32) {
	for _, p := range r.Spec.Ports {
		if p.NodePort != 0 {
			out = append(out, p.NodePort)
		}
	}
	if r.Spec.HealthCheckNodePort != 0 {
		out = append(out, r.Spec.HealthCheckNodePort)
	}
	return out
}

// Addresses are all that the service has.
func (r *ServiceRecord) Addresses() []netip.Addr {
	if !r.Address.IsValid() {
		return r.Outside()
	}
	return append(r.Outside(), r.Address)
}

// ServiceAddress is serviceaddresses/<ip>: the service that an address belongs to, or (Freed) did
// before it was deleted. It leads to no other service before it has rested (SAFETY S17).
type ServiceAddress struct {
	Address   netip.Addr     `json:"address"`
	Namespace spec.Namespace `json:"namespace"`
	Name      string         `json:"name"`
	Freed     bool           `json:"freed,omitempty"`
}

// NodePort is nodeports/<port>: the service whose port of the nodes it is, of any protocol, or whose health is told there.
type NodePort struct {
	Port      int32          `json:"port"`
	Namespace spec.Namespace `json:"namespace"`
	Name      string         `json:"name"`
}

// ConfigRecord is configs/<ns>/<name>: the files of a ConfigMap.
type ConfigRecord struct {
	Meta
	Files map[string]scalar.Bytes `json:"files"`
	// Immutable: neither Files nor this changes any more.
	Immutable bool `json:"immutable,omitempty"`
}

// SecretRecord is secrets/<ns>/<name>: the files of a Secret, sealed with the cluster's key.
type SecretRecord struct {
	Meta
	Type string `json:"type,omitempty"`
	// Keys are the names of the files, for get and describe; never their content.
	Keys []string `json:"keys"`
	// Sealed is nonce and AES-256-GCM ciphertext of the JSON of map[string][]byte,
	// with "secrets/<ns>/<name>" as additional data.
	Sealed scalar.Bytes `json:"sealed"`
	// Immutable: neither the files, nor Type, nor this changes any more.
	Immutable bool `json:"immutable,omitempty"`
}

// ClaimRecord is claims/<ns>/<name>: a PersistentVolumeClaim. Its volume is a record of its own
// below spec.ClaimIdentity, which there is from its first use on. Written by control; the engine
// removes it when it is Deleting and nothing uses its volume.
type ClaimRecord struct {
	Meta
	Spec spec.ClaimSpec `json:"spec"`
	// Deleting: it goes, and its volume is given up, once no life uses that. No life starts with it.
	Deleting bool `json:"deleting,omitempty"`
}

// Identity is the one to which the claim's volume belongs.
func (r *ClaimRecord) Identity() spec.Identity { return spec.ClaimIdentity(r.Namespace, r.Name) }

// BudgetRecord is budgets/<ns>/<name>.
type BudgetRecord struct {
	Meta
	Spec spec.BudgetSpec `json:"spec"`
}

// QuotaRecord is quotas/<ns>/<name>.
type QuotaRecord struct {
	Meta
	Spec quota.ResourceQuotaSpec `json:"spec"`
}

// Selects reports whether the budget holds for set.
func (r *BudgetRecord) Selects(set *Set) bool {
	return r.Namespace == set.Ref.Namespace && r.Spec.Selector.Matches(set.Spec.Template.Metadata.Labels)
}

// Floor is how many of so many members must stay available.
func (r *BudgetRecord) Floor(members int) int {
	d := spec.Disruption{MinAvailable: r.Spec.MinAvailable, MaxUnavailable: r.Spec.MaxUnavailable}
	return d.Floor(members)
}
