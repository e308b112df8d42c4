package host

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

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
	members chan map[netip.Addr]network.Location
	nodes   chan []netip.Addr
	tunnel  chan *records.HostTunnel

	unknown map[spec.NodeName]bool // logged as without an address; update's alone
}

func newRoutes(node spec.NodeName, own netip.Prefix, net *network.Network, log *slog.Logger) *routes {
	return &routes{
		node: node, own: own, net: net, log: log, unknown: map[spec.NodeName]bool{},
		members: make(chan map[netip.Addr]network.Location, 1), nodes: make(chan []netip.Addr, 1), tunnel: make(chan *records.HostTunnel, 1),
	}
}

// update takes the newest snapshots of all sets; it does not block.
func (r *routes) update(snapshots []records.Snapshot) { replace(r.members, r.elsewhere(snapshots)) }

// elsewhere are the members of other hosts by their own addresses. Who is in the network of its host is reached
// as the host is: a route of ours to a host's address would cut that off.
func (r *routes) elsewhere(snapshots []records.Snapshot) map[netip.Addr]network.Location {
	members := map[netip.Addr]network.Location{}
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
				members[p.Address] = network.Location{Node: p.Node, Host: p.Host}
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

// While peers have not exchanged keys yet, it is looked again every againTime, at most mostTries times after the last news; later it is
// left to the network's repair.
const (
	againTime = 200 * time.Millisecond
	mostTries = 150
)

// run keeps the host's routes at the newest until ctx ends. What fails is tried again by the network's repair.
func (r *routes) run(ctx context.Context) error {
	var last trouble.Last
	for tries := 0; ; {
		var again <-chan time.Time // nil: only when there is news
		if tries < mostTries && r.net.Unsettled() {
			again = time.After(againTime)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again:
			tries++
			if err := r.net.UseTunnel(ctx, nil); ctx.Err() == nil && last.IsErr(err) {
				r.log.Warn("members elsewhere not reached", "err", err)
			}
		case t := <-r.tunnel:
			tries = 0
			if err := r.net.UseTunnel(ctx, t); ctx.Err() == nil && last.IsErr(err) {
				r.log.Warn("members elsewhere not reached", "err", err)
			}
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
