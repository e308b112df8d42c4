package network

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
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
		for _, shared := range t.content.newShared(have) {
			addChain(c, t.chain(shared), t.mark())
		}
		for _, set := range t.sets() {
			kind := expr.VerdictGoto
			if set.Name == setGuarded {
				kind = expr.VerdictJump // what is not dropped there is led
			}
			if err := writeDifference(c, set, t.content.sets[set.Name], have.sets[set.Name], kind); err != nil {
				return err
			}
		}
		for _, name := range t.content.oldShared(have) {
			c.DelChain(&nftables.Chain{Name: name, Table: t.serviceTable()})
		}
		return flush(c, t.serviceTable())
	})
	return change, err
}

// chain is that of a shared one.
func (t *serviceTable) chain(s sharedChain) ruleChain {
	return ruleChain{&nftables.Chain{Name: s.name(), Table: t.serviceTable()}, s.rules()}
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
		addChain(c, chain, t.mark())
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
		if !isWhole(marks[chain.Name], chain, t.mark()) {
			return have, false, nil
		}
		delete(marks, chain.Name)
	}
	for name := range marks {
		if s, wanted := t.content.shared[name]; wanted && !isWhole(marks[name], t.chain(s), t.mark()) {
			return have, false, nil
		}
		have.shared[name] = nil
	}
	sets, err := c.GetSets(t.serviceTable())
	if err != nil {
		return have, false, fmt.Errorf("list nft sets: %w", err)
	}
	if len(sets) < len(t.sets()) {
		return have, false, nil
	}
	for _, set := range t.sets() {
		if _, kept := have.sets[set.Name]; !kept {
			continue // the kernel fills it
		}
		if have.sets[set.Name], err = readElements(c, set); err != nil {
			return have, false, err
		}
	}
	return have, true, nil
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
	led, there, err := n.countElements(&nftables.Set{Table: n.serviceTable(), Name: setServices})
	if there {
		list = append(list, Setting{"nft", fmt.Sprintf("table ip %s: %d services", n.serviceTable().Name, led), true})
	}
	return list, err
}
