package main

import (
	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

func jobCommand(c *cli) *cobra.Command {
	return group("job", "Decide about a job of a set that failed, or of which it is not known what came of it",
		jobDecision(c, false), jobDecision(c, true))
}

// jobDecision is the verb retry, or skip.
func jobDecision(c *cli, skip bool) *cobra.Command {
	use, short, said := "retry", "Run a job again of which it is not known what came of it", "is run again when all members are ready"
	if skip {
		use, short, said = "skip", "Count a job as done that failed, or of which it is not known what came of it", "counts as done"
	}
	return &cobra.Command{
		Use:               use + " SET JOB",
		Short:             short,
		Example:           "  stead job " + use + " redis create",
		ValidArgsFunction: c.completeNames(proto.KindSet),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return misuse("%s needs a set and a job", use)
			}
			done, err := c.control.DecideJob(cmd.Context(), &proto.DecideJobRequest{Namespace: c.namespace, Set: args[0], Job: args[1], Skip: skip})
			return printEdit(cmd, done, err, "job "+args[1]+" of set "+args[0]+" "+said)
		},
	}
}
