package dispatch

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/store"
)

// missingBytes bounds what a node says of why it has no WireGuard.
const missingBytes = 512

// nextTunnel is the tunnel between hosts, in JSON; empty: there was never anything to say. A node that was removed is not in it.
func (p *snapshotPublisher) nextTunnel(nodes []plan.Node) []byte {
	t := records.HostTunnel{Kind: p.kind}
	for _, n := range nodes {
		if end := n.Facts.End(); end != nil {
			t.Ends = append(t.Ends, *end)
		}
	}
	if t.Kind == "" && len(t.Ends) == 0 && p.tunnel == nil {
		return nil
	}
	slices.SortFunc(t.Ends, func(a, b records.TunnelEnd) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return store.Encode(t)
}

// saneTunnel is what a node says of its end, as it may be stored: a key of another node is not its own.
func saneTunnel(v cache.View, f *records.NodeFacts) *records.TunnelFacts {
	if f.Tunnel == nil {
		return nil
	}
	t := *f.Tunnel
	sanitize(&t.Missing, missingBytes)
	sanitize(&t.Device, wordBytes)
	if _, ok := records.TunnelKey(t.Key); !ok {
		t.Key, t.Port = "", 0
		return &t
	}
	for _, n := range v.Nodes() {
		if n.Node.Name != f.Name && n.Facts != nil && n.Facts.Tunnel != nil && n.Facts.Tunnel.Key == t.Key {
			return &records.TunnelFacts{Missing: "its key is that of node " + string(n.Node.Name)}
		}
	}
	return &t
}
