package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
)

// Policies is what may reach members of this host, and what they may reach.
type Policies struct {
	// Members are all of this host of which this is known, open ones included, each once. Of one that is
	// not named but attached, the host keeps what it was set to last.
	Members []PolicyMember
	// Groups are IPv4 addresses that rules name together. One that changes costs as many elements as
	// it has other addresses, however many members there are.
	Groups map[string][]netip.Addr
}

// PolicyMember is a member of this host.
type PolicyMember struct {
	Address netip.Addr
	// Ingress is what may reach it, and Egress what it may reach; nil: everything. Its own host and
	// itself always may; but DNS (port 53 of the host) is reached as Egress says.
	Ingress, Egress *Filter
}

// Filter allows what one of its rules allows; without rules that is nothing. What replies is always
// allowed. Filters that are equal cost as much as one.
type Filter struct{ Rules []Allow }

// Allow allows what it names together with each of Ports.
type Allow struct {
	Anybody bool // whatever the address; the next two are empty then
	Groups  []string
	Blocks  []Block
	Ports   []PortRange // of the destination; none: every port of every protocol
}

// Block is a range of IPv4 addresses without some.
type Block struct {
	Range  netip.Prefix
	Except []netip.Prefix
}

// PortRange is from First to Last, 1 to 65535, of Protocol "TCP", "UDP" or "SCTP"; both 0: all of them.
type PortRange struct {
	Protocol    string
	First, Last uint16
}

// SetPolicies makes the host let through exactly what these policies allow, of all packets that it forwards
// to members or from them, and of members' DNS. What a policy forbids is dropped. A connection that was
// accepted before continues. A packet that was led by a service or host port is judged by the member that it
// was led to, and by the address that it comes from.
//
// It remembers the policies for Setup, which restores what was removed, and which does all of it when it was
// not called yet. Before the first call, what an earlier process left is not touched. After an error it
// may be called again; nothing is written when a policy is invalid. One goroutine at a time may call it.
func (n *Network) SetPolicies(p Policies) (err error) {
	defer wrap.Error(&err, "set policies")
	if err := n.checkPolicies(p); err != nil {
		return err
	}
	return n.enforce(func() { n.policies.want(p) }, n.policies.ensure)
}

// checkPolicies finds what the kernel cannot be told.
func (n *node) checkPolicies(p Policies) error {
	for name, addrs := range p.Groups {
		for _, a := range addrs {
			if !a.Is4() {
				return fmt.Errorf("group %s: %s is not an IPv4 address", name, a)
			}
		}
	}
	seen, checked := map[netip.Addr]bool{}, map[*Filter]bool{nil: true}
	for _, m := range p.Members {
		if !m.Address.Is4() || seen[m.Address] {
			return fmt.Errorf("member %s must be an IPv4 address, and be there once", m.Address)
		}
		seen[m.Address] = true
		for _, f := range []*Filter{m.Ingress, m.Egress} {
			if checked[f] {
				continue
			}
			checked[f] = true
			for _, rule := range f.Rules {
				if err := rule.check(p.Groups); err != nil {
					return fmt.Errorf("member %s: %w", m.Address, err)
				}
			}
		}
	}
	return nil
}

func (a *Allow) check(groups map[string][]netip.Addr) error {
	if a.Anybody && len(a.Groups)+len(a.Blocks) > 0 {
		return errors.New("a rule for anybody names groups or blocks")
	}
	for _, name := range a.Groups {
		if _, known := groups[name]; !known {
			return fmt.Errorf("there is no group %s", name)
		}
	}
	for _, b := range a.Blocks {
		for _, p := range append([]netip.Prefix{b.Range}, b.Except...) {
			if !p.IsValid() || !p.Addr().Is4() {
				return fmt.Errorf("block %s is not a range of IPv4 addresses", p)
			}
		}
	}
	for _, p := range a.Ports {
		if protocolNumbers[p.Protocol] == 0 || p.First > p.Last || p.First == 0 && p.Last != 0 {
			return fmt.Errorf("invalid ports %d to %d of %q", p.First, p.Last, p.Protocol)
		}
	}
	return nil
}

// policyWait is how long a member's network waits for what policies say of it before the caller hears of it.
const policyWait = 2 * time.Second

// awaitPolicies returns once the kernel has what policies say of a member, or it is attached already.
func (n *Network) awaitPolicies(ctx context.Context, id spec.Identity, addr netip.Addr) error {
	if n.policies.judged.has(addr) {
		return nil
	}
	h, err := n.host()
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := n.links.find(h, id)
	if err != nil {
		return err
	}
	if link != nil {
		have, err := routes(h, link.Attrs().Index)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(have, func(r netlink.Route) bool { return prefixOf(r.Dst).Addr() == addr }) {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, policyWait)
	defer cancel()
	return n.policies.judged.await(ctx, addr)
}

// judged are the members of which the kernel has what policies say.
type judged struct {
	mu      sync.Mutex
	members map[netip.Addr]bool // nil: none yet
	moved   chan struct{}       // closed and replaced when members was
}

func newJudged() *judged { return &judged{moved: make(chan struct{})} }

func (j *judged) set(members map[netip.Addr]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.members = members
	close(j.moved)
	j.moved = make(chan struct{})
}

func (j *judged) has(addr netip.Addr) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.members[addr]
}

// await returns once the kernel has what policies say of the member with this address.
func (j *judged) await(ctx context.Context, addr netip.Addr) error {
	for {
		j.mu.Lock()
		known, moved := j.members[addr], j.moved
		j.mu.Unlock()
		if known {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it is not known yet what NetworkPolicies say of %s; the member gets its network when a server has said it", addr)
		case <-moved:
		}
	}
}
