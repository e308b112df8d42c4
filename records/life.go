package records

import (
	"net/netip"
	"slices"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Life is all an agent needs to run one life: the member with its template.
type Life struct {
	Member   Member        `json:"member"`
	Template spec.Template `json:"template"`
	// Service is the governing service of the set, Domain the cluster's domain:
	// the member is <name>.<service>.<namespace>.svc.<domain>.
	Service string `json:"service"`
	Domain  string `json:"domain"`
	// MinReadySeconds is how long it must be ready to be available; the agent
	// reports again when that is reached.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// FreshVolumes are the claims whose volume was never ready once, by how it
	// came to be: "first" or "replaced" (SAFETY S11, S19).
	FreshVolumes map[spec.ClaimName]string `json:"freshVolumes,omitempty"`
	// Forgotten is the last life of which the others were told that the member has left for good, if no later one was ready; zero: there is none.
	Forgotten spec.Token `json:"forgotten,omitzero"`
	// UnusedClaims are the PersistentVolumeClaims of the life on whose volume no life was ever
	// ready, sorted: these volumes may have to be made.
	UnusedClaims []spec.ClaimName `json:"unusedClaims,omitempty"`
	// SetGeneration is the generation of the set when the life was told.
	SetGeneration int64 `json:"setGeneration,omitempty"`
	// Bootstrapped: the set was bootstrapped when the life was told. It comes with
	// the life, so that no member of a bootstrapped set can start before it is told so.
	Bootstrapped bool `json:"bootstrapped,omitempty"`
	// NoServiceLinks: containers get no variables of services, by the set's present template. It is no
	// part of the revision.
	NoServiceLinks bool `json:"noServiceLinks,omitempty"`
}

// ServiceLink is a service as variables of containers show it. Each port has a protocol.
type ServiceLink struct {
	Name    string
	Address netip.Addr
	Ports   []spec.ServicePort
}

// The words of Life.FreshVolumes and of /run/stead/volume-new.
const (
	// VolumeFirst: the set is not bootstrapped and has no volume that was used.
	VolumeFirst = "first"
	// VolumeReplaced: this one is new, but the set has data, or had another volume here.
	VolumeReplaced = "replaced"
)

// FQDN is the member's stable name, without trailing dot.
func (l *Life) FQDN() string {
	return MemberFQDN(l.Member.ID, l.Service, l.Domain)
}

// MaxHostname is the kernel's bound of a hostname, in bytes.
const MaxHostname = 64

// Hostname is what the member's UTS namespace has: its name, or its FQDN with setHostnameAsFQDN; in the network
// of its node the node's name, cut where it is longer than MaxHostname.
func (l *Life) Hostname() string {
	if l.Template.Spec.HostNetwork {
		return string(l.Member.Node[:min(len(l.Member.Node), MaxHostname)])
	}
	if long := l.Template.Spec.SetHostnameAsFQDN; long != nil && *long {
		return l.FQDN()
	}
	return l.Member.ID.MemberName()
}

// MemberFQDN is <set>-<ordinal>.<service>.<namespace>.svc.<domain>.
func MemberFQDN(id spec.Identity, service, domain string) string {
	return id.MemberName() + "." + service + "." + string(id.Namespace) + ".svc." + domain
}

// Snapshot is one set at one moment, as nodes and members see it: the source of
// DNS and of /run/stead/set.json. A receiver never goes back in Sequence. A Service that no set
// can tell of is a Snapshot, too, with it as the only one of Names (spec.Namespace.ServiceRef).
type Snapshot struct {
	Sequence   spec.Sequence `json:"sequence"`
	Ref        spec.SetRef   `json:"ref"`
	UID        spec.UID      `json:"uid"`
	Generation int64         `json:"generation"`
	Replicas   int           `json:"replicas"`
	// InitialReplicas is the number of members at the set's creation: those that
	// form a cluster with each other; later ones join it.
	InitialReplicas int `json:"initialReplicas"`
	// InitialOrdinals are those of these members, ascending.
	InitialOrdinals []int  `json:"initialOrdinals,omitempty"`
	Bootstrapped    bool   `json:"bootstrapped"`
	Service         string `json:"service"` // governing
	// Former is the service under which the members are found as well, because it was
	// renamed and not all run a life begun since; "": there is none.
	Former string `json:"former,omitempty"`
	Peers  []Peer `json:"peers"` // ordinal order; every identity with an address
	// Expected are members that have no address yet, but a volume from before. They are no
	// part of DNS.
	Expected []Peer    `json:"expected,omitempty"`
	Names    []DNSName `json:"names"` // services that select the set, governing included
	// Policies are the NetworkPolicies that select members of the set, by name.
	Policies []SetPolicy `json:"policies,omitempty"`
	// Told is the last change of the set's history that the picture includes.
	Told ChangeID `json:"told,omitzero"`
	// Gone: the set no longer exists; all else is empty but Ref and Sequence.
	Gone bool `json:"gone,omitempty"`
	// Brief: it says only which names there are, and on which hosts the addresses are (InBrief).
	Brief bool `json:"brief,omitempty"`
}

// InBrief is what a node knows of a set that neither its members nor itself ask for: the names below
// which there are members, and where each address is.
func (s *Snapshot) InBrief() Snapshot {
	out := Snapshot{Sequence: s.Sequence, Ref: s.Ref, Gone: s.Gone, Service: s.Service, Former: s.Former, Brief: true}
	for _, n := range s.Names {
		out.Names = append(out.Names, DNSName{Name: n.Name})
	}
	for _, p := range s.Peers {
		out.Peers = append(out.Peers, p.InBrief())
	}
	return out
}

// SetNames is the set in short.
func (s *Snapshot) SetNames() SetNames {
	out := SetNames{Ref: s.Ref, Service: s.Service}
	for _, n := range s.Names {
		out.Names = append(out.Names, n.Name)
	}
	if n := len(s.Peers); n > 0 {
		out.First, out.End = s.Peers[0].Ordinal, s.Peers[n-1].Ordinal+1
	}
	return out
}

// Peer is one member of a Snapshot.
type Peer struct {
	Name    string     `json:"name"`
	Ordinal int        `json:"ordinal"`
	FQDN    string     `json:"fqdn"`
	Address netip.Addr `json:"address"`
	Ready   bool       `json:"ready"`
	// Node is where its life is, and Host that node's address for other hosts; zero: it
	// has no life, the node does not say, or the member is in the network of its node, whose address is
	// Address then.
	Node spec.NodeName `json:"node,omitempty"`
	Host netip.Addr    `json:"host,omitzero"`
	// Volumes is VolumesUsed or VolumesNew; "": it has no volume.
	Volumes string `json:"volumes,omitempty"`
	// Note, Leads and Term are what it says of itself (Claim). Who leads among all is Leader's to say.
	Note  string `json:"note,omitempty"`
	Leads bool   `json:"leads,omitempty"`
	Term  uint64 `json:"term,omitempty"`
}

// InBrief is p as a brief snapshot has it.
func (p Peer) InBrief() Peer {
	p.Ready, p.Volumes, p.Note, p.Leads, p.Term = false, "", "", false, 0
	return p
}

// The words of Peer.Volumes.
const (
	VolumesUsed = "used" // a life was ready on one of them
	VolumesNew  = "new"
)

// DNSName is a service's name with what DNS needs of it.
type DNSName struct {
	Name            string             `json:"name"`
	PublishNotReady bool               `json:"publishNotReady,omitempty"`
	Ports           []spec.ServicePort `json:"ports,omitempty"`
	// Address is the service's own: its name resolves to it, and each of Ports leads to the port of
	// the set's members that is its TargetPort's number (0: to none of them). Invalid: the name
	// resolves to the members' addresses.
	Address netip.Addr `json:"address,omitzero"`
	// AffinitySeconds is how long a client of the address stays with its member; 0: each connection is
	// led anew.
	AffinitySeconds int32 `json:"affinitySeconds,omitempty"`
	// Only is the ordinal of the one member that it selects; nil: all of the set.
	Only *int32 `json:"only,omitempty"`
	// Leader: it selects the member that leads, if it has that one (Snapshot.Selected).
	Leader bool `json:"leader,omitempty"`
	// OnNode: connections to the address are led to members on the client's own node only.
	OnNode bool `json:"onNode,omitempty"`
	// ExternalName is the name whose alias this one is; "": it is none's.
	ExternalName string `json:"externalName,omitempty"`
	// Outside are more addresses that lead as Address does, for clients outside; its name does not resolve to them.
	Outside []netip.Addr `json:"outside,omitempty"`
	// OutsideOnNode: clients outside, by Outside or ports of the nodes, are led to members on the node only to which
	// they connect, and keep their address.
	OutsideOnNode bool `json:"outsideOnNode,omitempty"`
	// Balancer is the one of Outside to which connections are led from Sources alone; invalid: there are no Sources.
	Balancer netip.Addr     `json:"balancer,omitzero"`
	Sources  []netip.Prefix `json:"sources,omitempty"`
	// HealthPort is where each node says by HTTP how many of the members it leads to are on it; 0: nowhere.
	HealthPort int32 `json:"healthPort,omitempty"`
	// Endpoints are, of a Service of its own, all that its ports lead to (see EndpointsOf); without an Address the
	// name resolves to them.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
}

// Selected says which members of the set a service selects, by ordinal; nil: all.
func (s *Snapshot) Selected(n *DNSName) func(ordinal int) bool {
	if n.Only == nil && !n.Leader {
		return nil
	}
	leader, leads := NoOrdinal, true
	if n.Leader {
		leader, leads = Leader(s.Peers)
	}
	return func(ordinal int) bool {
		return leads && (n.Only == nil || int(*n.Only) == ordinal) && (!n.Leader || leader == ordinal)
	}
}

// Served reports whether connections to the address of a service may lead to members of the set, or it is no
// set but a Service of its own (spec.Namespace.ServiceRef).
func (s *Snapshot) Served() bool {
	if _, is := s.Ref.ServiceName(); is {
		return !s.Gone
	}
	return slices.ContainsFunc(s.Names, func(n DNSName) bool { return n.Address.IsValid() })
}

// SetNames is a set in short: what of DNS's names it has, and nothing of what they lead to.
type SetNames struct {
	Ref spec.SetRef `json:"ref"`
	// Service is the governing service, and Names are all services, sorted, below which the
	// set's members are found, the governing one included.
	Service string   `json:"service"`
	Names   []string `json:"names"`
	// First and End bound the ordinals of the members: all of them are in [First, End), in which
	// there may be ordinals without a member.
	First int `json:"first"`
	End   int `json:"end"`
}

// File sources of a namespace, as told to a node that runs lives which name them.

// Files is the content of one ConfigMap or Secret at one moment.
type Files struct {
	Kind      string                  `json:"kind"` // ConfigMap or Secret
	Namespace spec.Namespace          `json:"namespace"`
	Name      string                  `json:"name"`
	Sequence  spec.Sequence           `json:"sequence"`
	Content   map[string]scalar.Bytes `json:"content"`
	// Type is that of a Secret; "" of a ConfigMap.
	Type string `json:"type,omitempty"`
	// Absent: there is no such object (now).
	Absent bool `json:"absent,omitempty"`
}
