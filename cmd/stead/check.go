package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/spec"
)

func checkCommand() *cobra.Command {
	var o hostOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "List what Stead sets on this host's network, and what is in its way",
		Long: `List every route, address, sysctl, link and nft table that the agent of this root
sets on the host, whether it stands, and what of the host's own keeps members from
being reached; and whether a watchdog runs, of the members that are guarded. Nothing is changed. Exit code 1 when something is missing or in the
way; a running agent puts back what is missing within seconds.`,
		Example: "  stead agent check --root /var/lib/stead/agent",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return check(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	agentFlags(cmd, &o)
	return cmd
}

// errUnfit: what check found is told in its table.
var errUnfit = errors.New("this host is not as Stead needs it; see above")

// check prints the settings of the node at o.
func check(ctx context.Context, o hostOptions, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	name, cluster, text, err := home.Peek(o.Root)
	if err != nil {
		return fmt.Errorf("%w; give the --root of an agent that ran", err)
	}
	if cluster == "" {
		return fmt.Errorf("node %s has not joined a cluster; nothing is set yet", name)
	}
	cidr, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("the cluster's range of addresses: %w", err)
	}
	gateway, err := netip.ParseAddr(o.Gateway)
	if err != nil {
		return usageError{fmt.Errorf("--gateway: %w", err)}
	}
	n, err := network.New(network.Config{ClusterID: cluster, Node: spec.NodeName(name), CIDR: cidr, Gateway: gateway, MTU: o.MTU})
	if err != nil {
		return err
	}
	settings, overlap := n.Check(ctx)
	if overlap != nil && !errors.Is(overlap, network.ErrOverlap) {
		return overlap
	}
	warnings, err := n.Warnings()
	if err != nil {
		return err
	}
	fit := overlap == nil && len(warnings) == 0
	t := newTable(out, "KIND", "SETTING", "SET")
	for _, s := range settings {
		set := "yes"
		if !s.Set {
			set, fit = "no", false
		}
		t.row(s.Kind, s.What, set)
	}
	if lives, alive, err := watchdog.Below(o.RunDir).Count(); err != nil {
		return err
	} else if lives > 0 || alive {
		set := "yes"
		if !alive {
			set, fit = "no", false
		}
		t.row("watchdog", fmt.Sprintf("ends guarded lives past their deadline; now %d", lives), set)
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintln(out, "warning:", w)
	}
	if overlap != nil {
		fmt.Fprintln(out, "conflict:", overlap)
	}
	if !fit {
		return errUnfit
	}
	return nil
}
