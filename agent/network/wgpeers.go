package network

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const (
	// freshTime is how old the last exchange of keys with a peer may be that counts as reached: a pair of keys is used for
	// 180 s, and renewed after 120.
	freshTime = 200 * time.Second
	// greetTime is how often a peer is sent something, if nothing else is, while it is not certain that it is reached.
	greetTime = 10 * time.Second
)

// wgPeer is a peer that the device is to have.
type wgPeer struct {
	node     spec.NodeName
	key      wgtypes.Key
	endpoint netip.AddrPort
	allowed  map[netip.Addr]bool // from which it may send
}

// peersOf are the peers of a node, by their keys: the other nodes with WireGuard. Each may send from its host's address, which
// no other node and nothing else has, and from those of the members there. Of two nodes with one key the first has it. members
// that are nil are not known yet.
func (w wireLink) peersOf(t *records.HostTunnel, members map[netip.Addr]Location) map[wgtypes.Key]*wgPeer {
	peers, byNode, hosts := map[wgtypes.Key]*wgPeer{}, map[spec.NodeName]*wgPeer{}, map[netip.Addr]int{}
	for _, e := range t.Ends {
		hosts[e.Host]++
	}
	for _, e := range t.Ends {
		key, ok := records.TunnelKey(e.Key)
		if !ok || e.Node == w.cfg.Node || !w.mayBeHost(e.Host) || peers[key] != nil || byNode[e.Node] != nil {
			continue
		}
		p := &wgPeer{node: e.Node, key: key, endpoint: netip.AddrPortFrom(e.Host, e.Port), allowed: map[netip.Addr]bool{}}
		if hosts[e.Host] == 1 {
			p.allowed[e.Host] = true
		}
		peers[key], byNode[e.Node] = p, p
	}
	for addr, at := range members {
		if p := byNode[at.Node]; p != nil && w.cfg.CIDR.Contains(addr) {
			p.allowed[addr] = true
		}
	}
	return peers
}

// mayBeHost reports whether an address can be that of another host: a node that says otherwise would take the traffic
// of members, or of this host.
func (w wireLink) mayBeHost(a netip.Addr) bool {
	return a.Is4() && a.IsValid() && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast() && a != w.cfg.Gateway && !w.cfg.CIDR.Contains(a)
}

// wgDifference leads from the peers that a device has to those that it is to have; nothing: it has them. Nothing is taken from a
// peer for a moment that it is to keep. membersKnown: else what a peer may send from stays, beside what is wanted. greet: each
// peer is sent something again and again.
func wgDifference(have []wgtypes.Peer, want map[wgtypes.Key]*wgPeer, membersKnown, greet bool, now time.Time) (list []wgtypes.PeerConfig) {
	wanted := map[netip.Addr]bool{}
	for _, p := range want {
		maps.Insert(wanted, maps.All(p.allowed))
	}
	var nobodys []net.IPNet
	had := map[wgtypes.Key]bool{}
	for i := range have {
		h := &have[i]
		had[h.PublicKey] = true
		p := want[h.PublicKey]
		if p == nil {
			list = append(list, wgtypes.PeerConfig{PublicKey: h.PublicKey, Remove: true})
			continue
		}
		c, drop := p.change(h, greet, now)
		for _, a := range drop {
			if addr := prefixOf(&a).Addr(); membersKnown && !wanted[addr] || prefixOf(&a).Bits() != 32 {
				nobodys = append(nobodys, a)
			}
		}
		if c != nil {
			list = append(list, *c)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(want), func(a, b wgtypes.Key) int { return slices.Compare(a[:], b[:]) }) {
		if !had[key] {
			c, _ := want[key].change(&wgtypes.Peer{}, greet, now)
			c.ReplaceAllowedIPs = true
			list = append(list, *c)
		}
	}
	return append(list, takeAway(nobodys)...)
}

// change leads from what a device has of a peer to what it is to have; nil: it has it. drop is what the peer may send from and is
// not to.
func (p *wgPeer) change(have *wgtypes.Peer, greet bool, now time.Time) (c *wgtypes.PeerConfig, drop []net.IPNet) {
	c = &wgtypes.PeerConfig{PublicKey: p.key}
	differs := have.PublicKey != p.key
	allowed := map[netip.Addr]bool{}
	for _, a := range have.AllowedIPs {
		if prefix := prefixOf(&a); prefix.Bits() == 32 && p.allowed[prefix.Addr()] {
			allowed[prefix.Addr()] = true
		} else {
			drop = append(drop, a)
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(p.allowed), netip.Addr.Compare) {
		if !allowed[a] {
			c.AllowedIPs, differs = append(c.AllowedIPs, *hostPrefix(a)), true
		}
	}
	// A peer that sends from another of its host's addresses is answered there, as long as it is heard.
	elsewhere := have.Endpoint == nil || have.Endpoint.AddrPort() != p.endpoint
	if elsewhere && now.Sub(have.LastHandshakeTime) > freshTime {
		c.Endpoint, differs = net.UDPAddrFromAddrPort(p.endpoint), true
	}
	every := time.Duration(0)
	if greet {
		every = greetTime
	}
	if have.PersistentKeepaliveInterval != every {
		c.PersistentKeepaliveInterval, differs = &every, true
	}
	if !differs {
		return nil, drop
	}
	return c, drop
}

// takeAway gives addresses to a peer that does not exist, and removes that: no kernel before 6.16 takes a single one away, and
// to write all of a peer's again would drop what is sent meanwhile.
func takeAway(list []net.IPNet) []wgtypes.PeerConfig {
	if len(list) == 0 {
		return nil
	}
	key, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		return nil // without random numbers nothing works; the next repair tries again
	}
	nobody := key.PublicKey()
	return []wgtypes.PeerConfig{{PublicKey: nobody, ReplaceAllowedIPs: true, AllowedIPs: list}, {PublicKey: nobody, Remove: true}}
}
