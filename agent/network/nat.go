package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

func (n *node) table() *nftables.Table {
	return &nftables.Table{Name: "stead-" + n.name, Family: nftables.TableFamilyIPv4}
}

// nft runs f with a connection into the host's namespace.
func (n *node) nft(f func(*nftables.Conn) error) error {
	return inNamespace(n.cfg.NetNS, func() error {
		c, err := nftables.New()
		if err != nil {
			return fmt.Errorf("open nftables: %w", err)
		}
		return f(c)
	})
}

// natTable is the node's table of address translation: members' traffic to the outside, and
// host ports.
type natTable struct {
	*node
	mu sync.Mutex // held by who reads the table in order to write it
}

// masquerade makes the table hold its one rule: what members send to the outside
// has the host's address. A complete table is left alone, with its counters; else it is
// replaced in one transaction, and host ports return with the repair of links.
func (t *natTable) masquerade() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nft(func(c *nftables.Conn) error {
		complete, err := t.isComplete(c)
		if err != nil || complete {
			return err
		}
		table := t.table()
		renew(c, table)
		chain := c.AddChain(&nftables.Chain{
			Name: "postrouting", Table: table, Type: nftables.ChainTypeNAT,
			Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
		})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: t.rule(), UserData: []byte(t.ruleMark())})
		return flush(c, table)
	})
}

// renew adds to the transaction that a table is empty.
func renew(c *nftables.Conn, t *nftables.Table) {
	c.AddTable(t) // so that removing it cannot fail
	c.DelTable(t)
	c.AddTable(t)
}

// flush writes the transaction on a table.
func flush(c *nftables.Conn, t *nftables.Table) error {
	if err := c.Flush(); err != nil {
		return fmt.Errorf("write nft table %s: %w", t.Name, err)
	}
	return nil
}

// ruleMark is kept with the rule: of another range it is another rule.
func (t *natTable) ruleMark() string { return "stead:" + t.cfg.CIDR.String() }

// rule is "ip saddr CIDR ip daddr != CIDR counter masquerade".
func (t *natTable) rule() []expr.Any {
	exprs := append(addressIs(sourceAt, expr.CmpOpEq, t.cfg.CIDR), addressIs(destinationAt, expr.CmpOpNeq, t.cfg.CIDR)...)
	return append(exprs, &expr.Counter{}, &expr.Masq{})
}

// isComplete reports whether the table is as masquerade makes it.
func (t *natTable) isComplete(c *nftables.Conn) (bool, error) {
	rules, err := rulesIn(c, t.table(), "postrouting")
	return len(rules) == 1 && string(rules[0].UserData) == t.ruleMark(), err
}

// rulesIn lists the rules in these chains of an IPv4 table; without chains, in all.
func rulesIn(c *nftables.Conn, t *nftables.Table, chains ...string) ([]*nftables.Rule, error) {
	all, err := c.ListChainsOfTableFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return nil, fmt.Errorf("list nft chains: %w", err)
	}
	var out []*nftables.Rule
	for _, chain := range all {
		if chain.Table.Name != t.Name || len(chains) > 0 && !slices.Contains(chains, chain.Name) {
			continue
		}
		rules, err := c.GetRules(t, chain)
		if err != nil {
			return nil, fmt.Errorf("list nft rules: %w", err)
		}
		out = append(out, rules...)
	}
	return out, nil
}

// dropTable removes a table of ours, if it is there.
func (n *node) dropTable(t *nftables.Table) error {
	return n.nft(func(c *nftables.Conn) error {
		c.DelTable(t)
		if err := c.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove nft table %s: %w", t.Name, err)
		}
		return nil
	})
}

// portRule is a rule of a host port as the kernel has it.
type portRule struct {
	published
	rule *nftables.Rule
}

// portChains are the chains of host ports, which are there since the first one: for what
// comes in, for what the host itself sends, and for a member that calls itself.
func (t *natTable) portChains() []*nftables.Chain {
	chain := func(name string, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
		return &nftables.Chain{Name: name, Table: t.table(), Type: nftables.ChainTypeNAT, Hooknum: hook, Priority: priority}
	}
	return []*nftables.Chain{
		chain("hostports", nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest),
		chain("hostports-own", nftables.ChainHookOutput, nftables.ChainPriorityNATDest),
		chain("hostports-self", nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource),
	}
}

// portRules lists the rules of all host ports.
func (t *natTable) portRules(c *nftables.Conn) ([]portRule, error) {
	var names []string
	for _, chain := range t.portChains() {
		names = append(names, chain.Name)
	}
	rules, err := rulesIn(c, t.table(), names...)
	if err != nil {
		return nil, err
	}
	var out []portRule
	for _, r := range rules {
		if p, ours := publishedOf(string(r.UserData)); ours {
			r.Table = t.table()
			out = append(out, portRule{p, r})
		}
	}
	return out, nil
}

// addPort adds the rules of a host port to the transaction: one in each chain.
func (t *natTable) addPort(c *nftables.Conn, p published) {
	c.AddTable(t.table())
	chains := t.portChains()
	for i, exprs := range [][]expr.Any{t.redirectExprs(p), t.redirectExprs(p), t.hairpinExprs(p)} {
		c.AddRule(&nftables.Rule{Table: t.table(), Chain: c.AddChain(chains[i]), Exprs: exprs, UserData: []byte(p.mark())})
	}
}

// dropRules removes rules, and writes the transaction.
func (t *natTable) dropRules(c *nftables.Conn, rules []portRule) error {
	for _, r := range rules {
		if err := c.DelRule(r.rule); err != nil {
			return fmt.Errorf("remove nft rule: %w", err)
		}
	}
	return flush(c, t.table())
}

// Offsets in the IPv4 header, and in that of TCP or UDP.
const (
	sourceAt, destinationAt = 12, 16
	portAt                  = 2
)

// addressIs compares an address of a packet under a mask.
func addressIs(offset uint32, op expr.CmpOp, p netip.Prefix) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: ipNet(p).Mask, Xor: binaryutil.NativeEndian.PutUint32(0)},
		&expr.Cmp{Op: op, Register: 1, Data: p.Masked().Addr().AsSlice()},
	}
}

// toPort is "udp dport PORT", or the same of another protocol.
func toPort(protocol byte, port uint16) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: portAt, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
	}
}

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// redirectExprs is "tcp dport PORT ip daddr ADDRESS counter dnat to MEMBER:PORT"; of each address:
// "fib daddr type local ip daddr != 127.0.0.0/8 ip daddr != GATEWAY" in place of the address.
func (t *natTable) redirectExprs(p published) []expr.Any {
	exprs := toPort(p.number(), p.port.Port)
	if p.port.Address.IsValid() {
		exprs = append(exprs, addressIs(destinationAt, expr.CmpOpEq, netip.PrefixFrom(p.port.Address, 32))...)
	} else {
		exprs = append(exprs, t.toHost()...)
	}
	return append(exprs, &expr.Counter{},
		&expr.Immediate{Register: 1, Data: p.addr.AsSlice()},
		&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(p.port.To)},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2, Specified: true})
}

// hairpinExprs is "ip saddr MEMBER ip daddr MEMBER counter snat to GATEWAY": who calls itself by a
// host port would not take a packet that has its own address.
func (t *natTable) hairpinExprs(p published) []expr.Any {
	exprs := addressIs(sourceAt, expr.CmpOpEq, netip.PrefixFrom(p.addr, 32))
	exprs = append(exprs, addressIs(destinationAt, expr.CmpOpEq, netip.PrefixFrom(p.addr, 32))...)
	return append(append(exprs, &expr.Counter{}), t.fromGateway()...)
}

// toHost is "ip daddr != 127.0.0.0/8 ip daddr != GATEWAY fib daddr type local".
func (n *node) toHost() []expr.Any {
	exprs := addressIs(destinationAt, expr.CmpOpNeq, loopback)
	exprs = append(exprs, addressIs(destinationAt, expr.CmpOpNeq, netip.PrefixFrom(n.cfg.Gateway, 32))...)
	return append(exprs,
		&expr.Fib{Register: 1, ResultADDRTYPE: true, FlagDADDR: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)})
}

// fromGateway is "snat to GATEWAY".
func (n *node) fromGateway() []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: n.cfg.Gateway.AsSlice()},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1},
	}
}
