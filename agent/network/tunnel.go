package network

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/wrap"
)

// vxlanPort is that of RFC 7348; vxlanOverhead is what a packet grows by in the tunnel:
// IPv4, UDP, VXLAN and Ethernet headers.
const (
	vxlanPort     = 4789
	vxlanOverhead = 50
)

// tunnelName is that of this node's end of the tunnel, which has the alias of a link of
// this node that is not a member's.
func (n *node) tunnelName() string  { return fmt.Sprintf("sx%06x", n.mark()) }
func (n *node) tunnelAlias() string { return n.aliasPrefix() + "tunnel" }
func (n *node) tunnelLabel() string { return n.tunnelName() + ":gw" }

// vni is the number of the VXLAN: the same on all nodes of a cluster, and never 0.
func (n *node) vni() int {
	sum := sha256.Sum256([]byte(n.cfg.ClusterID))
	return (int(sum[0])<<16 | int(sum[1])<<8 | int(sum[2])) | 1
}

// tunnel is this node's end of the VXLAN between hosts.
type tunnel struct{ *node }

// ensure returns the tunnel's link, made unless it is there as it should be. Packets leave
// from the address src.
func (t tunnel) ensure(h *netlink.Handle, src net.IP) (netlink.Link, error) {
	name := t.tunnelName()
	link, err := h.LinkByName(name)
	if isGone(err) {
		return t.make(h, src)
	}
	if err != nil {
		return nil, fmt.Errorf("find tunnel %s: %w", name, err)
	}
	if alias := link.Attrs().Alias; alias != t.tunnelAlias() && alias != "" {
		return nil, fmt.Errorf("link %s belongs to %q", name, alias)
	}
	v, ok := link.(*netlink.Vxlan)
	if ok && v.VxlanId == t.vni() && v.Port == vxlanPort && v.SrcAddr.Equal(src) && slices.Equal(v.HardwareAddr, tunnelMAC(src)) {
		return link, t.configure(h, link)
	}
	if err := h.LinkDel(link); err != nil {
		return nil, fmt.Errorf("delete tunnel %s, whose settings have changed: %w", name, err)
	}
	return t.make(h, src)
}

func (t tunnel) make(h *netlink.Handle, src net.IP) (netlink.Link, error) {
	made := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: t.tunnelName(), MTU: t.cfg.MTU - vxlanOverhead, TxQLen: -1, HardwareAddr: tunnelMAC(src)},
		VxlanId:   t.vni(), SrcAddr: src, Port: vxlanPort,
	}
	if err := h.LinkAdd(made); err != nil {
		return nil, fmt.Errorf("add tunnel %s: %w", made.Name, err)
	}
	link, err := h.LinkByName(made.Name)
	if err != nil {
		return nil, fmt.Errorf("find tunnel %s: %w", made.Name, err)
	}
	return link, t.configure(h, link)
}

// configure marks the tunnel as ours and brings it up. Its MTU is less than that of members'
// links: this host answers whoever sends more than fits, as any router does.
func (t tunnel) configure(h *netlink.Handle, link netlink.Link) error {
	name, mtu := link.Attrs().Name, t.cfg.MTU-vxlanOverhead
	gateway := t.gateway()
	gateway.Label = t.tunnelLabel()
	return inOrder(
		step{"set alias of " + name, func() error {
			if link.Attrs().Alias != "" {
				return nil
			}
			return h.LinkSetAlias(link, t.tunnelAlias())
		}},
		step{"set MTU of " + name, func() error {
			if link.Attrs().MTU == mtu {
				return nil
			}
			return h.LinkSetMTU(link, mtu)
		}},
		step{"", func() error { return disableIPv6(t.cfg.NetNS, name) }},
		// Loose: a host's own packets to members elsewhere come through the tunnel and are
		// answered beside it. Members' addresses are checked where the members are.
		step{"", func() error { return t.sysctl("net/ipv4/conf/"+name+"/rp_filter", "2") }},
		// On a link without any address the kernel checks strictly all the same.
		step{fmt.Sprintf("add gateway %s to %s", t.cfg.Gateway, name), func() error { return h.AddrReplace(link, gateway) }},
		step{"bring " + name + " up", func() error { return h.LinkSetUp(link) }},
	)
}

// remove removes this node's end, if there is one.
func (t tunnel) remove(h *netlink.Handle) (err error) {
	defer wrap.Error(&err, "remove tunnel %s", t.tunnelName())
	link, err := h.LinkByName(t.tunnelName())
	if isGone(err) {
		return nil
	}
	if err == nil && link.Attrs().Alias == t.tunnelAlias() {
		err = h.LinkDel(link)
	}
	return err
}

// addHost says where a host's end is: no host has to ask, and nothing is learnt.
func (t tunnel) addHost(h *netlink.Handle, link netlink.Link, host netip.Addr) (err error) {
	mac := tunnelMAC(host.AsSlice())
	if err := setNeighbour(h, link, host, mac); err != nil {
		return err
	}
	defer wrap.Error(&err, "add forwarding entry %s of %s", host, link.Attrs().Name)
	return h.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF, State: netlink.NUD_PERMANENT,
		IP: host.AsSlice(), HardwareAddr: mac,
	})
}

// tunnelMAC is 02:54 (locally administered) and the host's address.
func tunnelMAC(host net.IP) net.HardwareAddr {
	return append(net.HardwareAddr{0x02, 0x54}, host.To4()...)
}

// shield keeps packets out of the tunnel that are not from another node: who could put one
// in would send from any address. Members may send nothing to its port, on any host: what
// they send leaves with their host's address, which is a node's.
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
	return n.shield.ensure(n.admitted())
}

// admitted are the hosts that may send through the tunnel: all nodes, and the host of every
// member elsewhere, for news of the one may come before news of the other. nil: not known yet.
func (n *Network) admitted() []netip.Addr {
	if n.nodes == nil {
		return nil
	}
	nodes := slices.AppendSeq(slices.Clone(n.nodes), maps.Values(n.remote))
	nodes = slices.DeleteFunc(nodes, func(a netip.Addr) bool { return !a.Is4() })
	slices.SortFunc(nodes, netip.Addr.Compare)
	return slices.Compact(nodes)
}

// ensure makes the shield let in the given nodes; nil: they are not known yet, and what
// is there is left as it is.
func (s shield) ensure(nodes []netip.Addr) error {
	return s.nft(func(c *nftables.Conn) error {
		rules, set, err := s.read(c)
		if err != nil {
			return err
		}
		marks := s.marks(nodes != nil)
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
		for i, exprs := range all {
			c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: exprs, UserData: []byte(marks[i])})
		}
		return flush(c, t)
	})
}

// marks are kept with the rules: one that reads otherwise is another rule.
func (s shield) marks(nodesKnown bool) []string {
	marks := []string{fmt.Sprintf("stead:members:%d", s.group())}
	if nodesKnown {
		marks = append(marks, fmt.Sprintf("stead:strangers:%d", s.vni()))
	}
	return marks
}

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
