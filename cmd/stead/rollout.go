package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func rolloutCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Follow an update of a set, go back, or restart its members",
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("rollout takes a verb: status, history, undo, pause, resume or restart")}
		},
	}
	cmd.AddCommand(rolloutStatus(c), rolloutHistory(c), rolloutUndo(c), rolloutPause(c, true), rolloutPause(c, false), rolloutRestart(c))
	return cmd
}

// rolloutSet reads the set that a rollout verb is about.
func rolloutSet(args []string) (string, error) {
	kind, name, err := parseTarget(args, "set")
	if err == nil && kind != "set" {
		err = usageError{fmt.Errorf("only sets roll out, not a %s", kind)}
	}
	return name, err
}

// onSet calls do, bounded as every call, with the set that args name.
func (c *cli) onSet(cmd *cobra.Command, args []string, do func(context.Context, proto.ControlClient, string) error) error {
	name, err := rolloutSet(args)
	if err != nil {
		return err
	}
	return c.with(func(control proto.ControlClient) error {
		ctx, cancel := call(cmd.Context())
		defer cancel()
		return do(ctx, control, name)
	})
}

func rolloutHistory(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:               "history SET",
		Short:             "List the revisions of a set, the newest last",
		Example:           `  stead rollout history etcd`,
		ValidArgsFunction: c.completeNames("set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onSet(cmd, args, func(ctx context.Context, control proto.ControlClient, name string) error {
				return printHistory(ctx, cmd, control, c.namespace, name)
			})
		},
	}
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
			return c.onSet(cmd, args, func(ctx context.Context, control proto.ControlClient, name string) error {
				done, err := control.Undo(ctx, &proto.UndoRequest{Namespace: c.namespace, Name: name, ToRevision: to})
				return printEdit(cmd, done, err, "set "+name+" goes back")
			})
		},
	}
	cmd.Flags().Int64Var(&to, "to-revision", 0, "number of the revision, as 'rollout history' shows it; 0: the one before")
	return cmd
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
		return printEdit(cmd, done, err, "member "+name+" restarts")
	})
}

func printEdit(cmd *cobra.Command, done *proto.EditResponse, err error, said string) error {
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), said)
	for _, e := range done.GetEffects() {
		fmt.Fprintln(cmd.OutOrStdout(), "  "+e)
	}
	return nil
}

// printHistory lists the revisions by number, and marks the current one and the update's.
func printHistory(ctx context.Context, cmd *cobra.Command, control proto.ControlClient, namespace, name string) error {
	set, err := control.Get(ctx, &proto.GetRequest{Kind: "set", Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	var st spec.SetStatus
	if _, err := decode(set, nil, &st); err != nil {
		return err
	}
	list, err := control.List(ctx, &proto.ListRequest{Kind: "revision", Namespace: namespace, Set: name})
	if err != nil {
		return err
	}
	revisions := make([]spec.Revision, len(list.GetObjects()))
	for i, o := range list.GetObjects() {
		if _, err := decode(o, &revisions[i], nil); err != nil {
			return err
		}
	}
	slices.SortFunc(revisions, func(a, b spec.Revision) int { return cmp.Compare(a.Number, b.Number) })
	t := newTable(cmd.OutOrStdout(), "REVISION", "NAME", "STATE", "CAUSE", "AGE")
	for _, r := range revisions {
		state := ""
		switch r.Hash {
		case st.UpdateRevision:
			state = "update"
		case st.CurrentRevision:
			state = "current"
		}
		if r.Hash == st.UpdateRevision && r.Hash == st.CurrentRevision {
			state = "current"
		}
		t.row(r.Number, r.Hash, state, r.ChangeCause, age(r.CreatedAt))
	}
	return t.flush()
}
