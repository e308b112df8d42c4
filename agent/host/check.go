package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/spec"
)

// Findings are what Check finds on a host.
type Findings struct {
	// Settings are what an agent sets on the host, and whether it is set now.
	Settings []network.Setting
	// Lives are the node's guarded lives; Watched: a watchdog runs.
	Lives   int
	Watched bool
	// Warnings are what of the host's own keeps members from being reached.
	Warnings []string
	// Lacks are what this host lacks for what its options ask of it.
	Lacks []string
	// Overlap says which addresses of the host are in the way of the members'; nil: none are.
	Overlap error
}

// Fit reports whether the host is as Stead needs it.
func (f *Findings) Fit() bool {
	for _, s := range f.Settings {
		if !s.Set {
			return false
		}
	}
	return f.Overlap == nil && len(f.Warnings) == 0 && len(f.Lacks) == 0 && (f.Watched || f.Lives == 0)
}

// Check looks what the node of the options has set on this host. It changes nothing, and an
// agent may run meanwhile.
func Check(ctx context.Context, o Options) (*Findings, error) {
	name, cluster, members, err := home.Peek(o.Root)
	if err != nil {
		return nil, fmt.Errorf("%w; give the --root of an agent that ran", err)
	}
	if cluster == "" {
		return nil, fmt.Errorf("node %s has not joined a cluster; nothing is set yet", name)
	}
	cidr, err := netip.ParsePrefix(members)
	if err != nil {
		return nil, fmt.Errorf("the cluster's range of addresses: %w", err)
	}
	gateway, err := o.gateway()
	if err != nil {
		return nil, err
	}
	n, err := network.New(network.Config{ClusterID: cluster, Node: spec.NodeName(name), CIDR: cidr, Gateway: gateway, MTU: o.MTU})
	if err != nil {
		return nil, err
	}
	settings, overlap := n.Check(ctx)
	if overlap != nil && !errors.Is(overlap, network.ErrOverlap) {
		return nil, overlap
	}
	warnings, err := n.Warnings()
	if err != nil {
		return nil, err
	}
	lives, watched, err := watchdog.Below(o.RunDir).Count()
	if err != nil {
		return nil, err
	}
	return &Findings{Settings: settings, Lives: lives, Watched: watched, Warnings: warnings, Lacks: o.lacks(), Overlap: overlap}, nil
}
