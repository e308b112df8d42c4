package network

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// write makes the table hold the content, in one transaction that has what differs; nothing is
// written when nothing does. A table whose fixed part is not as it should be is replaced; none is made for
// neither range nor services.
func (t *serviceTable) write() (change udpChange, err error) {
	err = t.connect(func(c *nftables.Conn) error {
		have, whole, err := t.read(c)
		if err != nil {
			return err
		}
		if !whole {
			have = newContent()
		}
		change = t.content.udpSince(have)
		if !whole && !t.rng.IsValid() && len(t.content.sets[setServices]) == 0 {
			return t.dropTable(t.serviceTable())
		}
		if !whole {
			if err := t.renew(c); err != nil {
				return err
			}
		}
		for _, p := range t.content.newPicks(have) {
			t.addChain(c, t.chain(p))
		}
		for _, set := range t.sets() {
			removed, added := t.content.sets[set.Name].difference(have.sets[set.Name])
			if err := writeElements(c.SetDeleteElements, set, removed, nil); err != nil {
				return err
			}
			if err := writeElements(c.SetAddElements, set, added, t.content.sets[set.Name]); err != nil {
				return err
			}
		}
		for _, name := range t.content.oldPicks(have) {
			c.DelChain(&nftables.Chain{Name: name, Table: t.serviceTable()})
		}
		return flush(c, t.serviceTable())
	})
	return change, err
}

// connect runs f with a connection into the host's namespace that takes large transactions and
// does not wait without end.
func (n *node) connect(f func(*nftables.Conn) error) error {
	return inNamespace(n.cfg.NetNS, func() error {
		c, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(largeTransactions, boundedWait))
		if err != nil {
			return fmt.Errorf("open nftables: %w", err)
		}
		return errors.Join(f(c), c.CloseLasting())
	})
}

// largeTransactions makes room for one of 10,000 services: the kernel takes a transaction as a whole. It is generic,
// as boundedWait is, because the library's connection is of a library of its own.
func largeTransactions[C interface{ SetWriteBuffer(bytes int) error }](c C) error {
	return c.SetWriteBuffer(32 << 20)
}

func boundedWait[C interface{ SetDeadline(time.Time) error }](c C) error {
	return c.SetDeadline(time.Now().Add(30 * time.Second))
}

// renew adds to the transaction that the table is new, without services.
func (t *serviceTable) renew(c *nftables.Conn) error {
	renew(c, t.serviceTable())
	for _, set := range t.sets() {
		if err := c.AddSet(set, nil); err != nil {
			return fmt.Errorf("write nft set %s: %w", set.Name, err)
		}
	}
	for _, chain := range t.chains() {
		t.addChain(c, chain)
	}
	return nil
}

func (t *serviceTable) addChain(c *nftables.Conn, chain ruleChain) {
	c.AddChain(chain.Chain)
	for _, exprs := range chain.rules {
		c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain.Chain, Exprs: exprs, UserData: []byte(t.mark())})
	}
}

// writeElements adds to the transaction what is removed from or added to a set: in messages that
// hold what a list of 64 KiB can.
func writeElements(write func(*nftables.Set, []nftables.SetElement) error, set *nftables.Set, keys []string, values elements) error {
	const most = 256
	for part := range slices.Chunk(keys, most) {
		var list []nftables.SetElement
		for _, key := range part {
			e := nftables.SetElement{Key: []byte(key)}
			switch value := values[key]; {
			case value == "":
			case set.Name == setServices:
				e.VerdictData = &expr.Verdict{Kind: expr.VerdictGoto, Chain: value}
			default:
				e.Val = []byte(value)
			}
			list = append(list, e)
		}
		if err := write(set, list); err != nil {
			return fmt.Errorf("write nft set %s: %w", set.Name, err)
		}
	}
	return nil
}

// read lists what the table holds. It is whole if it has all that does not depend on the services, and no
// chain with other rules; if it is not, the list is not complete.
func (t *serviceTable) read(c *nftables.Conn) (have content, whole bool, err error) {
	have = newContent()
	marks, err := t.ruleMarks(t.serviceTable())
	if err != nil {
		return have, false, err
	}
	for _, chain := range t.chains() {
		if !t.isWhole(marks[chain.Name], chain) {
			return have, false, nil
		}
		delete(marks, chain.Name)
	}
	for name := range marks {
		if p, wanted := t.content.picks[name]; wanted && !t.isWhole(marks[name], t.chain(p)) {
			return have, false, nil
		}
		have.picks[name] = pick{}
	}
	sets, err := c.GetSets(t.serviceTable())
	if err != nil {
		return have, false, fmt.Errorf("list nft sets: %w", err)
	}
	if len(sets) < len(t.sets()) {
		return have, false, nil
	}
	for name := range have.sets {
		list, err := c.GetSetElements(&nftables.Set{Table: t.serviceTable(), Name: name})
		if err != nil {
			return have, false, fmt.Errorf("list nft set %s: %w", name, err)
		}
		for _, e := range list {
			value := string(e.Val)
			if name == setServices {
				value = chainOf(e.Val)
			}
			have.sets[name][string(e.Key)] = value
		}
	}
	return have, true, nil
}

// isWhole reports whether a chain has rules with these marks.
func (t *serviceTable) isWhole(marks []string, chain ruleChain) bool {
	return len(marks) == len(chain.rules) && !slices.ContainsFunc(marks, func(m string) bool { return m != t.mark() })
}

// ruleMarks lists, by chain, what is kept with the rules of a table, in one dump. The library would read the rules,
// too, and fails at "ct original".
func (n *node) ruleMarks(table *nftables.Table) (marks map[string][]string, err error) {
	marks = map[string][]string{}
	err = inNamespace(n.cfg.NetNS, func() error {
		req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP)
		req.AddData(&nl.Nfgenmsg{NfgenFamily: uint8(table.Family), Version: nl.NFNETLINK_V0})
		req.AddData(nl.NewRtAttr(unix.NFTA_RULE_TABLE, nl.ZeroTerminated(table.Name)))
		rules, err := listed("nft rules", func() ([][]byte, error) { return req.Execute(unix.NETLINK_NETFILTER, 0) })
		for _, rule := range rules {
			attrs, err := nl.ParseRouteAttr(rule[nl.SizeofNfgenmsg:])
			if err != nil {
				return fmt.Errorf("read nft rule: %w", err)
			}
			var chain, mark string
			for _, a := range attrs {
				switch a.Attr.Type {
				case unix.NFTA_RULE_CHAIN:
					chain = nl.BytesToString(a.Value)
				case unix.NFTA_RULE_USERDATA:
					mark = string(a.Value)
				}
			}
			marks[chain] = append(marks[chain], mark)
		}
		return err
	})
	return marks, err
}

// chainOf reads the name of the chain of a verdict: attributes of 8 bytes, its kind, and of 4 bytes
// and the name.
func chainOf(verdict []byte) string {
	const nameAt = 8 + 4
	if len(verdict) < nameAt {
		return ""
	}
	name, _, _ := bytes.Cut(verdict[nameAt:], []byte{0})
	return string(name)
}

// serviceSettings are what is set for services, without what is missing: another process knows the services.
func (n *node) serviceSettings(all []netlink.Route) (list []Setting, err error) {
	for _, r := range all {
		switch p := prefixOf(r.Dst); {
		case !n.isServiceRoute(r):
		case n.isUnreachable(r):
			list = append(list, Setting{"route", fmt.Sprintf("unreachable %s proto %d metric %d", p, protocol, r.Priority), true})
		default:
			list = append(list, Setting{"route", fmt.Sprintf("%s dev lo proto %d metric %d", p, protocol, r.Priority), true})
		}
	}
	err = n.connect(func(c *nftables.Conn) error {
		chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyIPv4)
		if err != nil {
			return fmt.Errorf("list nft chains: %w", err)
		}
		name := n.serviceTable().Name
		if !slices.ContainsFunc(chains, func(c *nftables.Chain) bool { return c.Table.Name == name }) {
			return nil
		}
		led, err := c.GetSetElements(&nftables.Set{Table: n.serviceTable(), Name: setServices})
		if err != nil {
			return fmt.Errorf("list nft set %s: %w", setServices, err)
		}
		list = append(list, Setting{"nft", fmt.Sprintf("table ip %s: %d services", name, len(led)), true})
		return nil
	})
	return list, err
}
