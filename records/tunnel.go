package records

import (
	"encoding/base64"
	"net/netip"

	"github.com/stead-project/stead/spec"
)

// The kinds of tunnel between hosts: a setting of the whole cluster.
const (
	// TunnelVXLAN: VXLAN, where hosts share no link.
	TunnelVXLAN = "vxlan"
	// TunnelBoth is for the time of a change: WireGuard between nodes that both have it and have exchanged keys just
	// now, and TunnelVXLAN's ways between others.
	TunnelBoth = "both"
	// TunnelWireGuard: WireGuard between all hosts, also those that share a link, and nothing else.
	TunnelWireGuard = "wireguard"
)

// TunnelKinds are all kinds.
var TunnelKinds = []string{TunnelVXLAN, TunnelBoth, TunnelWireGuard}

// TunnelFacts are what a node says of its end of the WireGuard tunnel.
type TunnelFacts struct {
	// Key is its public key, in base64; "": it has no end, because of Missing.
	Key string `json:"key,omitempty"`
	// Port of UDP at which it takes packets, at the node's address.
	Port uint16 `json:"port,omitempty"`
	// Device is TunnelInKernel or TunnelInProcess.
	Device string `json:"device,omitempty"`
	// Missing says why it has none, for people.
	Missing string `json:"missing,omitempty"`
}

// What a node's end of the WireGuard tunnel is.
const (
	TunnelInKernel  = "kernel"
	TunnelInProcess = "process"
)

// HostTunnel is what nodes are to know of the ways between them.
type HostTunnel struct {
	// Kind is the cluster's; "", of a server that was given none: as before.
	Kind string `json:"kind,omitempty"`
	// Ends are those of all nodes with WireGuard and an address, by name.
	Ends []TunnelEnd `json:"ends,omitempty"`
}

// TunnelEnd is a node's end of the WireGuard tunnel, as others reach it.
type TunnelEnd struct {
	Node spec.NodeName `json:"node"`
	Host netip.Addr    `json:"host"`
	Port uint16        `json:"port"`
	Key  string        `json:"key"`
}

// End is a node's end as it says; nil: it has none that others could reach. f may be nil.
func (f *NodeFacts) End() *TunnelEnd {
	if f == nil || f.Tunnel == nil || f.Tunnel.Port == 0 || !f.Address().Is4() {
		return nil
	}
	if _, ok := TunnelKey(f.Tunnel.Key); !ok {
		return nil
	}
	return &TunnelEnd{Node: f.Name, Host: f.Address(), Port: f.Tunnel.Port, Key: f.Tunnel.Key}
}

// TunnelKey decodes a public key; false: it is none.
func TunnelKey(text string) (key [32]byte, ok bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != len(key) {
		return key, false
	}
	copy(key[:], b)
	return key, key != [32]byte{}
}

// After is t, which came after another: it keeps the kind of that where it has none. t and before may be nil.
func (t *HostTunnel) After(before *HostTunnel) *HostTunnel {
	if t == nil || before == nil || t.Kind != "" || before.Kind == "" {
		return t
	}
	return &HostTunnel{Kind: before.Kind, Ends: t.Ends}
}
