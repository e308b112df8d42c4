package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/agent/host"
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
	found, err := host.Check(ctx, o.Options)
	if err != nil {
		return usage(err)
	}
	t := newTable(out, "KIND", "SETTING", "SET")
	for _, s := range found.Settings {
		t.row(s.Kind, s.What, yesNo(s.Set))
	}
	if found.Lives > 0 || found.Watched {
		t.row("watchdog", fmt.Sprintf("ends guarded lives past their deadline; now %d", found.Lives), yesNo(found.Watched))
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, w := range found.Warnings {
		fmt.Fprintln(out, "warning:", w)
	}
	if found.Overlap != nil {
		fmt.Fprintln(out, "conflict:", found.Overlap)
	}
	if !found.Fit() {
		return errUnfit
	}
	return nil
}
