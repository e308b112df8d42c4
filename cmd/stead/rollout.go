package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func rolloutCommand(c *cli) *cobra.Command {
	return group("rollout", "Follow an update of a set, hold it, go back, or restart its members",
		rolloutStatus(c), rolloutHistory(c), rolloutUndo(c), rolloutPause(c, true), rolloutPause(c, false), rolloutRestart(c))
}

// rolloutSet reads the set that a rollout verb is about.
func (c *cli) rolloutSet(args []string) (spec.SetRef, error) {
	return c.parseSet(args, "only sets roll out")
}

// onSet calls do, bounded as every call, with the set that args name.
func (c *cli) onSet(cmd *cobra.Command, args []string, do func(context.Context, proto.ControlClient, string) error) error {
	ref, err := c.rolloutSet(args)
	if err != nil {
		return err
	}
	return c.with(func(control proto.ControlClient) error {
		ctx, cancel := call(cmd.Context())
		defer cancel()
		return do(ctx, control, string(ref.Name))
	})
}

func rolloutUndo(c *cli) *cobra.Command {
	var to int64
	cmd := &cobra.Command{
		Use:   "undo SET [--to-revision N]",
		Short: "Go back to the revision before, or to the one of that number",
		Example: `  stead rollout undo etcd
  stead rollout undo etcd --to-revision 2`,
		ValidArgsFunction: c.completeNames("set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to < 0 {
				return usageError{fmt.Errorf("--to-revision %d is no number of a revision", to)}
			}
			return c.onSet(cmd, args, func(ctx context.Context, control proto.ControlClient, name string) error {
				done, err := control.Undo(ctx, &proto.UndoRequest{Namespace: c.namespace, Name: name, ToRevision: to})
				if done.GetUnchanged() {
					return printEdit(cmd, done, err, "the template of set "+name+" is that of "+revisionText(to)+" already; nothing changes")
				}
				return printEdit(cmd, done, err, "set "+name+" goes back")
			})
		},
	}
	cmd.Flags().Int64Var(&to, "to-revision", 0, "number of the revision, as 'rollout history' shows it; 0: the one before")
	return cmd
}

func revisionText(number int64) string {
	if number == 0 {
		return "the revision before"
	}
	return fmt.Sprintf("revision %d", number)
}

// rolloutPause is the verb pause, or resume.
func rolloutPause(c *cli, paused bool) *cobra.Command {
	use, short, said := "pause", "Hold back the update of a set; scaling and healing go on", "paused"
	if !paused {
		use, short, said = "resume", "Let the update of a paused set go on", "resumed"
	}
	return &cobra.Command{
		Use:               use + " SET",
		Short:             short,
		Example:           "  stead rollout " + use + " etcd",
		ValidArgsFunction: c.completeNames("set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onSet(cmd, args, func(ctx context.Context, control proto.ControlClient, name string) error {
				done, err := control.Pause(ctx, &proto.PauseRequest{Namespace: c.namespace, Name: name, Paused: paused})
				return printEdit(cmd, done, err, "set "+name+" "+said)
			})
		},
	}
}

func rolloutRestart(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:               "restart SET",
		Short:             "Replace the lives of all members, as an update does",
		Example:           `  stead rollout restart etcd`,
		ValidArgsFunction: c.completeNames("set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onSet(cmd, args, func(ctx context.Context, control proto.ControlClient, name string) error {
				done, err := control.Restart(ctx, &proto.RestartRequest{Namespace: c.namespace, Set: name})
				return printEdit(cmd, done, err, "set "+name+" restarts")
			})
		},
	}
}

func restartCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "restart MEMBER",
		Short: "Replace the life of one member, within the set's budget",
		Long: `Replace the life of one member, when the set's maxUnavailable allows it. Under the
strategy OnDelete it returns on the newest revision; otherwise an available member
returns on the revision it runs, and one that is down on the one it is to run.`,
		Example:           `  stead restart etcd-1`,
		ValidArgsFunction: c.completeNames("member"),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseTarget(args, "member")
			if err != nil {
				return err
			}
			if kind != "member" {
				return usageError{fmt.Errorf("only a member is restarted; for a %s there is 'stead rollout restart'", kind)}
			}
			return restartMember(cmd, c, name)
		},
	}
}

func restartMember(cmd *cobra.Command, c *cli, name string) error {
	return c.with(func(control proto.ControlClient) error {
		ctx, cancel := call(cmd.Context())
		defer cancel()
		done, err := control.Restart(ctx, &proto.RestartRequest{Namespace: c.namespace, Member: name})
		said := "member " + name + " restarts"
		if len(done.GetEffects()) > 0 {
			said += ", but not yet"
		}
		return printEdit(cmd, done, err, said)
	})
}

func printEdit(cmd *cobra.Command, done *proto.EditResponse, err error, said string) error {
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), said)
	sayEffects(cmd.OutOrStdout(), done.GetEffects())
	return nil
}
