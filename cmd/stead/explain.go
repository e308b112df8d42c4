package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

func explainCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "explain SET|MEMBER",
		Short: "Explain what is being done for a set or member, what it waits for, and why",
		Long: `Run the planner as the server does, and show its result: every action it would take
now, and the reason for every member that waits.`,
		Example: `  stead explain etcd
  stead explain etcd-2`,
		Args:              exactly(1, "the name of a set or member"),
		ValidArgsFunction: c.completeNames(proto.KindSet, proto.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(func(control proto.ControlClient) error {
				ctx, cancel := call(cmd.Context())
				defer cancel()
				got, err := control.Explain(ctx, &proto.ExplainRequest{Namespace: c.namespace, Name: args[0]})
				if err != nil {
					return err
				}
				if len(got.GetRows()) == 0 {
					fmt.Fprintf(cmd.OutOrStdout(), "%s is up to date; nothing is being done and nothing waits\n", args[0])
					return nil
				}
				t := newTable(cmd.OutOrStdout(), "MEMBER", "ACTION", "REASON")
				for _, r := range got.GetRows() {
					member := r.GetMember()
					if member == "" {
						member = "(set)"
					}
					t.row(member, r.GetWhat(), r.GetWhy())
				}
				return t.flush()
			})
		},
	}
}
