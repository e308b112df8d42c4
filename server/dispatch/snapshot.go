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
	p.UID, p.Generation = w.Set.UID, w.Set.Generation
	p.Replicas, p.InitialReplicas, p.InitialOrdinals = w.Set.Replicas(), w.Set.InitialReplicas, w.Set.InitialRange().All()
	p.Bootstrapped = w.Bootstrapped
	p.Service, p.Former = w.Set.Service(), plan.Former(w.Set, w.Status, w.Slots)
	judge, wanted, hosts := proof.NewJudge(w.Nodes, w.Epoch), w.Set.Range(), hostAddresses(w.Nodes)
	for i := range w.Slots {
		slot := &w.Slots[i]
		addr := addressOf(slot)
		if slot.Member == nil && !wanted.Has(slot.ID.Ordinal) {
			continue
		}
		service := p.Service
		if slot.Member != nil { // as the member itself was sent
			service = plan.Service(w.Set, p.Former, slot.Member)
		}
		peer := records.Peer{
			Name: slot.ID.MemberName(), Ordinal: slot.ID.Ordinal,
			FQDN:    records.MemberFQDN(slot.ID, service, domain),
			Address: addr, Ready: judge.EffectiveReady(slot.Member, slot.Report), Volumes: plan.VolumesState(slot),
		}
		if m := slot.Member; m != nil {
			peer.Node, peer.Host = m.Node, hosts[m.Node]
		}
		switch {
		case addr.IsValid():
			p.Peers = append(p.Peers, peer)
		case peer.Volumes != "": // brought back from the trash, and not started yet
			p.Expected = append(p.Expected, peer)
		}
	}
	p.Names = names(w.Set, p.Former, services)
	return p
}

// hostAddresses are those of the nodes that say one.
func hostAddresses(nodes []plan.Node) map[spec.NodeName]netip.Addr {
	out := make(map[spec.NodeName]netip.Addr, len(nodes))
	for i := range nodes {
		if a := nodes[i].Facts.Address(); a.IsValid() {
			out[nodes[i].Node.Name] = a
		}
	}
	return out
}

// addressOf prefers the life's own address, and is invalid when there is none.
func addressOf(slot *plan.Slot) (addr netip.Addr) {
	if slot.Member != nil && slot.Member.Address.IsValid() {
		return slot.Member.Address
	}
	if slot.Identity != nil {
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
		if !undeclared[s.Name] && !spec.MatchesLabels(s.Spec.Selector, set.Spec.Template.Metadata.Labels) {
			continue
		}
		delete(undeclared, s.Name)
		out = append(out, records.DNSName{
			Name: s.Name, PublishNotReady: s.Spec.PublishNotReadyAddresses, Ports: s.Spec.Ports,
		})
	}
	for name := range undeclared {
		out = append(out, records.DNSName{Name: name})
	}
	slices.SortFunc(out, func(a, b records.DNSName) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
