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
)

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
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onSet(cmd, args, func(ctx context.Context, control proto.ControlClient, name string) error {
				revisions, st, err := revisionsOf(ctx, control, c.namespace, name)
				if err != nil {
					return err
				}
				if cmd.Flags().Changed("revision") {
					return showRevision(cmd.OutOrStdout(), revisions, name, number)
				}
				return listRevisions(cmd.OutOrStdout(), revisions, st)
			})
		},
	}
	cmd.Flags().Int64Var(&number, "revision", 0, "show the revision with this number")
	return cmd
}

// revisionsOf reads the revisions of a set, by number, and its status.
func revisionsOf(ctx context.Context, control proto.ControlClient, namespace, name string) ([]records.Revision, *records.ShownSet, error) {
	set, err := control.Get(ctx, &proto.GetRequest{Kind: proto.KindSet, Namespace: namespace, Name: name})
	if err != nil {
		return nil, nil, err
	}
	var st records.ShownSet
	if _, err := decode(set, nil, &st); err != nil {
		return nil, nil, err
	}
	list, err := control.List(ctx, &proto.ListRequest{Kind: proto.KindRevision, Namespace: namespace, Set: name})
	if err != nil {
		return nil, nil, err
	}
	revisions := make([]records.Revision, len(list.GetObjects()))
	for i, o := range list.GetObjects() {
		if _, err := decode(o, &revisions[i], nil); err != nil {
			return nil, nil, err
		}
	}
	slices.SortFunc(revisions, func(a, b records.Revision) int { return cmp.Compare(a.Number, b.Number) })
	return revisions, &st, nil
}

// listRevisions prints all revisions, and which is current and which the update's.
func listRevisions(out io.Writer, revisions []records.Revision, st *records.ShownSet) error {
	t := newTable(out, "REVISION", "NAME", "STATE", "CAUSE", "AGE")
	for _, r := range revisions {
		state := ""
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
func showRevision(out io.Writer, revisions []records.Revision, set string, number int64) error {
	at := slices.IndexFunc(revisions, func(r records.Revision) bool { return r.Number == number })
	if at < 0 {
		return fmt.Errorf("set %s has no revision %d; see 'stead rollout history %s'", set, number, set)
	}
	r := revisions[at]
	fmt.Fprintf(out, "revision %d of set %s: %s, %s old\n", r.Number, set, r.Hash, age(r.CreatedAt))
	if r.ChangeCause != "" {
		fmt.Fprintln(out, "cause: "+r.ChangeCause)
	}
	text, err := templateText(&r)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\n"+text)
	if at == 0 {
		_, err = fmt.Fprintln(out, "no earlier revision is kept")
		return err
	}
	before, err := templateText(&revisions[at-1])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "--- revision %d\n+++ revision %d\n%s", revisions[at-1].Number, r.Number, unified(before, text))
	return err
}

// templateText is the template of a revision as YAML.
func templateText(r *records.Revision) (string, error) {
	doc, err := json.Marshal(r.Template)
	if err != nil {
		return "", err
	}
	return yamlText(doc)
}
