package host

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// routes leads members' addresses to the hosts where they are, as snapshots say.
type routes struct {
	node spec.NodeName
	own  netip.Prefix // of members' own addresses
	net  *network.Network
	log  *slog.Logger
	// The newest that is not done yet; each holds one.
	members chan map[netip.Addr]netip.Addr
	nodes   chan []netip.Addr

	unknown map[spec.NodeName]bool // logged as without an address; update's alone
}

func newRoutes(node spec.NodeName, own netip.Prefix, net *network.Network, log *slog.Logger) *routes {
	return &routes{
		node: node, own: own, net: net, log: log, unknown: map[spec.NodeName]bool{},
		members: make(chan map[netip.Addr]netip.Addr, 1), nodes: make(chan []netip.Addr, 1),
	}
}

// update takes the newest snapshots of all sets; it does not block.
func (r *routes) update(snapshots []records.Snapshot) { replace(r.members, r.elsewhere(snapshots)) }

// elsewhere are the members of other hosts by their own addresses. Who is in the network of its host is reached
// as the host is: a route of ours to a host's address would cut that off.
func (r *routes) elsewhere(snapshots []records.Snapshot) map[netip.Addr]netip.Addr {
	members := map[netip.Addr]netip.Addr{}
	for i := range snapshots {
		for _, p := range snapshots[i].Peers {
			switch {
			case p.Node == "" || p.Node == r.node || !r.own.Contains(p.Address):
			case !p.Host.IsValid():
				if !r.unknown[p.Node] {
					r.log.Warn("host not reached: its address is not known; start its agent with --address", "node", string(p.Node))
				}
				r.unknown[p.Node] = true
			default:
				members[p.Address] = p.Host
				delete(r.unknown, p.Node)
			}
		}
	}
	return members
}

// replace puts v into a channel that holds one, in place of an older. One goroutine may
// fill a channel.
func replace[T any](c chan T, v T) {
	select {
	case <-c: // older
	default:
	}
	c <- v
}

// run keeps the host's routes at the newest until ctx ends. What fails is tried again by the network's repair.
func (r *routes) run(ctx context.Context) error {
	var last trouble.Last
	for {
		select {
		case <-ctx.Done():
			return nil
		case nodes := <-r.nodes:
			if err := r.net.Admit(nodes); err != nil {
				r.log.Warn("tunnel not closed to other hosts", "err", err)
			}
		case members := <-r.members:
			if err := r.net.Reach(ctx, members); ctx.Err() == nil && last.IsErr(err) {
				r.log.Warn("members elsewhere not reached", "err", err)
			}
		}
	}
}
