package host

import (
	"net/netip"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/records"
)

// Names keeps a node's DNS at the newest snapshots of all sets.
type Names struct {
	swap   func(*dnsd.Zone)
	newest dnsd.Snapshot
	zone   *dnsd.Zone // made from newest; nil: not yet
}

// NewNames returns names of a cluster's domain and members, for which swap has each new zone
// answered from (dnsd.Server.Swap).
func NewNames(domain string, gateway netip.Addr, members netip.Prefix, swap func(*dnsd.Zone)) *Names {
	return &Names{swap: swap, newest: dnsd.Snapshot{Domain: domain, Gateway: gateway, Members: members}}
}

// Update takes the newest snapshots of all sets. One goroutine at a time may call it, and
// nobody may change them. For agent.Config.Snapshots.
func (n *Names) Update(snapshots []records.Snapshot) {
	n.newest.Pictures = snapshots
	for _, s := range snapshots {
		if s.Sequence.Compare(n.newest.Sequence) > 0 {
			n.newest.Sequence = s.Sequence
		}
	}
	n.zone = n.zone.Next(n.newest)
	n.swap(n.zone)
}
