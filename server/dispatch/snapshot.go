package dispatch

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// BuildSnapshot is the set of w as nodes and members shall see it at seq: the pure
// source of DNS and of /run/stead/set.json. services are those of its namespace.
// Without a set it is Gone.
func BuildSnapshot(seq spec.Sequence, ref spec.SetRef, w plan.World, services []*records.ServiceRecord, domain string) records.Snapshot {
	p := records.Snapshot{Sequence: seq, Ref: ref}
	if w.Set == nil {
		p.Gone = true
		return p
	}
	f := newFrame(w.Set, plan.Former(w.Set, w.Status, w.Slots), proof.NewJudge(w.Nodes, w.Epoch), domain)
	f.head(&p, w.Bootstrapped, services)
	for i := range w.Slots {
		switch peer, kind := f.peer(&w.Slots[i]); kind {
		case listedPeer:
			p.Peers = append(p.Peers, peer)
		case expectedPeer:
			p.Expected = append(p.Expected, peer)
		}
	}
	return p
}

// frame is what of a set goes into each of its peers.
type frame struct {
	set    *records.Set
	former string // see plan.Former
	wanted spec.OrdinalRange
	judge  *proof.Judge
	domain string
}

func newFrame(set *records.Set, former string, judge *proof.Judge, domain string) frame {
	return frame{set: set, former: former, wanted: set.Range(), judge: judge, domain: domain}
}

// head is what of the set is not its peers'; services are those of its namespace.
func (f *frame) head(p *records.Snapshot, bootstrapped bool, services []*records.ServiceRecord) {
	p.UID, p.Generation = f.set.UID, f.set.Generation
	p.Replicas, p.InitialReplicas, p.InitialOrdinals = f.set.Replicas(), f.set.InitialReplicas, f.set.InitialRange().All()
	p.Bootstrapped = bootstrapped
	p.Service, p.Former = f.set.Service(), f.former
	p.Names = names(f.set, f.former, services)
}

// peerKind is where an identity is in the snapshot of its set.
type peerKind int

const (
	noPeer       peerKind = iota
	listedPeer            // it has an address
	expectedPeer          // it was brought back from the trash, and has not started yet
)

// peer is what the set's members see of one identity.
func (f *frame) peer(slot *plan.Slot) (records.Peer, peerKind) {
	m, addr := slot.Member, f.addressOf(slot)
	if m == nil && !f.wanted.Has(slot.ID.Ordinal) {
		return records.Peer{}, noPeer
	}
	service := f.set.Service()
	if m != nil { // as the member itself was sent
		service = plan.Service(f.set, f.former, m)
	}
	p := plan.Claimed(slot, f.judge)
	p.Name, p.FQDN = slot.ID.MemberName(), records.MemberFQDN(slot.ID, service, f.domain)
	p.Address, p.Volumes = addr, plan.VolumesState(slot)
	if m != nil {
		p.Node = m.Node
		if n := f.judge.Node(m.Node); n != nil && !m.HostNetwork {
			p.Host = n.Facts.Address()
		}
	}
	switch {
	case addr.IsValid():
		return p, listedPeer
	case p.Volumes != "":
		return p, expectedPeer
	}
	return p, noPeer
}

// addressOf prefers the life's own address, and is invalid when there is none. A life in the network of its node
// has the address that the node has now; between two such lives the identity is nowhere.
func (f *frame) addressOf(slot *plan.Slot) (addr netip.Addr) {
	m := slot.Member
	if m != nil && m.HostNetwork {
		if n := f.judge.Node(m.Node); n != nil && n.Facts.Address().Is4() {
			return n.Facts.Address()
		}
	}
	if m != nil && m.Address.IsValid() {
		return m.Address
	}
	if slot.Identity != nil && !f.set.Spec.Template.Spec.HostNetwork {
		return slot.Identity.Address
	}
	return addr
}

// names are the services that select the set, sorted, and the governing one with the
// former, which there are also without any record.
func names(set *records.Set, former string, services []*records.ServiceRecord) []records.DNSName {
	out := []records.DNSName{}
	undeclared := map[string]bool{set.Service(): true}
	if former != "" {
		undeclared[former] = true
	}
	for _, s := range services {
		selects, only := s.Selects(set)
		if !undeclared[s.Name] && !selects {
			continue
		}
		delete(undeclared, s.Name)
		if ofItsOwn(s) { // its name is in a snapshot of its own; the members' names below it are the set's
			continue
		}
		n := nameOf(s, &set.Spec.Template, selects)
		n.Only = only
		out = append(out, n)
	}
	for name := range undeclared {
		out = append(out, records.DNSName{Name: name})
	}
	slices.SortFunc(out, func(a, b records.DNSName) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// nameOf is a service as the members of a set with template t are found by it. An address leads to
// them only if it selects them.
func nameOf(s *records.ServiceRecord, t *spec.Template, selects bool) records.DNSName {
	n := records.DNSName{Name: s.Name, PublishNotReady: s.Spec.PublishNotReadyAddresses, Leader: s.SelectsLeader()}
	if !s.Address.IsValid() {
		n.Ports = s.Spec.Reached(t)
		return n
	}
	n.Address, n.AffinitySeconds, n.OnNode = s.Address, int32(s.Spec.Affinity().Seconds()), s.Spec.OnNode()
	n.Outside, n.OutsideOnNode, n.Sources = s.Outside(), s.Spec.OutsideOnNode(), s.Sources()
	if len(n.Sources) > 0 {
		n.Balancer = s.LoadBalancer
	}
	n.HealthPort = s.Spec.HealthCheckNodePort
	if !selects {
		t = nil
	}
	n.Ports = s.Spec.Led(t)
	return n
}
