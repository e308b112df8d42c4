package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
)

// shield keeps packets out of the VXLAN that are not from another node: who could put one
// in would send from any address. Members may send nothing to its port, on any host: what
// they send leaves with their host's address, which is a node's. A node can send from the addresses of
// members of other nodes, too. Where all hosts use WireGuard, the VXLAN takes nothing, and what
// is from a member's address comes through WireGuard, or from the member's link, or not at all.
//
// It is a table of its own: that of host ports can be written again without it, and an
// agent of an earlier version leaves it alone.
type shield struct{ *node }

func (n *node) shieldTable() *nftables.Table {
	return &nftables.Table{Name: "stead-" + n.name + "-shield", Family: nftables.TableFamilyIPv4}
}

// shieldNodes is the set of hosts from which the tunnel takes packets.
const shieldNodes = "nodes"

// group is that of the host's ends of members' links, by which rules know them.
func (n *node) group() uint32 { return uint32(n.mark()) }

// Admit lets the tunnel take packets from these hosts, and from no other: all nodes. It
// remembers them for Setup, which puts the rules back.
func (n *Network) Admit(nodes []netip.Addr) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes = append([]netip.Addr{}, nodes...)
	if !n.ready {
		return nil // Setup does it
	}
	defer wrap.Error(&err, "admit hosts to the tunnel")
	return n.shield.ensure(n.admitted(), n.kind() == records.TunnelWireGuard)
}

// admitted are the hosts that may send through the VXLAN: all nodes, and the host of every
// member elsewhere, for news of the one may come before news of the other; nobody, where all use WireGuard.
// nil: not known yet.
func (n *Network) admitted() []netip.Addr {
	if n.kind() == records.TunnelWireGuard {
		return []netip.Addr{}
	}
	if n.nodes == nil {
		return nil
	}
	nodes := slices.Clone(n.nodes)
	for _, at := range n.remote {
		nodes = append(nodes, at.Host)
	}
	nodes = slices.DeleteFunc(nodes, func(a netip.Addr) bool { return !a.Is4() })
	slices.SortFunc(nodes, netip.Addr.Compare)
	return slices.Compact(nodes)
}

// ensure makes the shield let in the given nodes; nil: they are not known yet, and what
// is there is left as it is. strict: members elsewhere are heard through WireGuard alone.
func (s shield) ensure(nodes []netip.Addr, strict bool) error {
	return s.nft(func(c *nftables.Conn) error {
		rules, set, err := s.read(c)
		if err != nil {
			return err
		}
		marks := s.marks(nodes != nil, strict)
		if nodes == nil && len(rules) > 0 || slices.Equal(rules, marks) && slices.Equal(set, nodes) {
			return nil
		}
		t := s.shieldTable()
		renew(c, t)
		// Before connections are tracked and host ports led elsewhere, after fragments
		// were put together.
		chain := c.AddChain(&nftables.Chain{
			Name: "shield", Table: t, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw,
		})
		all := [][]expr.Any{s.fromMembers()}
		if nodes != nil {
			hosts := &nftables.Set{Table: t, Name: shieldNodes, KeyType: nftables.TypeIPAddr}
			var elements []nftables.SetElement
			for _, a := range nodes {
				elements = append(elements, nftables.SetElement{Key: a.AsSlice()})
			}
			if err := c.AddSet(hosts, elements); err != nil {
				return fmt.Errorf("write nft set %s: %w", hosts.Name, err)
			}
			all = append(all, s.fromUnknownHosts(hosts))
		}
		if strict {
			all = append(all, s.beside())
		}
		for i, exprs := range all {
			c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: exprs, UserData: []byte(marks[i])})
		}
		return flush(c, t)
	})
}

// marks are kept with the rules: one that reads otherwise is another rule.
func (s shield) marks(nodesKnown, strict bool) []string {
	marks := []string{fmt.Sprintf("stead:members:%d", s.group())}
	if nodesKnown {
		marks = append(marks, fmt.Sprintf("stead:strangers:%d", s.vni()))
	}
	if strict {
		marks = append(marks, besideMark+s.cfg.CIDR.String())
	}
	return marks
}

// besideMark is how the mark of the rule beside begins.
const besideMark = "stead:beside:"

// read lists the marks of the rules and the nodes of the shield; none of either when it is
// not there.
func (s shield) read(c *nftables.Conn) (marks []string, nodes []netip.Addr, err error) {
	rules, err := rulesIn(c, s.shieldTable())
	if err != nil {
		return nil, nil, err
	}
	for _, r := range rules {
		marks = append(marks, string(r.UserData))
	}
	if len(marks) < 2 {
		return marks, nil, nil
	}
	elements, err := c.GetSetElements(&nftables.Set{Table: s.shieldTable(), Name: shieldNodes})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, nil, fmt.Errorf("list nft set %s: %w", shieldNodes, err)
	}
	for _, e := range elements {
		if a, ok := netip.AddrFromSlice(e.Key); ok {
			nodes = append(nodes, a)
		}
	}
	slices.SortFunc(nodes, netip.Addr.Compare)
	return marks, nodes, nil
}

// fromMembers is "iifgroup GROUP udp dport 4789 counter drop".
func (s shield) fromMembers() []expr.Any {
	exprs := append([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFGROUP, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(s.group())},
	}, toPort(unix.IPPROTO_UDP, vxlanPort)...)
	return append(exprs, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
}

// fromUnknownHosts is "udp dport 4789 @th,96,24 NETWORK ip saddr != @nodes counter drop": the
// number of the network comes after UDP's 8 bytes and 4 of VXLAN. Other networks of the
// host may use the port, too.
func (s shield) fromUnknownHosts(nodes *nftables.Set) []expr.Any {
	const numberAt = 8 + 4
	number := binaryutil.BigEndian.PutUint32(uint32(s.vni()))[1:]
	exprs := append(toPort(unix.IPPROTO_UDP, vxlanPort),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: numberAt, Len: 3},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: number},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: sourceAt, Len: 4},
		&expr.Lookup{SourceRegister: 1, SetName: nodes.Name, SetID: nodes.ID, Invert: true})
	return append(exprs, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
}

// beside is "iifname != lo iifname != WIREGUARD iifgroup != GROUP ip saddr CIDR counter drop": what is from a member's
// address, and comes neither from a member here nor from the node of one elsewhere.
func (s shield) beside() []expr.Any {
	name := func(link string) []byte { return append([]byte(link), make([]byte, unix.IFNAMSIZ-len(link))...) }
	exprs := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: name("lo")},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: name(wireLink(s).wireName())},
		&expr.Meta{Key: expr.MetaKeyIIFGROUP, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(s.group())},
	}
	exprs = append(exprs, addressIs(sourceAt, expr.CmpOpEq, s.cfg.CIDR)...)
	return append(exprs, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
}
