package network

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// policyTable keeps the node's table of policies, which an agent that ends leaves in force. Network.mu is
// held by who calls.
type policyTable struct {
	*node
	given   bool // there was a call of SetPolicies
	content policyContent
	members map[netip.Addr]bool // those of that call
	judged  *judged
	done    bool // the kernel holds the content, as far as this process knows
}

func (n *node) policyTable() *nftables.Table {
	return &nftables.Table{Name: "stead-" + n.name + "-policies", Family: nftables.TableFamilyIPv4}
}

// want remembers what the kernel is to hold.
func (t *policyTable) want(p Policies) {
	next := policyContentOf(p)
	t.done = t.done && reflect.DeepEqual(next.sets, t.content.sets) // the names of chains are their rules
	t.given, t.content, t.members = true, next, map[netip.Addr]bool{}
	for _, m := range p.Members {
		t.members[m.Address] = true
	}
}

// repair is ensure, for a kernel from which anything may have been removed.
func (t *policyTable) repair(h *netlink.Handle) error {
	t.done = false
	return t.ensure(h)
}

// ensure makes the kernel hold what is wanted, in one transaction that has what differs; nothing is written when
// nothing does. What nothing leads to any more is removed by another one after it, as older kernels ask. A
// table whose fixed part is not as it should be is replaced; none is made where no member needs it.
func (t *policyTable) ensure(h *netlink.Handle) error {
	if !t.given {
		return nil
	}
	if t.done {
		t.judged.set(t.members)
		return nil
	}
	attached, err := t.attached(h)
	if err != nil {
		return err
	}
	err = t.connect(func(c *nftables.Conn) error {
		have, whole, err := t.read(c)
		if err != nil {
			return err
		}
		want := t.content.clone()
		if whole {
			want.keep(have, func(a netip.Addr) bool { return t.members[a] || !attached[a] })
		}
		if len(want.chains) == 0 {
			return t.dropTable(t.policyTable())
		}
		if err := t.write(c, want, have, whole); err != nil {
			return err
		}
		return t.tidy(c, want, have)
	})
	if err == nil {
		t.done = true
		t.judged.set(t.members)
	}
	return err
}

// remove takes the table from the host.
func (t *policyTable) remove() error {
	t.given, t.done, t.content, t.members = false, false, policyContent{}, nil
	t.judged.set(nil)
	return t.dropTable(t.policyTable())
}

// attached are the addresses that lead to a member's link.
func (t *policyTable) attached(h *netlink.Handle) (map[netip.Addr]bool, error) {
	all, err := routes(h, 0)
	if err != nil {
		return nil, err
	}
	out := map[netip.Addr]bool{}
	for _, r := range all {
		if p := prefixOf(r.Dst); r.Protocol == protocol && r.Type == unix.RTN_UNICAST && p.Bits() == 32 && !t.isRemoteRoute(r) {
			out[p.Addr()] = true
		}
	}
	return out, nil
}

// write makes the table hold at least want.
func (t *policyTable) write(c *nftables.Conn, want, have policyContent, whole bool) error {
	table := t.policyTable()
	if !whole {
		renew(c, table)
	}
	for _, name := range slices.Sorted(maps.Keys(want.sets)) {
		if _, there := have.sets[name]; !whole || !there {
			if err := c.AddSet(t.set(name), nil); err != nil {
				return fmt.Errorf("write nft set %s: %w", name, err)
			}
		}
	}
	if !whole {
		for _, chain := range t.chains() {
			addChain(c, chain, t.mark())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.chains)) {
		if _, there := have.chains[name]; !there {
			addChain(c, ruleChain{&nftables.Chain{Name: name, Table: table}, want.chains[name]}, t.mark())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.sets)) {
		if err := writeDifference(c, t.set(name), want.sets[name], have.sets[name], expr.VerdictJump); err != nil {
			return err
		}
	}
	return flush(c, table)
}

// tidy removes what the table had and nothing leads to now.
func (t *policyTable) tidy(c *nftables.Conn, want, have policyContent) error {
	chains, sets := onlyIn(have.chains, want.chains), onlyIn(have.sets, want.sets)
	if len(chains)+len(sets) == 0 {
		return nil
	}
	for _, name := range chains {
		c.DelChain(&nftables.Chain{Name: name, Table: t.policyTable()})
	}
	for _, name := range sets {
		c.DelSet(t.set(name))
	}
	return flush(c, t.policyTable())
}

// read lists what the table holds. It is whole if it has all that does not depend on the policies, and no
// chain with other rules; if it is not, nothing is listed.
func (t *policyTable) read(c *nftables.Conn) (have policyContent, whole bool, err error) {
	none := policyContent{}
	marks, err := t.ruleMarks(t.policyTable())
	if err != nil {
		return none, false, err
	}
	for _, chain := range t.chains() {
		if !isWhole(marks[chain.Name], chain, t.mark()) {
			return none, false, nil
		}
		delete(marks, chain.Name)
	}
	have = newPolicyContent()
	for name := range marks {
		if rules, wanted := t.content.chains[name]; wanted && !isWhole(marks[name], ruleChain{rules: rules}, t.mark()) {
			return none, false, nil
		}
		have.chains[name] = nil
	}
	sets, err := c.GetSets(t.policyTable())
	if err != nil {
		return none, false, fmt.Errorf("list nft sets: %w", err)
	}
	found := map[string]bool{}
	for _, s := range sets {
		found[s.Name] = true
		if have.sets[s.Name], err = readElements(c, t.set(s.Name)); err != nil {
			return none, false, err
		}
	}
	for _, name := range fixedSets {
		if !found[name] {
			return none, false, nil
		}
	}
	return have, true, nil
}

// policySettings are the members that policies hold for, if there are any.
func (n *node) policySettings() (list []Setting, err error) {
	members, there, err := n.countElements((&policyTable{node: n}).set(setItself))
	if there {
		list = append(list, Setting{"nft", fmt.Sprintf("table ip %s: NetworkPolicies for %d members", n.policyTable().Name, members), true})
	}
	return list, err
}
