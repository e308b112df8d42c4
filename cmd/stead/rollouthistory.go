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
			ref, err := c.rolloutSet(args)
			if err != nil {
				return err
			}
			revisions, st, err := c.revisionsOf(cmd.Context(), ref)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("revision") {
				return showRevision(cmd.OutOrStdout(), revisions, ref.Name, number)
			}
			return listRevisions(cmd.OutOrStdout(), revisions, st)
		},
	}
	cmd.Flags().Int64Var(&number, "revision", 0, "show the revision with this number")
	return cmd
}

// revisionsOf reads the revisions of a set, by number, and its status.
func (c *cli) revisionsOf(ctx context.Context, ref spec.SetRef) ([]records.Revision, *records.ShownSet, error) {
	got, err := c.control.Get(ctx, &proto.GetRequest{Kind: proto.KindSet, Namespace: string(ref.Namespace), Name: string(ref.Name)})
	if err != nil {
		return nil, nil, err
	}
	set, err := decode[any, records.ShownSet](got)
	if err != nil {
		return nil, nil, err
	}
	list, err := c.control.List(ctx, &proto.ListRequest{Kind: proto.KindRevision, Namespace: string(ref.Namespace), Set: string(ref.Name)})
	if err != nil {
		return nil, nil, err
	}
	var revisions []records.Revision
	for _, o := range list.GetObjects() {
		r, err := decode[records.Revision, any](o)
		if err != nil {
			return nil, nil, err
		}
		revisions = append(revisions, r.Spec)
	}
	slices.SortFunc(revisions, func(a, b records.Revision) int { return cmp.Compare(a.Number, b.Number) })
	return revisions, &set.Status, nil
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
func showRevision(out io.Writer, revisions []records.Revision, set spec.SetName, number int64) error {
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
