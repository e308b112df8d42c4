package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func scaleCommand(c *cli) *cobra.Command {
	var (
		replicas, current int32
		skip              bool
		wait              waitFlags
	)
	cmd := &cobra.Command{
		Use:   "scale SET --replicas N",
		Short: "Change the number of members of a set",
		Long: `Change the number of members of a set. Members are added and removed at the highest
ordinal. The volumes of removed members are kept. Where the set has a decommission hook,
a member stops when that has succeeded; --skip-decommission stops it without.`,
		Example: `  stead scale etcd --replicas 5 --wait
  stead scale set/etcd --replicas 3 --current-replicas 5
  stead scale etcd --replicas 3 --skip-decommission`,
		ValidArgsFunction: c.completeNames(proto.KindSet),
		RunE: c.onSet("only sets can be scaled", func(cmd *cobra.Command, ref spec.SetRef) error {
			if !cmd.Flags().Changed("replicas") || replicas < 0 {
				return misuse("scale needs --replicas N with N of 0 or more")
			}
			req := &proto.ScaleRequest{Namespace: c.namespace, Name: string(ref.Name), Replicas: replicas, SkipDecommission: skip}
			if cmd.Flags().Changed("current-replicas") {
				req.CurrentReplicas = &current
			}
			done, err := c.control.Scale(cmd.Context(), req)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "set %s scaled %d → %d\n", ref, done.GetBefore(), done.GetAfter())
			printEffects(cmd.OutOrStdout(), done.GetEffects())
			return wait.then(cmd, func(ctx context.Context) error { return c.waitSet(ctx, ref, forScaled, cmd.OutOrStdout()) })
		}),
	}
	cmd.Flags().Int32Var(&replicas, "replicas", 0, "the new number of members")
	cmd.Flags().Int32Var(&current, "current-replicas", 0, "refuse unless the set has this number of members now")
	cmd.Flags().BoolVar(&skip, "skip-decommission", false, "stop members that leave although their decommission hook has not succeeded, until the set is scaled again")
	wait.add(cmd, "wait until it is done, and show what each member waits for")
	return cmd
}
