package host

import (
	"encoding/json"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"

	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
)

// policies has this host enforce NetworkPolicies, as snapshots say.
type policies struct {
	keeper[network.Policies]
	at place
}

// place is where policies are enforced, and what they speak of as all members, and as DNS.
type place struct {
	node    spec.NodeName
	members netip.Prefix
	dns     netip.Addr
}

func newPolicies(at place, set func(network.Policies) error, log *slog.Logger) *policies {
	same := func(a, b *network.Policies) bool { return reflect.DeepEqual(a, b) }
	return &policies{newKeeper(set, same, "NetworkPolicies not enforced as they are now; what was enforced before is", log), at}
}

// update takes the newest snapshots of all sets; it does not block.
func (p *policies) update(snapshots []records.Snapshot) { p.offer(p.at.policiesOf(snapshots)) }

// policiesOf is what NetworkPolicies say of the members here. Sets in brief have none here.
func (at place) policiesOf(snapshots []records.Snapshot) network.Policies {
	j := policyJoin{place: at, sets: map[spec.SetRef]*records.Snapshot{}, out: network.Policies{Groups: map[string][]netip.Addr{}}}
	for i := range snapshots {
		s := &snapshots[i]
		j.sets[s.Ref] = s
	}
	for i := range snapshots {
		if s := &snapshots[i]; !s.Brief && !s.Gone {
			j.addMembers(s)
		}
	}
	slices.SortFunc(j.out.Members, func(a, b network.PolicyMember) int { return a.Address.Compare(b.Address) })
	return j.out
}

// policyJoin makes of the policies of sets those of addresses.
type policyJoin struct {
	place
	sets map[spec.SetRef]*records.Snapshot
	out  network.Policies
}

// addMembers adds the members of a set that are here. Those that the same policies select share filters.
func (j *policyJoin) addMembers(s *records.Snapshot) {
	type pair struct{ in, out *network.Filter }
	filters := map[string]pair{}
	for i := range s.Peers {
		p := &s.Peers[i]
		if p.Node != j.node || !j.members.Contains(p.Address) { // the host's own address is nobody's to close
			continue
		}
		which := make([]byte, len(s.Policies)) // those that select it
		for k := range s.Policies {
			if own := s.Policies[k].Members; own == nil || own.Matches(netpol.MemberLabels(identityOf(s.Ref, p))) {
				which[k] = 1
			}
		}
		f, known := filters[string(which)]
		if !known {
			f = pair{j.filter(s, which, true), j.filter(s, which, false)}
			filters[string(which)] = f
		}
		j.out.Members = append(j.out.Members, network.PolicyMember{Address: p.Address, Ingress: f.in, Egress: f.out})
	}
}

func identityOf(ref spec.SetRef, p *records.Peer) spec.Identity {
	return spec.Identity{Namespace: ref.Namespace, Set: ref.Name, Ordinal: p.Ordinal}
}

// filter is what these policies of a set allow together in one direction; nil: none is about it.
func (j *policyJoin) filter(s *records.Snapshot, which []byte, ingress bool) *network.Filter {
	var f *network.Filter
	for k := range s.Policies {
		p := &s.Policies[k]
		isolates, rules := p.Ingress, p.From
		if !ingress {
			isolates, rules = p.Egress, p.To
		}
		if which[k] == 0 || !isolates {
			continue
		}
		if f == nil {
			f = &network.Filter{}
		}
		for i := range rules {
			if allow, any := j.allow(&rules[i], ingress); any {
				f.Rules = append(f.Rules, allow)
			}
		}
	}
	return f
}

// allow is a rule by addresses; false: it allows nobody. The members that it names are one group, which keeps
// its name while the addresses of these change.
func (j *policyJoin) allow(rule *records.PolicyRule, ingress bool) (a network.Allow, any bool) {
	a.Anybody = rule.Anybody
	var members []records.PolicyParty
	for _, p := range rule.Parties {
		switch {
		case p.Block.IsValid():
			a.Blocks = append(a.Blocks, network.Block{Range: p.Block, Except: p.Except})
		case p.Everyone:
			a.Blocks = append(a.Blocks, network.Block{Range: j.members})
			a.Blocks = append(a.Blocks, j.dnsBlocks(ingress)...)
		case p.DNS:
			a.Blocks = append(a.Blocks, j.dnsBlocks(ingress)...)
		default:
			members = append(members, p)
		}
	}
	if len(members) > 0 {
		a.Groups = []string{j.group(members)}
	}
	for _, p := range rule.Ports {
		a.Ports = append(a.Ports, network.PortRange{Protocol: p.Protocol, First: uint16(p.First), Last: uint16(p.Last)})
	}
	return a, a.Anybody || len(a.Groups)+len(a.Blocks) > 0
}

// dnsBlocks is DNS as a destination: the host, which always reaches its members.
func (j *policyJoin) dnsBlocks(ingress bool) []network.Block {
	if ingress {
		return nil
	}
	return []network.Block{{Range: netip.PrefixFrom(j.dns, j.dns.BitLen())}}
}

// group makes the group of some members' addresses, once.
func (j *policyJoin) group(members []records.PolicyParty) string {
	doc, _ := json.Marshal(members) // names always marshal
	name := string(doc)
	if _, made := j.out.Groups[name]; made {
		return name
	}
	addrs := []netip.Addr{}
	for i := range members {
		addrs = j.addressesOf(addrs, &members[i])
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	j.out.Groups[name] = slices.Compact(addrs)
	return name
}

// addressesOf appends the addresses of a party's members to list, but for those in the networks of their hosts: as
// in Kubernetes they are not told from other programs of these, which a block may name.
func (j *policyJoin) addressesOf(list []netip.Addr, party *records.PolicyParty) []netip.Addr {
	add := func(s *records.Snapshot) {
		for i := range s.Peers {
			p := &s.Peers[i]
			if j.members.Contains(p.Address) && (party.Members == nil || party.Members.Matches(netpol.MemberLabels(identityOf(s.Ref, p)))) {
				list = append(list, p.Address)
			}
		}
	}
	if party.Set != "" {
		if s := j.sets[spec.SetRef{Namespace: party.Namespace, Name: party.Set}]; s != nil {
			add(s)
		}
		return list
	}
	for ref, s := range j.sets {
		if ref.Namespace == party.Namespace {
			add(s)
		}
	}
	return list
}
