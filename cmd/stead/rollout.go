package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func rolloutCommand(c *cli) *cobra.Command {
	return group("rollout", "Watch, pause, resume or undo the update of a set, or restart its members",
		rolloutStatus(c), rolloutHistory(c), rolloutUndo(c), rolloutPause(c, true), rolloutPause(c, false), rolloutRestart(c))
}

// noRollout refuses what is not a set.
const noRollout = "only sets have rollouts"

func rolloutUndo(c *cli) *cobra.Command {
	var to int64
	cmd := &cobra.Command{
		Use:   "undo SET [--to-revision N]",
		Short: "Return a set to its previous revision, or to the one with this number",
		Example: `  stead rollout undo etcd
  stead rollout undo etcd --to-revision 2`,
		ValidArgsFunction: c.completeNames(proto.KindSet),
		RunE: c.onSet(noRollout, func(cmd *cobra.Command, ref spec.SetRef) error {
			if to < 0 {
				return misuse("invalid --to-revision %d; see the numbers in 'stead rollout history'", to)
			}
			done, err := c.control.Undo(cmd.Context(), &proto.UndoRequest{Namespace: c.namespace, Name: string(ref.Name), ToRevision: to})
			said := "rolled back"
			switch {
			case done.GetUnchanged() && to == 0:
				said = "already has the template of the previous revision; nothing was changed"
			case done.GetUnchanged():
				said = fmt.Sprintf("already has the template of revision %d; nothing was changed", to)
			}
			return printEdit(cmd, done, err, "set "+string(ref.Name)+" "+said)
		}),
	}
	cmd.Flags().Int64Var(&to, "to-revision", 0, "number of the revision, as 'rollout history' shows it; 0: the previous one")
	return cmd
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
		RunE: c.onSet(noRollout, func(cmd *cobra.Command, ref spec.SetRef) error {
			done, err := c.control.Pause(cmd.Context(), &proto.PauseRequest{Namespace: c.namespace, Name: string(ref.Name), Paused: paused})
			return printEdit(cmd, done, err, "set "+string(ref.Name)+" "+said)
		}),
	}
}

func rolloutRestart(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:               "restart SET",
		Short:             "Restart all members of a set, one after the other as in an update",
		Example:           `  stead rollout restart etcd`,
		ValidArgsFunction: c.completeNames(proto.KindSet),
		RunE: c.onSet(noRollout, func(cmd *cobra.Command, ref spec.SetRef) error {
			done, err := c.control.Restart(cmd.Context(), &proto.RestartRequest{Namespace: c.namespace, Set: string(ref.Name)})
			return printEdit(cmd, done, err, "set "+string(ref.Name)+" is being restarted")
		}),
	}
}

func restartCommand(c *cli) *cobra.Command {
	now := false
	cmd := &cobra.Command{
		Use:   "restart MEMBER",
		Short: "Restart one member, within the set's budget",
		Long: `Restart one member as soon as the set's maxUnavailable allows it: its life ends, and a
new one starts. With the strategy OnDelete the member moves to the newest revision.
Otherwise an available member stays on its revision, and one that is down moves to the
revision it should run. A member that says that it is busy is waited for, and with
OrderedReady so are those after it in turn; --now does not wait.`,
		Example: `  stead restart etcd-1
  stead restart etcd-1 --now`,
		ValidArgsFunction: c.completeNames(proto.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := parseName(args, proto.KindMember, "restart needs a member, not a %s; to restart a set use 'stead rollout restart'")
			if err != nil {
				return err
			}
			return c.restartMember(cmd, name, now)
		},
	}
	cmd.Flags().BoolVar(&now, "now", false, "also while it, or a member before it, says that it is busy")
	return cmd
}

func (c *cli) restartMember(cmd *cobra.Command, name string, now bool) error {
	done, err := c.control.Restart(cmd.Context(), &proto.RestartRequest{Namespace: c.namespace, Member: name, Now: now})
	said := "is being restarted"
	if len(done.GetEffects()) > 0 {
		said = "will be restarted"
	}
	return printEdit(cmd, done, err, "member "+name+" "+said)
}

// printEdit prints what was done, and what it will cause.
func printEdit(cmd *cobra.Command, done *proto.EditResponse, err error, said string) error {
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), said)
	printEffects(cmd.OutOrStdout(), done.GetEffects())
	return nil
}

func rolloutHistory(c *cli) *cobra.Command {
	var number int64
	cmd := &cobra.Command{
		Use:   "history SET [--revision N]",
		Short: "List the revisions of a set, newest last, or show one of them",
		Long: `List the revisions of a set by number, newest last. With --revision, show the template of
one revision, and how it differs from the previous one that is still kept.`,
		Example: `  stead rollout history etcd
  stead rollout history etcd --revision 3`,
		ValidArgsFunction: c.completeNames(proto.KindSet),
		RunE: c.onSet(noRollout, func(cmd *cobra.Command, ref spec.SetRef) error {
			revisions, st, err := c.revisionsOf(cmd.Context(), ref)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("revision") {
				return showRevision(cmd.OutOrStdout(), revisions, ref.Name, number)
			}
			return listRevisions(cmd.OutOrStdout(), revisions, st)
		}),
	}
	cmd.Flags().Int64Var(&number, "revision", 0, "show the revision with this number")
	return cmd
}

// revisionsOf reads the revisions of a set, by number, and its status.
func (c *cli) revisionsOf(ctx context.Context, ref spec.SetRef) ([]*shownRevision, *records.ShownSet, error) {
	got, err := c.control.Get(ctx, &proto.GetRequest{Kind: proto.KindSet, Namespace: string(ref.Namespace), Name: string(ref.Name)})
	if err != nil {
		return nil, nil, err
	}
	set, err := decode[any, records.ShownSet](got)
	if err != nil {
		return nil, nil, err
	}
	revisions, err := list[records.Revision, any](ctx, c, &proto.ListRequest{Kind: proto.KindRevision, Namespace: string(ref.Namespace), Set: string(ref.Name)})
	slices.SortFunc(revisions, func(a, b *shownRevision) int { return cmp.Compare(a.Spec.Number, b.Spec.Number) })
	return revisions, &set.Status, err
}

// listRevisions prints all revisions, and which is current and which the update's.
func listRevisions(out io.Writer, revisions []*shownRevision, st *records.ShownSet) error {
	t := newTable(out, "REVISION", "NAME", "STATE", "CAUSE", "AGE")
	for _, shown := range revisions {
		r, state := &shown.Spec, ""
		switch r.Hash {
		case st.CurrentRevision:
			state = "current"
		case st.UpdateRevision:
			state = "update"
		}
		t.row(r.Number, r.Hash, state, r.ChangeCause, age(r.CreatedAt))
	}
	return t.flush()
}

// showRevision prints the template of the revision of a number, and its difference
// from the one before.
func showRevision(out io.Writer, revisions []*shownRevision, set spec.SetName, number int64) error {
	at := slices.IndexFunc(revisions, func(r *shownRevision) bool { return r.Spec.Number == number })
	if at < 0 {
		return fmt.Errorf("set %s has no revision %d; see 'stead rollout history %s'", set, number, set)
	}
	r := &revisions[at].Spec
	fmt.Fprintf(out, "revision %d of set %s: %s, %s old\n", r.Number, set, r.Hash, age(r.CreatedAt))
	if r.ChangeCause != "" {
		fmt.Fprintln(out, "cause: "+r.ChangeCause)
	}
	text, err := templateText(r)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\n"+text)
	if at == 0 {
		_, err = fmt.Fprintln(out, "no earlier revision is kept")
		return err
	}
	earlier := &revisions[at-1].Spec
	before, err := templateText(earlier)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "--- revision %d\n+++ revision %d\n%s", earlier.Number, r.Number, unified(before, text))
	return err
}

// templateText is the template of a revision as YAML, with the members that differ from it.
func templateText(r *records.Revision) (string, error) {
	doc, err := json.Marshal(struct {
		spec.Template
		Members spec.Differences `json:"members,omitempty"`
	}{r.Template, r.Members})
	if err != nil {
		return "", err
	}
	return yamlText(doc)
}
