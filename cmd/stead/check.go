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
		Short: "Check the network settings of Stead on this host, and what blocks members",
		Long: `List every route, address, sysctl, link and nft table that the agent of this root sets
on the host, and whether it is set; what on the host blocks members; and, if there are
guarded members, whether a watchdog runs. Nothing is changed. Exit code 1 when something is
missing or in the way. A running agent restores what is missing within seconds.`,
		Example: "  stead agent check --root /var/lib/stead/agent",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return check(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	agentFlags(cmd, &o)
	return cmd
}

// errUnfit: the table above has the details.
var errUnfit = errors.New("this host is not ready for Stead; see above")

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
