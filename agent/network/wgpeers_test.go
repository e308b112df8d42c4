package network

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func wgKey(number byte) wgtypes.Key { return wgtypes.Key(slices.Repeat([]byte{number}, 32)) }

func endOf(node spec.NodeName, host string, number byte) records.TunnelEnd {
	return records.TunnelEnd{Node: node, Host: netip.MustParseAddr(host), Port: 7, Key: wgKey(number).String()}
}

// TestAPeerMaySendFromItsOwnAddressesAlone whatever other nodes say of theirs.
func TestAPeerMaySendFromItsOwnAddressesAlone(t *testing.T) {
	n, err := New(Config{ClusterID: cluster, Node: "n1"})
	must(t, err)
	at := func(node spec.NodeName) Location { return Location{Node: node, Host: netip.MustParseAddr("192.0.2.7")} }
	members := map[netip.Addr]Location{
		address(2): at("n2"), address(3): at("n3"), address(4): at("n4"), netip.MustParseAddr("192.0.2.99"): at("n2"),
	}
	for _, tt := range []struct {
		name string
		ends []records.TunnelEnd
		want map[byte][]string // what the peer with this key may send from
	}{
		{"two others", []records.TunnelEnd{endOf("n1", "192.0.2.1", 1), endOf("n2", "192.0.2.2", 2), endOf("n3", "192.0.2.3", 3)},
			map[byte][]string{2: {"10.88.0.2", "192.0.2.2"}, 3: {"10.88.0.3", "192.0.2.3"}}},
		{"one says that its host is that of another", []records.TunnelEnd{endOf("n2", "192.0.2.2", 2), endOf("n3", "192.0.2.2", 3)},
			map[byte][]string{2: {"10.88.0.2"}, 3: {"10.88.0.3"}}},
		{"one says that its host is a member", []records.TunnelEnd{endOf("n2", "10.88.0.3", 2), endOf("n3", "192.0.2.3", 3)},
			map[byte][]string{3: {"10.88.0.3", "192.0.2.3"}}},
		{"one says that its host is this one", []records.TunnelEnd{endOf("n1", "192.0.2.1", 1), endOf("n2", "192.0.2.1", 2)},
			map[byte][]string{2: {"10.88.0.2"}}},
		{"one says that its host is the gateway", []records.TunnelEnd{endOf("n2", "169.254.1.1", 2)}, nil},
		{"one says that its host is every host", []records.TunnelEnd{endOf("n2", "0.0.0.0", 2), endOf("n3", "127.0.0.1", 3), endOf("n4", "224.0.0.1", 4)}, nil},
		{"two with one key", []records.TunnelEnd{endOf("n2", "192.0.2.2", 2), endOf("n3", "192.0.2.3", 2)},
			map[byte][]string{2: {"10.88.0.2", "192.0.2.2"}}},
		{"a node with two keys", []records.TunnelEnd{endOf("n2", "192.0.2.2", 2), endOf("n2", "192.0.2.3", 3)},
			map[byte][]string{2: {"10.88.0.2", "192.0.2.2"}}},
		{"no key", []records.TunnelEnd{{Node: "n2", Host: netip.MustParseAddr("192.0.2.2"), Port: 7, Key: "AAAA"}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := n.wire.peersOf(&records.HostTunnel{Ends: tt.ends}, members)
			for number, want := range tt.want {
				p := got[wgKey(number)]
				if p == nil {
					t.Fatalf("no peer %d", number)
				}
				var list []string
				for _, a := range slices.SortedFunc(maps.Keys(p.allowed), netip.Addr.Compare) {
					list = append(list, a.String())
				}
				if !slices.Equal(list, want) {
					t.Errorf("peer %d may send from %q, want %q", number, list, want)
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("there are %d peers, want %d", len(got), len(tt.want))
			}
		})
	}
}

// device is one that does what it is told as WireGuard does.
type device map[wgtypes.Key]wgtypes.Peer

func (d device) apply(list []wgtypes.PeerConfig) {
	for _, c := range list {
		p := d[c.PublicKey]
		p.PublicKey = c.PublicKey
		if c.Remove {
			delete(d, c.PublicKey)
			continue
		}
		if c.ReplaceAllowedIPs {
			p.AllowedIPs = nil
		}
		if c.Endpoint != nil {
			p.Endpoint = c.Endpoint
		}
		if c.PersistentKeepaliveInterval != nil {
			p.PersistentKeepaliveInterval = *c.PersistentKeepaliveInterval
		}
		for _, a := range c.AllowedIPs {
			for key, other := range d {
				other.AllowedIPs = slices.DeleteFunc(slices.Clone(other.AllowedIPs), func(b net.IPNet) bool { return a.IP.Equal(b.IP) })
				d[key] = other
			}
			p.AllowedIPs = append(slices.DeleteFunc(slices.Clone(p.AllowedIPs), func(b net.IPNet) bool { return a.IP.Equal(b.IP) }), a)
		}
		d[c.PublicKey] = p
	}
}

// TestPeersAreChangedByDifference: whatever a device has, it gets what it is to have, a second look finds nothing to do, and nobody who keeps an
// address is without it in between.
func TestPeersAreChangedByDifference(t *testing.T) {
	now := time.Now()
	peer := func(number byte, last ...byte) *wgPeer {
		p := &wgPeer{key: wgKey(number), endpoint: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, number}), 7), allowed: map[netip.Addr]bool{}}
		for _, l := range last {
			p.allowed[address(l)] = true
		}
		return p
	}
	steps := [][]*wgPeer{
		{peer(1, 1, 2), peer(2, 3)},
		{peer(1, 1, 2), peer(2, 3)},
		{peer(1, 1), peer(2, 3, 2, 4)}, // one moves, one comes
		{peer(1, 1), peer(2, 2)},       // two leave
		{peer(2, 2, 1)},                // a node is removed, its member is elsewhere
		{peer(3, 1, 2)},
		{},
	}
	d := device{}
	for i, step := range steps {
		want := map[wgtypes.Key]*wgPeer{}
		for _, p := range step {
			want[p.key] = p
		}
		for _, greet := range []bool{true, false} {
			for _, c := range wgDifference(slices.Collect(maps.Values(d)), want, true, greet, now) {
				before := maps.Clone(d)
				d.apply([]wgtypes.PeerConfig{c})
				for key, p := range before {
					for _, a := range p.AllowedIPs {
						addr := prefixOf(&a).Addr()
						if w := want[key]; w != nil && w.allowed[addr] && !slices.ContainsFunc(d[key].AllowedIPs, func(b net.IPNet) bool { return a.IP.Equal(b.IP) }) {
							t.Errorf("step %d: %s is without %s meanwhile", i, key, addr)
						}
					}
				}
			}
			if again := wgDifference(slices.Collect(maps.Values(d)), want, true, greet, now); len(again) > 0 {
				t.Errorf("step %d: a second look changes %+v", i, again)
			}
			if len(d) != len(want) {
				t.Fatalf("step %d: %d peers, want %d", i, len(d), len(want))
			}
			for key, p := range want {
				have := d[key]
				every := time.Duration(0)
				if greet {
					every = greetTime
				}
				if len(have.AllowedIPs) != len(p.allowed) || have.Endpoint.AddrPort() != p.endpoint || have.PersistentKeepaliveInterval != every {
					t.Errorf("step %d: got %+v, want %+v", i, have, p)
				}
			}
		}
	}
}

// What an agent that was started again does not know yet, stays; and a peer that is heard from another address is answered there.
func TestPeersStayAsTheyAreWhileNothingBetterIsKnown(t *testing.T) {
	now := time.Now()
	p := &wgPeer{key: wgKey(1), endpoint: netip.MustParseAddrPort("192.0.2.1:7"), allowed: map[netip.Addr]bool{}}
	have := wgtypes.Peer{
		PublicKey: p.key, Endpoint: net.UDPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.99:7")),
		AllowedIPs: []net.IPNet{*hostPrefix(address(1))}, LastHandshakeTime: now,
	}
	want := map[wgtypes.Key]*wgPeer{p.key: p}
	if got := wgDifference([]wgtypes.Peer{have}, want, false, false, now); len(got) > 0 {
		t.Errorf("changed: %+v", got)
	}
	if got := wgDifference([]wgtypes.Peer{have}, want, true, false, now); len(got) != 2 || len(got[0].AllowedIPs) != 1 || !got[1].Remove {
		t.Errorf("nobody has the address: %+v", got)
	}
	if got := wgDifference([]wgtypes.Peer{have}, want, false, false, now.Add(time.Hour)); len(got) != 1 || got[0].Endpoint.AddrPort() != p.endpoint {
		t.Errorf("it is not heard any more: %+v", got)
	}
	all := net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
	have.AllowedIPs = []net.IPNet{all}
	if got := wgDifference([]wgtypes.Peer{have}, want, false, false, now); len(got) != 2 || got[0].AllowedIPs[0].String() != all.String() {
		t.Errorf("it may send from anywhere: %+v", got)
	}
}

func TestTheKeyIsTheSameUntilTheNextBoot(t *testing.T) {
	dir := t.TempDir()
	key, err := OpenTunnelKey(dir)
	must(t, err)
	again, err := OpenTunnelKey(dir)
	must(t, err)
	other, err := OpenTunnelKey(t.TempDir())
	must(t, err)
	if again != key || other == key || key.PublicKey() == key {
		t.Errorf("keys %s, %s, %s", key, again, other)
	}
}
