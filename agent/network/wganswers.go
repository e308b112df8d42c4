package network

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// answerWays lead what members answer to other hosts, which have connected through WireGuard, by the same way: hosts' addresses are
// reached beside it by everybody else, and by WireGuard itself. They are routes in a table of their own, which a rule
// has members use.
type answerWays struct{ *node }

// ruleOrder is the priority of the rule: before that of the table main.
const ruleOrder = 15083

// table is that of the routes; the number is the node's own.
func (w answerWays) table() int { return 1<<30 | w.mark() }

func (w answerWays) rule() *netlink.Rule {
	r := netlink.NewRule()
	r.Family, r.Src, r.Table, r.Priority = unix.AF_INET, ipNet(w.cfg.CIDR), w.table(), ruleOrder
	return r
}

// ensure makes the table lead to the hosts in link; none: there is neither table nor rule.
func (w answerWays) ensure(h *netlink.Handle, link netlink.Link, hosts map[netip.Addr]bool) error {
	filter := &netlink.Route{Table: w.table()}
	list, err := listed("routes", func() ([]netlink.Route, error) {
		return h.RouteListFiltered(unix.AF_INET, filter, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return err
	}
	var errs []error
	have := map[netip.Addr]bool{}
	for _, r := range list {
		if a := prefixOf(r.Dst).Addr(); hosts[a] && r.LinkIndex == link.Attrs().Index {
			have[a] = true
		} else {
			errs = append(errs, removeRoutes(h, []netlink.Route{r}))
		}
	}
	for a := range hosts {
		if have[a] {
			continue
		}
		r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: hostPrefix(a), Protocol: protocol, Table: w.table(), Scope: netlink.SCOPE_LINK}
		if err := h.RouteReplace(r); err != nil {
			errs = append(errs, fmt.Errorf("add route %s of members' answers: %w", a, err))
		}
	}
	return errors.Join(append(errs, w.ensureRule(h, len(hosts) > 0))...)
}

func (w answerWays) ensureRule(h *netlink.Handle, wanted bool) error {
	rules, err := h.RuleListFiltered(unix.AF_INET, w.rule(), netlink.RT_FILTER_TABLE)
	switch {
	case err != nil && !wanted: // a kernel without rules has none
		return nil
	case err != nil:
		return fmt.Errorf("list rules: %w", err)
	}
	switch {
	case wanted && len(rules) == 0:
		err = h.RuleAdd(w.rule())
	case !wanted && len(rules) > 0:
		err = h.RuleDel(w.rule())
	}
	if err != nil && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("rule for members' answers: %w", err)
	}
	return nil
}
