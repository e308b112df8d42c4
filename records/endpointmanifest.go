package records

import (
	"cmp"

	"github.com/stead-project/stead/spec"
)

// Endpoints is a manifest. It says where a Service of its name leads that selects no members (Kubernetes' v1 Endpoints).
type Endpoints struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   spec.ObjectMeta  `json:"metadata"`
	Subsets    []EndpointSubset `json:"subsets,omitempty"`
}

// EndpointSubset is all combinations of its addresses and its ports.
type EndpointSubset struct {
	Addresses []EndpointAddress `json:"addresses,omitempty"`
	// NotReadyAddresses are known, and nothing leads to them.
	NotReadyAddresses []EndpointAddress `json:"notReadyAddresses,omitempty"`
	Ports             []EndpointPort    `json:"ports,omitempty"`
}

// EndpointAddress is one address of an EndpointSubset.
type EndpointAddress struct {
	// IP is IPv4, and no address of the range of services.
	IP string `json:"ip"`
	// Hostname is the label of its own name below the Service's, if that has clusterIP None; default: made of IP.
	Hostname string `json:"hostname,omitempty"`
	// NodeName is where it is, for internalTrafficPolicy and externalTrafficPolicy Local.
	NodeName  string `json:"nodeName,omitempty"`
	TargetRef any    `json:"targetRef,omitempty" stead:"ignored"`
}

// EndpointPort is a port of each of the addresses beside it.
type EndpointPort struct {
	// Name is that of the Service's port that leads here; "": of the one without a name.
	Name string `json:"name,omitempty"`
	Port int32  `json:"port"`
	// Protocol is TCP (default), UDP or SCTP, and that of the Service's port.
	Protocol    string  `json:"protocol,omitempty"`
	AppProtocol *string `json:"appProtocol,omitempty" stead:"ignored"`
}

// EndpointSlice is a manifest. It says where a Service leads that selects no members, and that its label ServiceNameLabel
// names. A Service has any number of them, and leads to all.
type EndpointSlice struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   spec.ObjectMeta `json:"metadata"`
	// AddressType is IPv4.
	AddressType string          `json:"addressType"`
	Endpoints   []SliceEndpoint `json:"endpoints"`
	Ports       []EndpointPort  `json:"ports,omitempty"`
}

// ServiceNameLabel is the label of an EndpointSlice with the name of its Service.
const ServiceNameLabel = "kubernetes.io/service-name"

// SliceEndpoint is one endpoint of an EndpointSlice.
type SliceEndpoint struct {
	// Addresses are IPv4, and none of the range of services. Each is led to.
	Addresses  []string            `json:"addresses"`
	Conditions *EndpointConditions `json:"conditions,omitempty"`
	// Hostname is the label of its own name below the Service's, if that has clusterIP None; default: made of the
	// address.
	Hostname string `json:"hostname,omitempty"`
	// NodeName is where it is, for internalTrafficPolicy and externalTrafficPolicy Local.
	NodeName  string `json:"nodeName,omitempty"`
	TargetRef any    `json:"targetRef,omitempty" stead:"ignored"`
	Zone      any    `json:"zone,omitempty" stead:"ignored"`
	Hints     any    `json:"hints,omitempty" stead:"ignored"`

	DeprecatedTopology any `json:"deprecatedTopology,omitempty" stead:"ignored"`
}

// EndpointConditions are the state of an endpoint.
type EndpointConditions struct {
	// Ready is whether it is led to; default true.
	Ready *bool `json:"ready,omitempty"`
	// Serving and Terminating, both true, make an endpoint that is not ready one that is led to as long as none
	// is ready; the default of the first is true, of the second false.
	Serving     *bool `json:"serving,omitempty"`
	Terminating *bool `json:"terminating,omitempty"`
}

// IsReady reports whether it is led to.
func (e *SliceEndpoint) IsReady() bool {
	return e.Conditions == nil || e.Conditions.Ready == nil || *e.Conditions.Ready
}

// IsEnding reports whether it is led to while none is ready.
func (e *SliceEndpoint) IsEnding() bool {
	c := e.Conditions
	return c != nil && (c.Serving == nil || *c.Serving) && c.Terminating != nil && *c.Terminating
}

// DefaultEndpointPorts fills what ports leave out.
func DefaultEndpointPorts(ports []EndpointPort) {
	for i := range ports {
		ports[i].Protocol = cmp.Or(ports[i].Protocol, "TCP")
	}
}
