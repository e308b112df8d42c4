package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	goproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// SetName converts to the wire.
func SetName(ref spec.SetRef) *proto.SetName {
	return &proto.SetName{Namespace: string(ref.Namespace), Name: string(ref.Name)}
}

// ToSetRef converts from the wire; nil is the zero reference.
func ToSetRef(p *proto.SetName) spec.SetRef {
	return spec.SetRef{Namespace: spec.Namespace(p.GetNamespace()), Name: spec.SetName(p.GetName())}
}

// WholeSet is a snapshot as a difference from nothing, without its numbers. domain is that of
// the cluster.
func WholeSet(s *records.Snapshot, domain string) *proto.SetDifference {
	d := &proto.SetDifference{Set: SetName(s.Ref), Sequence: Sequence(s.Sequence), Gone: s.Gone, Brief: s.Brief}
	if s.Gone {
		return d
	}
	d.Head = SetHead(s, domain)
	if !s.Brief {
		d.LastChange = SetChange(s.Told)
	}
	for i := range s.Peers {
		d.Peers = append(d.Peers, SetPeer(s, &s.Peers[i], domain))
	}
	return d
}

// SetHead is what of a snapshot is not its peers'.
func SetHead(s *records.Snapshot, domain string) *proto.SetHead {
	h := &proto.SetHead{
		Uid: string(s.UID), Generation: s.Generation, Replicas: int32(s.Replicas), InitialReplicas: int32(s.InitialReplicas),
		Bootstrapped: s.Bootstrapped, Service: s.Service, Former: s.Former,
	}
	for _, o := range s.InitialOrdinals {
		h.InitialOrdinals = append(h.InitialOrdinals, int32(o))
	}
	for _, n := range s.Names {
		service := &proto.SetService{
			Name: n.Name, PublishNotReady: n.PublishNotReady,
			Address: n.Address.AsSlice(), AffinitySeconds: n.AffinitySeconds, Local: n.OnNode, ExternalName: n.ExternalName, Only: n.Only,
			OutsideLocal: n.OutsideOnNode, Balancer: n.Balancer.AsSlice(), HealthPort: n.HealthPort, Leader: n.Leader,
		}
		if n.Leader && n.Only == nil {
			service.Only = new(nobody)
		}
		for _, p := range n.Sources {
			service.Sources = append(service.Sources, p.String())
		}
		for _, p := range n.Ports {
			port := &proto.SetPort{Name: p.Name, Port: p.Port, Protocol: p.Protocol, NodePort: p.NodePort}
			if n.Address.IsValid() {
				port.Target = p.TargetPort.Number
			}
			service.Ports = append(service.Ports, port)
		}
		for _, a := range n.Outside {
			service.Outside = append(service.Outside, a.AsSlice())
		}
		for _, e := range n.Endpoints {
			service.Endpoints = append(service.Endpoints, &proto.SetEndpoint{
				Address: e.Address.AsSlice(), Port: e.Port, PortName: e.PortName, Protocol: e.Protocol, Host: e.Host, Node: string(e.Node),
			})
		}
		h.Services = append(h.Services, service)
	}
	for i := range s.Expected {
		h.Expected = append(h.Expected, SetPeer(s, &s.Expected[i], domain))
	}
	for i := range s.Policies {
		doc, _ := json.Marshal(&s.Policies[i]) // names, numbers and prefixes always marshal
		h.PoliciesJson = append(h.PoliciesJson, doc)
	}
	return h
}

// nobody is the ordinal of no member.
const nobody int32 = records.NoOrdinal

// SetPeer is a peer of a set, which names it by its service unless p says otherwise.
func SetPeer(set *records.Snapshot, p *records.Peer, domain string) *proto.SetPeer {
	out := &proto.SetPeer{
		Ordinal: int32(p.Ordinal), Address: p.Address.AsSlice(), Ready: p.Ready,
		Node: string(p.Node), Host: p.Host.AsSlice(), Volumes: p.Volumes,
		Note: p.Note, Leads: p.Leads, Term: p.Term,
	}
	if p.FQDN != records.MemberFQDN(identityIn(set.Ref, p.Ordinal), set.Service, domain) {
		out.Fqdn = p.FQDN
	}
	return out
}

// SetChange converts to the wire.
func SetChange(id records.ChangeID) *proto.SetChange {
	return &proto.SetChange{Epoch: id.Epoch, Number: id.Number}
}

// ApplySet is the snapshot that d leads to from had, which is not changed; of a whole one had
// does not matter.
func ApplySet(had records.Snapshot, d *proto.SetDifference, domain string) records.Snapshot {
	switch {
	case d.GetBase() == 0 || d.GetGone():
		had = records.Snapshot{}
	case d.GetTurned() && d.GetBrief():
		had = had.InBrief()
	}
	next := had
	next.Ref, next.Sequence, next.Gone, next.Brief = ToSetRef(d.GetSet()), ToSequence(d.GetSequence()), d.GetGone(), d.GetBrief()
	if h := d.GetHead(); h != nil {
		applyHead(&next, h, domain)
	}
	if c := d.GetLastChange(); c != nil {
		next.Told = records.ChangeID{Epoch: c.GetEpoch(), Number: c.GetNumber()}
	}
	if len(d.GetPeers())+len(d.GetLeft()) > 0 {
		next.Peers = applyPeers(&next, had.Peers, d, domain)
	}
	return next
}

func applyHead(s *records.Snapshot, h *proto.SetHead, domain string) {
	s.UID, s.Generation = spec.UID(h.GetUid()), h.GetGeneration()
	s.Replicas, s.InitialReplicas = int(h.GetReplicas()), int(h.GetInitialReplicas())
	s.Bootstrapped, s.Service, s.Former = h.GetBootstrapped(), h.GetService(), h.GetFormer()
	s.InitialOrdinals = make([]int, len(h.GetInitialOrdinals()))
	for i, o := range h.GetInitialOrdinals() {
		s.InitialOrdinals[i] = int(o)
	}
	s.Names = make([]records.DNSName, len(h.GetServices()))
	for i, n := range h.GetServices() {
		s.Names[i] = toName(n)
	}
	s.Expected = nil
	for _, p := range h.GetExpected() {
		s.Expected = append(s.Expected, toPeer(s, p, domain))
	}
	s.Policies = toPolicies(h.GetPoliciesJson())
}

func toName(n *proto.SetService) records.DNSName {
	address, _ := netip.AddrFromSlice(n.GetAddress()) // the zero address of none
	balancer, _ := netip.AddrFromSlice(n.GetBalancer())
	out := records.DNSName{
		Name: n.GetName(), PublishNotReady: n.GetPublishNotReady(),
		Address: address, AffinitySeconds: n.GetAffinitySeconds(), OnNode: n.GetLocal(), ExternalName: n.GetExternalName(), Only: n.Only,
		OutsideOnNode: n.GetOutsideLocal(), Balancer: balancer, HealthPort: n.GetHealthPort(), Leader: n.GetLeader(),
	}
	if out.Leader && n.GetOnly() == nobody {
		out.Only = nil
	}
	for _, p := range n.GetPorts() {
		port := spec.ServicePort{Name: p.GetName(), Port: p.GetPort(), Protocol: p.GetProtocol(), NodePort: p.GetNodePort()}
		if address.IsValid() {
			port.TargetPort = &scalar.PortRef{Number: p.GetTarget()}
		}
		out.Ports = append(out.Ports, port)
	}
	for _, raw := range n.GetOutside() {
		if a, ok := netip.AddrFromSlice(raw); ok {
			out.Outside = append(out.Outside, a)
		}
	}
	for _, text := range n.GetSources() {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			p = netip.PrefixFrom(netip.IPv6Unspecified(), 128) // nobody's
		}
		out.Sources = append(out.Sources, p)
	}
	for _, e := range n.GetEndpoints() {
		at, _ := netip.AddrFromSlice(e.GetAddress())
		out.Endpoints = append(out.Endpoints, records.Endpoint{
			Address: at, Port: e.GetPort(), PortName: e.GetPortName(), Protocol: e.GetProtocol(), Host: e.GetHost(), Node: spec.NodeName(e.GetNode()),
		})
	}
	return out
}

// toPolicies reads what a server sent of policies. One that cannot be read allows nothing in either
// direction.
func toPolicies(docs [][]byte) (out []records.SetPolicy) {
	for _, doc := range docs {
		var p records.SetPolicy
		if err := json.Unmarshal(doc, &p); err != nil {
			p = records.SetPolicy{Name: p.Name, Ingress: true, Egress: true}
		}
		out = append(out, p)
	}
	return out
}

// applyPeers merges the peers of d into had, both by ordinal, into a list of its own.
func applyPeers(set *records.Snapshot, had []records.Peer, d *proto.SetDifference, domain string) []records.Peer {
	left := make(map[int]bool, len(d.GetLeft()))
	for _, o := range d.GetLeft() {
		left[int(o)] = true
	}
	out := make([]records.Peer, 0, len(had)+len(d.GetPeers()))
	for _, p := range had {
		if !left[p.Ordinal] {
			out = append(out, p)
		}
	}
	for _, p := range d.GetPeers() {
		peer := toPeer(set, p, domain)
		at, there := slices.BinarySearchFunc(out, peer.Ordinal, func(p records.Peer, o int) int { return cmp.Compare(p.Ordinal, o) })
		if there {
			out[at] = peer
		} else {
			out = slices.Insert(out, at, peer)
		}
	}
	return out
}

func toPeer(set *records.Snapshot, p *proto.SetPeer, domain string) records.Peer {
	id := identityIn(set.Ref, int(p.GetOrdinal()))
	address, _ := netip.AddrFromSlice(p.GetAddress()) // the zero address of none
	host, _ := netip.AddrFromSlice(p.GetHost())
	return records.Peer{
		Name: id.MemberName(), Ordinal: id.Ordinal, FQDN: cmp.Or(p.GetFqdn(), records.MemberFQDN(id, set.Service, domain)),
		Address: address, Ready: p.GetReady(), Node: spec.NodeName(p.GetNode()), Host: host, Volumes: p.GetVolumes(),
		Note: p.GetNote(), Leads: p.GetLeads(), Term: p.GetTerm(),
	}
}

func identityIn(ref spec.SetRef, ordinal int) spec.Identity {
	return spec.Identity{Namespace: ref.Namespace, Set: ref.Name, Ordinal: ordinal}
}

// ToSets unmarshals what a server sent of sets.
func ToSets(docs [][]byte) ([]*proto.SetDifference, error) {
	out := make([]*proto.SetDifference, len(docs))
	for i, doc := range docs {
		out[i] = &proto.SetDifference{}
		if err := goproto.Unmarshal(doc, out[i]); err != nil {
			return nil, fmt.Errorf("decode a set: %w", err)
		}
	}
	return out, nil
}
