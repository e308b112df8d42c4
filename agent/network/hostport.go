package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/google/nftables"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// published is a host port and where it leads.
type published struct {
	id   spec.Identity
	addr netip.Addr // the member's
	port spec.HostPort
}

// mark is kept with each rule of a host port, so that the next process knows it:
// "stead:default/db-0 192.0.2.1:8080/TCP 10.88.0.7:80".
func (p published) mark() string {
	return fmt.Sprintf("stead:%s %s %s", p.id, p.port, netip.AddrPortFrom(p.addr, p.port.To))
}

// publishedOf reads a mark; false: it is none.
func publishedOf(mark string) (p published, ok bool) {
	text, ours := strings.CutPrefix(mark, "stead:")
	words := strings.Split(text, " ")
	if !ours || len(words) != 3 {
		return p, false
	}
	ns, member, _ := strings.Cut(words[0], "/")
	set, ordinal, err := spec.ParseMemberName(member)
	at, protocol, _ := strings.Cut(words[1], "/")
	to, err2 := netip.ParseAddrPort(words[2])
	if err != nil || err2 != nil {
		return p, false
	}
	p.id = spec.Identity{Namespace: spec.Namespace(ns), Set: set, Ordinal: ordinal}
	p.addr, p.port = to.Addr(), spec.HostPort{Protocol: protocol, To: to.Port()}
	if number, err := strconv.ParseUint(at, 10, 16); err == nil {
		p.port.Port = uint16(number)
		return p, true
	}
	where, err := netip.ParseAddrPort(at)
	p.port.Address, p.port.Port = where.Addr(), where.Port()
	return p, err == nil
}

// publish leads ports of the host to the member at addr, and no others. It fails with
// runtime.ErrPortTaken, and changes nothing, when one is another member's, or when a process
// of the host listens there: the rules would take from it what it got until now. Rules that
// are right are left alone, with their counters.
func (t *natTable) publish(id spec.Identity, addr netip.Addr, ports []spec.HostPort) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nft(func(c *nftables.Conn) error {
		have, err := t.portRules(c)
		if err != nil {
			return err
		}
		var missing []published
		rules := map[published]int{}
		for _, r := range have {
			rules[r.published]++
		}
		right := map[published]bool{}
		for _, port := range ports {
			p := published{id, addr, port}
			right[p] = rules[p] == len(t.portChains())
			if !right[p] {
				missing = append(missing, p)
			}
		}
		stale := slices.DeleteFunc(slices.Clone(have), func(r portRule) bool { return r.id != id || right[r.published] })
		if len(missing) == 0 && len(stale) == 0 {
			return nil
		}
		at := map[published][]netip.Addr{}
		for _, p := range missing {
			at[p], err = t.checkPortFree(p, have)
			if err != nil {
				return err
			}
			t.addPort(c, p)
		}
		if err := t.dropRules(c, stale); err != nil {
			return err
		}
		t.endConnections(func(f *netlink.ConntrackFlow) bool {
			return slices.ContainsFunc(missing, func(p published) bool { return p.startedBefore(f, at[p]) })
		})
		return nil
	})
}

// unpublish removes the host ports of an identity, and ends what came through them.
func (t *natTable) unpublish(id spec.Identity) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nft(func(c *nftables.Conn) error {
		have, err := t.portRules(c)
		if err != nil {
			return err
		}
		have = slices.DeleteFunc(have, func(r portRule) bool { return r.id != id })
		if len(have) == 0 {
			return nil
		}
		if err := t.dropRules(c, have); err != nil {
			return err
		}
		t.endConnections(func(f *netlink.ConntrackFlow) bool {
			return slices.ContainsFunc(have, func(r portRule) bool { return r.cameThrough(f) })
		})
		return nil
	})
}

// checkPortFree returns the addresses of the host at which p is to be published. It fails
// if another member or a process of the host has the port at one of them.
func (t *natTable) checkPortFree(p published, have []portRule) ([]netip.Addr, error) {
	for _, r := range have {
		if r.id != p.id && r.port.Meets(p.port) {
			return nil, fmt.Errorf("host port %s leads to %s: %w", r.port, r.id, runtime.ErrPortTaken)
		}
	}
	addrs, err := t.portAddresses(p.port)
	if err != nil {
		return nil, err
	}
	return addrs, checkNotListening(p.port, addrs)
}

// portAddresses are the addresses of the host at which p is, without 127.0.0.0/8 and the
// gateway. One that p names and the host has not is an error.
func (t *natTable) portAddresses(p spec.HostPort) ([]netip.Addr, error) {
	h, err := t.host()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	all, err := addresses(h, nil)
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range all {
		addr := prefixOf(a.IPNet).Addr()
		if !addr.IsLoopback() && addr != t.cfg.Gateway && (!p.Address.IsValid() || p.Address == addr) {
			out = append(out, addr)
		}
	}
	if p.Address.IsValid() && len(out) == 0 {
		return nil, fmt.Errorf("host port %s: %s is not an address of this host where a port can be published: %w", p, p.Address, runtime.ErrPortTaken)
	}
	return out, nil
}

// checkNotListening fails when a process of the host has the port at one of the addresses; by the
// namespace of the calling thread.
func checkNotListening(p spec.HostPort, addrs []netip.Addr) error {
	for _, addr := range addrs {
		kind := unix.SOCK_STREAM
		if p.Protocol == "UDP" {
			kind = unix.SOCK_DGRAM
		}
		fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("look whether host port %s is free: %w", p, err)
		}
		if kind == unix.SOCK_STREAM { // past connections do not count; of UDP all would share
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(p.Port), Addr: addr.As4()})
		}
		unix.Close(fd)
		switch {
		case errors.Is(err, unix.EADDRINUSE):
			return fmt.Errorf("a process of the host has port %s at %s: %w", p, addr, runtime.ErrPortTaken)
		case err != nil:
			return fmt.Errorf("look whether host port %s is free: %w", p, err)
		}
	}
	return nil
}

// endConnections makes the kernel forget connections. What cannot be ended ends when the client
// rests.
func (t *natTable) endConnections(which flows) {
	if err := t.forget(which); err != nil {
		t.cfg.Logger.Warn("connections through host ports not ended", "err", err)
	}
}

// forget makes the kernel forget connections: a client that continues to send would be routed by
// what it remembers, not by the rules.
func (n *node) forget(which flows) error {
	return inNamespace(n.cfg.NetNS, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer h.Close()
		_, err = listed("connections", func() ([]struct{}, error) {
			_, err := h.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, which)
			return nil, err
		})
		return err
	})
}

// flows says which connections are meant.
type flows func(*netlink.ConntrackFlow) bool

// MatchConntrackFlow is what the library asks.
func (f flows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool { return f(flow) }

// cameThrough: the connection came in by the host port.
func (p published) cameThrough(f *netlink.ConntrackFlow) bool {
	return isIP(f.Reverse.SrcIP, p.addr) && f.Reverse.SrcPort == p.port.To && p.isToPort(f) && !isIP(f.Forward.DstIP, p.addr)
}

// startedBefore: the client started to send before the port was led anywhere.
func (p published) startedBefore(f *netlink.ConntrackFlow, addrs []netip.Addr) bool {
	return p.port.Protocol == "UDP" && p.isToPort(f) && f.Forward.DstIP.Equal(f.Reverse.SrcIP) &&
		slices.ContainsFunc(addrs, func(a netip.Addr) bool { return isIP(f.Forward.DstIP, a) })
}

func (p published) isToPort(f *netlink.ConntrackFlow) bool {
	return f.Forward.Protocol == p.number() && f.Forward.DstPort == p.port.Port
}

// number is the protocol's.
func (p published) number() uint8 {
	if p.port.Protocol == "UDP" {
		return unix.IPPROTO_UDP
	}
	return unix.IPPROTO_TCP
}

func isIP(ip net.IP, addr netip.Addr) bool { return ip.Equal(addr.AsSlice()) }
