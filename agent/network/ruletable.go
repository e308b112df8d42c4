package network

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ruleChain is a chain with its rules.
type ruleChain struct {
	*nftables.Chain
	rules [][]expr.Any
}

// addChain adds a chain to the transaction. mark is kept with each of its rules, and says of which table and layout
// they are.
func addChain(c *nftables.Conn, chain ruleChain, mark string) {
	c.AddChain(chain.Chain)
	for _, exprs := range chain.rules {
		c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain.Chain, Exprs: exprs, UserData: []byte(mark)})
	}
}

// isWhole reports whether rules that are kept with these marks are those of a chain.
func isWhole(marks []string, chain ruleChain, mark string) bool {
	return len(marks) == len(chain.rules) && !slices.ContainsFunc(marks, func(m string) bool { return m != mark })
}

// writeDifference adds to the transaction what differs in a set that has the elements have. Where its values are verdicts,
// they are of this kind, and elements name their chains.
func writeDifference(c *nftables.Conn, set *nftables.Set, want, have elements, kind expr.VerdictKind) error {
	removed, added := want.difference(have)
	if err := writeElements(c.SetDeleteElements, set, removed, nil, kind); err != nil {
		return err
	}
	return writeElements(c.SetAddElements, set, added, want, kind)
}

// writeElements adds to the transaction what is removed from or added to a set: in messages that
// hold what a list of 64 KiB can.
func writeElements(
	write func(*nftables.Set, []nftables.SetElement) error, set *nftables.Set, keys []string, values elements, kind expr.VerdictKind,
) error {
	const most = 256
	for part := range slices.Chunk(keys, most) {
		var list []nftables.SetElement
		for _, key := range part {
			e := nftables.SetElement{Key: []byte(key)}
			switch value := values[key]; {
			case value == "":
			case set.DataType == nftables.TypeVerdict:
				e.VerdictData = &expr.Verdict{Kind: kind, Chain: value}
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

// readElements lists what a set holds.
func readElements(c *nftables.Conn, set *nftables.Set) (elements, error) {
	list, err := c.GetSetElements(set)
	if err != nil {
		return nil, fmt.Errorf("list nft set %s: %w", set.Name, err)
	}
	out := elements{}
	for _, e := range list {
		value := string(e.Val)
		if set.DataType == nftables.TypeVerdict {
			value = chainOf(e.Val)
		}
		out[string(e.Key)] = value
	}
	return out, nil
}

// countElements is how many elements a set has, if its table is there.
func (n *node) countElements(set *nftables.Set) (count int, there bool, err error) {
	err = n.connect(func(c *nftables.Conn) error {
		chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyIPv4)
		if err != nil {
			return fmt.Errorf("list nft chains: %w", err)
		}
		if !slices.ContainsFunc(chains, func(c *nftables.Chain) bool { return c.Table.Name == set.Table.Name }) {
			return nil
		}
		list, err := c.GetSetElements(set)
		if err != nil {
			return fmt.Errorf("list nft set %s: %w", set.Name, err)
		}
		count, there = len(list), true
		return nil
	})
	return count, there, err
}

// onlyIn are the keys of a that b has not, sorted.
func onlyIn[A, B any](a map[string]A, b map[string]B) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if _, there := b[name]; !there {
			names = append(names, name)
		}
	}
	return names
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
