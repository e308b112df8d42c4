package network

import (
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// serviceTable keeps the node's table of services and the routes of their range. It is a table of
// its own, as the shield's is: a large one that is written by differences, while that of host
// ports is written again as a whole; and an agent of an earlier version leaves it alone.
// Network.mu is held by who calls.
type serviceTable struct {
	*node
	given   bool // there was a call of SetServices
	rng     netip.Prefix
	content content

	routed bool     // the routes are those of rng, as far as this process knows
	swept  bool     // connections of UDP that no service leads where they go were ended
	gone   elements // of setLed, UDP: removed since then
}

func (n *node) serviceTable() *nftables.Table {
	return &nftables.Table{Name: "stead-" + n.name + "-services", Family: nftables.TableFamilyIPv4}
}

// want remembers what the kernel is to hold.
func (t *serviceTable) want(rng netip.Prefix, services []Service) {
	t.routed = t.routed && t.rng == rng
	t.given, t.rng, t.content = true, rng, contentOf(services)
}

// repair is ensure, for a kernel from which anything may have been removed.
func (t *serviceTable) repair(h *netlink.Handle) error {
	t.routed = false
	return t.ensure(h)
}

// ensure makes the kernel hold what is wanted. The routes are first: without them
// a rejected packet could leave the host.
func (t *serviceTable) ensure(h *netlink.Handle) (err error) {
	if !t.given {
		return nil
	}
	if !t.routed {
		if err := t.ensureRoutes(h); err != nil {
			return err
		}
		t.routed = true
	}
	changed, err := t.write()
	if err != nil {
		return err
	}
	return t.sweep(h, changed)
}

// remove takes everything of services from the host.
func (t *serviceTable) remove(h *netlink.Handle) error {
	*t = serviceTable{node: t.node}
	if err := t.dropTable(t.serviceTable()); err != nil {
		return err
	}
	return t.ensureRoutes(h)
}

// sweep makes the kernel forget connections of UDP that the services do not lead where they
// go, after a write that changed services of UDP. The first sweep of a process, or after one that failed, is
// made in any case: for what the one before left.
func (t *serviceTable) sweep(h *netlink.Handle, changed udpChange) error {
	if t.gone == nil {
		t.gone = elements{}
	}
	for led := range changed.removed {
		t.gone[led] = ""
	}
	if t.swept && !changed.any {
		return nil
	}
	t.swept = false
	s := staleFlows{content: t.content, rng: t.rng, members: t.cfg.CIDR, gateway: t.cfg.Gateway, gone: t.gone, own: map[netip.Addr]bool{}}
	addrs, err := addresses(h, nil)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if addr := prefixOf(a.IPNet).Addr(); !addr.IsLoopback() && addr != t.cfg.Gateway {
			s.own[addr] = true
		}
	}
	if err := t.forget(s.contain); err != nil {
		return fmt.Errorf("end connections of UDP whose endpoint is gone: %w", err)
	}
	t.swept, t.gone = true, nil
	return nil
}

// staleFlows are the connections of UDP that no service leads where they go.
type staleFlows struct {
	content content
	rng     netip.Prefix
	members netip.Prefix
	gateway netip.Addr
	gone    elements // led until now
	own     map[netip.Addr]bool
}

// led are where clients at an address are led by a service.
func (s staleFlows) led(key string, from netip.Addr) elements {
	if _, near := s.content.sets[setOutside][key]; !near || s.members.Contains(from) || from == s.gateway || from.IsLoopback() || s.own[from] {
		return s.content.sets[setLed]
	}
	return s.content.near
}

func (s staleFlows) contain(f *netlink.ConntrackFlow) bool {
	to, ok := netip.AddrFromSlice(f.Forward.DstIP)
	at, ok2 := netip.AddrFromSlice(f.Reverse.SrcIP)
	from, ok3 := netip.AddrFromSlice(f.Forward.SrcIP)
	if f.Forward.Protocol != unix.IPPROTO_UDP || !ok || !ok2 || !ok3 {
		return false
	}
	to = to.Unmap()
	endpoint := endpointBytes(netip.AddrPortFrom(at.Unmap(), f.Reverse.SrcPort))
	names := []netip.Addr{to}
	if s.own[to] {
		names = append(names, netip.Addr{})
	}
	for _, name := range names {
		key := serviceID{name, f.Forward.DstPort, unix.IPPROTO_UDP}.bytes()
		if _, there := s.content.sets[setServices][key]; there {
			_, led := s.led(key, from.Unmap())[key+endpoint]
			return !led
		}
		if _, gone := s.gone[key+endpoint]; gone {
			return true
		}
	}
	return s.rng.IsValid() && s.rng.Contains(to)
}
