package spec

import (
	"cmp"
	"net/netip"
	"strings"
	"time"

	"github.com/stead-project/stead/spec/scalar"
)

// Service gives a DNS name, and an address of its own, to members selected by labels.
type Service struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Metadata   ObjectMeta  `json:"metadata"`
	Spec       ServiceSpec `json:"spec"`
	Status     any         `json:"status,omitempty" stead:"ignored"`
}

// ServiceSpec says which members a service leads to, and how.
type ServiceSpec struct {
	// ClusterIP is None (the name resolves to the members' addresses), an address of the range of
	// services that is free, or "": an address is chosen.
	ClusterIP string `json:"clusterIP,omitempty"`
	// Selector are labels of a set's template, and those that a member has of itself:
	// statefulset.kubernetes.io/pod-name and apps.kubernetes.io/pod-index.
	Selector map[string]string `json:"selector,omitempty"`
	Ports    []ServicePort     `json:"ports,omitempty"`
	// PublishNotReadyAddresses leads to members before they are ready, too.
	PublishNotReadyAddresses bool `json:"publishNotReadyAddresses,omitempty"`
	// Type is ClusterIP (default), NodePort: each node's own addresses lead to the members, too, or ExternalName:
	// the name is another one's alias. LoadBalancer is NodePort with an address for clients outside, if the operator
	// gave addresses for that (stead server --load-balancer-cidr); without them it means NodePort, with a warning.
	Type string `json:"type,omitempty"`
	// ExternalName is the name, of type ExternalName alone, whose alias (CNAME) the Service's name is; it may be of the
	// cluster or not.
	ExternalName string `json:"externalName,omitempty"`
	// AllocateLoadBalancerNodePorts is whether ports of nodes are chosen for type LoadBalancer; default true.
	AllocateLoadBalancerNodePorts *bool `json:"allocateLoadBalancerNodePorts,omitempty"`
	// LoadBalancerIP is the address, of those that the operator gave, for type LoadBalancer; "": one is chosen, and kept.
	LoadBalancerIP string `json:"loadBalancerIP,omitempty"`
	// ExternalIPs are addresses that lead to the members, too, for clients outside. Needs the operator's permission
	// (stead server --external-ip-cidr); each is of one Service.
	ExternalIPs []string `json:"externalIPs,omitempty"`
	// SessionAffinity is None (default: each connection is led anew) or ClientIP (a client stays
	// with its member).
	SessionAffinity       string                 `json:"sessionAffinity,omitempty"`
	SessionAffinityConfig *SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`
	// InternalTrafficPolicy is Cluster (default) or Local: connections to the address are led to
	// members on the client's own node only.
	InternalTrafficPolicy string `json:"internalTrafficPolicy,omitempty"`
	// ExternalTrafficPolicy is Cluster (default) or Local: a node leads clients outside, by its ports and by addresses
	// for clients outside, to members on itself only, which see the client's address; without one it drops what
	// they send. Hosts, for themselves, and members are led as with Cluster.
	ExternalTrafficPolicy string `json:"externalTrafficPolicy,omitempty"`
	// LoadBalancerSourceRanges are the ranges (CIDR) from which connections to the address of type LoadBalancer are
	// led; others are dropped, those of members and hosts, too. None: everybody's.
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// HealthCheckNodePort is the port at which each node says by HTTP how many ready members it has, for type
	// LoadBalancer with externalTrafficPolicy Local: 30000 to 32767; 0: one is chosen, and kept.
	HealthCheckNodePort int32 `json:"healthCheckNodePort,omitempty"`

	ClusterIPs          any `json:"clusterIPs,omitempty" stead:"ignored"`
	IPFamilies          any `json:"ipFamilies,omitempty" stead:"ignored"`
	IPFamilyPolicy      any `json:"ipFamilyPolicy,omitempty" stead:"ignored,same=SingleStack"`
	LoadBalancerClass   any `json:"loadBalancerClass,omitempty" stead:"ignored"`
	TrafficDistribution any `json:"trafficDistribution,omitempty" stead:"ignored"`
}

// ServicePort is a port of a service; named ones have SRV records.
type ServicePort struct {
	Name string `json:"name,omitempty"`
	Port int32  `json:"port"`
	// Protocol is TCP (default), UDP or SCTP.
	Protocol string `json:"protocol,omitempty"`
	// TargetPort is the number, or the name, of the members' port; nil: that of Port. With
	// clusterIP None it is what SRV records show and clients use.
	TargetPort *scalar.PortRef `json:"targetPort,omitempty"`
	// NodePort is a port of each node's own addresses that leads to the members, too, for types NodePort and
	// LoadBalancer: 30000 to 32767; 0: one is chosen.
	NodePort    int32   `json:"nodePort,omitempty"`
	AppProtocol *string `json:"appProtocol,omitempty" stead:"ignored"`
}

// SessionAffinityConfig says how long a client stays with its member.
type SessionAffinityConfig struct {
	ClientIP *ClientIPAffinity `json:"clientIP,omitempty"`
}

// ClientIPAffinity is the affinity of clients by their address.
type ClientIPAffinity struct {
	// TimeoutSeconds is how long after its last connection a client stays with its member, 1 to
	// 86400; default 10800.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// defaultAffinitySeconds is Kubernetes' default of TimeoutSeconds.
const defaultAffinitySeconds = 10800

// IsAlias reports whether the name of the service is the alias of another one: it has no address and no members.
func (s *ServiceSpec) IsAlias() bool { return s.Type == "ExternalName" }

// Selected are the labels of the members that the service leads to; none: it leads to no members.
func (s *ServiceSpec) Selected() map[string]string {
	if s.IsAlias() {
		return nil
	}
	return s.Selector
}

// servicePrefix starts the name under which nodes are sent a Service that selects no members. No set has
// such a name.
const servicePrefix = "svc:"

// ServiceRef is under what nodes are sent a Service of the namespace by itself, beside sets. It is that of no set.
func (ns Namespace) ServiceRef(name string) SetRef {
	return SetRef{Namespace: ns, Name: SetName(servicePrefix + name)}
}

// ServiceName is the name of the Service that nodes are sent as r; false: r is not that of a Service.
func (r SetRef) ServiceName() (name string, is bool) {
	return strings.CutPrefix(string(r.Name), servicePrefix)
}

// Headless reports whether clients are meant to connect to members by their own addresses.
func (s *ServiceSpec) Headless() bool { return s.ClusterIP == "None" }

// Affinity is how long a client stays with its member; 0: each connection is led anew.
func (s *ServiceSpec) Affinity() time.Duration {
	if s.SessionAffinity != "ClientIP" {
		return 0
	}
	seconds := int32(defaultAffinitySeconds)
	if c := s.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	return time.Duration(seconds) * time.Second
}

// The range of ports of nodes.
const (
	FirstNodePort = 30000
	LastNodePort  = 32767
)

// OpensPorts reports whether each of the ports gets one of the nodes, whether or not it names one.
func (s *ServiceSpec) OpensPorts() bool {
	return s.Type == "NodePort" || s.Type == "LoadBalancer" && (s.AllocateLoadBalancerNodePorts == nil || *s.AllocateLoadBalancerNodePorts)
}

// OnNode reports whether connections to the address are led to members on the client's own node only.
func (s *ServiceSpec) OnNode() bool { return s.InternalTrafficPolicy == "Local" }

// OutsideOnNode reports whether clients outside are led to members on the node only to which they connect.
func (s *ServiceSpec) OutsideOnNode() bool { return s.ExternalTrafficPolicy == "Local" }

// AnswersHealth reports whether each node says at a port of its own how many ready members it has.
func (s *ServiceSpec) AnswersHealth() bool { return s.Type == "LoadBalancer" && s.OutsideOnNode() }

// IsReachedOutside reports whether clients outside are led by a port of the nodes or an address of their own.
func (s *ServiceSpec) IsReachedOutside() bool {
	return s.Type == "NodePort" || s.Type == "LoadBalancer" || s.Type == "ClusterIP" && !s.Headless() && len(s.ExternalIPs) > 0
}

// Reached are the ports at which clients reach the members of t: of a headless service the
// target ports, as in the endpoints of Kubernetes, where a named port that t does not have is
// left out. The result may be s's own slice.
func (s *ServiceSpec) Reached(t *Template) []ServicePort {
	if !s.Headless() {
		return s.Ports
	}
	var out []ServicePort
	for _, p := range s.Ports {
		p.Port = p.Target(t)
		if p.Port != 0 {
			out = append(out, p)
		}
	}
	return out
}

// Led are the ports of the service's own address, with the number of the members' port that each
// leads to as TargetPort; 0: t has no port of that name and protocol, or is nil.
func (s *ServiceSpec) Led(t *Template) []ServicePort {
	out := make([]ServicePort, 0, len(s.Ports))
	for _, p := range s.Ports {
		number := int32(0)
		if t != nil {
			number = p.Target(t)
		}
		out = append(out, ServicePort{Name: p.Name, Port: p.Port, Protocol: p.Protocol, TargetPort: &scalar.PortRef{Number: number}, NodePort: p.NodePort})
	}
	return out
}

// Target is the number of the members' port that p leads to; 0: t has no port of that name
// and protocol.
func (p *ServicePort) Target(t *Template) int32 {
	switch to := p.TargetPort; {
	case to == nil:
		return p.Port
	case to.Name == "":
		return to.Number
	}
	for c := range t.Spec.Lasting() {
		for _, port := range c.Ports {
			if port.Name == p.TargetPort.Name && cmp.Or(port.Protocol, "TCP") == cmp.Or(p.Protocol, "TCP") {
				return port.ContainerPort
			}
		}
	}
	return 0
}

// FixedIP is the address that the manifest writes; invalid: none.
func (s *ServiceSpec) FixedIP() (a netip.Addr) {
	if !s.Headless() {
		a, _ = netip.ParseAddr(s.ClusterIP)
	}
	return a
}
