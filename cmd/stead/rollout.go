package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func rolloutCommand(c *cli) *cobra.Command {
	return group("rollout", "Watch, pause, resume or undo the update of a set, or restart its members",
		rolloutStatus(c), rolloutHistory(c), rolloutUndo(c), rolloutPause(c, true), rolloutPause(c, false), rolloutRestart(c))
}

// rolloutSet returns the set that a rollout verb is about.
func (c *cli) rolloutSet(args []string) (spec.SetRef, error) {
	return c.parseSet(args, "only sets have rollouts")
}

// onSet calls do with the set that args name, with the time limit of every call.
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
		Short: "Return a set to its previous revision, or to the one with this number",
		Example: `  stead rollout undo etcd
  stead rollout undo etcd --to-revision 2`,
		ValidArgsFunction: c.completeNames(proto.KindSet),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to < 0 {
				return usageError{fmt.Errorf("invalid --to-revision %d; see the numbers in 'stead rollout history'", to)}
			}
			return c.onSet(cmd, args, func(ctx context.Context, control proto.ControlClient, name string) error {
				done, err := control.Undo(ctx, &proto.UndoRequest{Namespace: c.namespace, Name: name, ToRevision: to})
				if done.GetUnchanged() {
					return printEdit(cmd, done, err, "set "+name+" already has the template of "+revisionText(to)+"; nothing was changed")
				}
				return printEdit(cmd, done, err, "set "+name+" rolled back")
			})
		},
	}
	cmd.Flags().Int64Var(&to, "to-revision", 0, "number of the revision, as 'rollout history' shows it; 0: the previous one")
	return cmd
}

func revisionText(number int64) string {
	if number == 0 {
		return "the previous revision"
	}
	return fmt.Sprintf("revision %d", number)
}

// rolloutPause is the verb pause, or resume.
func rolloutPause(c *cli, paused bool) *cobra.Command {
	use, short, said := "pause", "Pause a rollout; scaling and self-healing continue", "paused"
	if !paused {
		use, short, said = "resume", "Resume a paused rollout", "resumed"
	}
	return &cobra.Command{
		Use:               use + " SET",
		Short:             short,
		Example:           "  stead rollout " + use + " etcd",
		ValidArgsFunction: c.completeNames(proto.KindSet),
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
		Short:             "Restart all members of a set, one after the other as in an update",
		Example:           `  stead rollout restart etcd`,
		ValidArgsFunction: c.completeNames(proto.KindSet),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onSet(cmd, args, func(ctx context.Context, control proto.ControlClient, name string) error {
				done, err := control.Restart(ctx, &proto.RestartRequest{Namespace: c.namespace, Set: name})
				return printEdit(cmd, done, err, "set "+name+" is being restarted")
			})
		},
	}
}

func restartCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "restart MEMBER",
		Short: "Restart one member, within the set's budget",
		Long: `Restart one member as soon as the set's maxUnavailable allows it: its life ends, and a
new one starts. With the strategy OnDelete the member moves to the newest revision.
Otherwise an available member stays on its revision, and one that is down moves to the
revision it should run.`,
		Example:           `  stead restart etcd-1`,
		ValidArgsFunction: c.completeNames(proto.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseTarget(args, proto.KindMember)
			if err != nil {
				return err
			}
			if kind != proto.KindMember {
				return usageError{fmt.Errorf("restart needs a member, not a %s; to restart a set use 'stead rollout restart'", kind)}
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
		said := "member " + name + " is being restarted"
		if len(done.GetEffects()) > 0 {
			said = "member " + name + " will be restarted"
		}
		return printEdit(cmd, done, err, said)
	})
}

func printEdit(cmd *cobra.Command, done *proto.EditResponse, err error, said string) error {
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), said)
	printEffects(cmd.OutOrStdout(), done.GetEffects())
	return nil
}
