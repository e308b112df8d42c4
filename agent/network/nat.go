package network

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/nftables"
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
		c.AddTable(table) // so that removing it cannot fail
		c.DelTable(table)
		c.AddTable(table)
		chain := c.AddChain(&nftables.Chain{
			Name: "postrouting", Table: table, Type: nftables.ChainTypeNAT,
			Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
		})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: t.rule(), UserData: []byte(t.ruleMark())})
		if err := c.Flush(); err != nil {
			return fmt.Errorf("write nft table %s: %w", table.Name, err)
		}
		return nil
	})
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
