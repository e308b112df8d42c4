package network

import (
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

func (n *Network) table() *nftables.Table {
	return &nftables.Table{Name: "stead-" + n.name, Family: nftables.TableFamilyIPv4}
}

// nft runs f with a connection into the host's namespace.
func (n *Network) nft(f func(*nftables.Conn) error) error {
	return within(n.cfg.NetNS, func() error {
		c, err := nftables.New()
		if err != nil {
			return fmt.Errorf("open nftables: %w", err)
		}
		return f(c)
	})
}

// masquerade makes our table hold its one rule: what members send to the outside
// has the host's address. A table that is whole is left alone, with its counters;
// else it is replaced in one transaction, and host ports return with the repair of links.
func (n *Network) masquerade() error {
	n.rules.Lock()
	defer n.rules.Unlock()
	return n.nft(func(c *nftables.Conn) error {
		whole, err := n.tableWhole(c)
		if err != nil || whole {
			return err
		}
		t := n.table()
		c.AddTable(t) // so that removing it cannot fail
		c.DelTable(t)
		c.AddTable(t)
		chain := c.AddChain(&nftables.Chain{
			Name: "postrouting", Table: t, Type: nftables.ChainTypeNAT,
			Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
		})
		c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: n.rule(), UserData: []byte(n.ruleMark())})
		if err := c.Flush(); err != nil {
			return fmt.Errorf("write nft table %s: %w", t.Name, err)
		}
		return nil
	})
}

// ruleMark is kept with the rule: of another range it is another rule.
func (n *Network) ruleMark() string { return "stead:" + n.cfg.CIDR.String() }

// rule is "ip saddr CIDR ip daddr != CIDR counter masquerade".
func (n *Network) rule() []expr.Any {
	exprs := append(addressIs(sourceAt, expr.CmpOpEq, n.cfg.CIDR), addressIs(destinationAt, expr.CmpOpNeq, n.cfg.CIDR)...)
	return append(exprs, &expr.Counter{}, &expr.Masq{})
}

// tableWhole reports whether our table stands as masquerade makes it.
func (n *Network) tableWhole(c *nftables.Conn) (bool, error) {
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return false, fmt.Errorf("list nft chains: %w", err)
	}
	for _, chain := range chains {
		if chain.Table.Name != n.table().Name || chain.Name != "postrouting" {
			continue
		}
		rules, err := c.GetRules(n.table(), chain)
		if err != nil {
			return false, fmt.Errorf("list nft rules: %w", err)
		}
		return len(rules) == 1 && string(rules[0].UserData) == n.ruleMark(), nil
	}
	return false, nil
}

func (n *Network) removeTable() error { return n.dropTable(n.table()) }

// dropTable removes a table of ours, if it is there.
func (n *Network) dropTable(t *nftables.Table) error {
	return n.nft(func(c *nftables.Conn) error {
		c.DelTable(t)
		if err := c.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove nft table %s: %w", t.Name, err)
		}
		return nil
	})
}
