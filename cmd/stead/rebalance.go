package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// rebalanceVerb is one use of the verb rebalance.
type rebalanceVerb struct {
	*cli
	all, dryRun bool
	most        int32
	wait        waitFlags
}

func rebalanceCommand(c *cli) *cobra.Command {
	r := rebalanceVerb{cli: c}
	cmd := &cobra.Command{
		Use:   "rebalance [SET...]",
		Short: "Spread the members of sets over the nodes, for example after a host joined",
		Long: `Spread the members of sets over the nodes, for example after a host joined: of all sets of the
namespace, or of those that are named. As few members move as are needed for that no node has two
fewer of a set than another, where placement allows it; each moves as 'stead move' does it, with its
volumes, and they stop one after the other, within the budget of their set. Members that cannot be
moved are named, and stay.

The servers carry it out, whether this command runs or not; 'stead move MEMBER --abort' gives one
up. Run it again: it then has nothing to do.`,
		Example: `  stead rebalance --dry-run
  stead rebalance etcd --wait --timeout 1h
  stead rebalance -A --max 3`,
		ValidArgsFunction: c.completeNames(proto.KindSet),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case r.all && len(args) > 0:
				return misuse("-A spreads the sets of all namespaces; for some name them, with -n NAMESPACE")
			case r.most < 0:
				return misuse("--max is a number of moves, 1 or more")
			}
			return r.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&r.all, "all-namespaces", "A", false, "the sets of all namespaces")
	flags.BoolVar(&r.dryRun, "dry-run", false, "only say which members would move, why, and who waits for whom")
	flags.Int32Var(&r.most, "max", 0, "at most so many moves; 0: as many as are needed")
	r.wait.add(cmd, "wait until all moves are done, and show how far they are")
	return cmd
}

func (r *rebalanceVerb) run(cmd *cobra.Command, sets []string) error {
	out := cmd.OutOrStdout()
	done, err := r.control.Rebalance(cmd.Context(), &proto.RebalanceRequest{
		Namespace: r.namespace, Sets: sets, AllNamespaces: r.all, DryRun: r.dryRun, Max: r.most,
	})
	if err != nil {
		return err
	}
	if err := r.print(out, done); err != nil {
		return err
	}
	if r.dryRun || len(done.GetMoves()) == 0 {
		return nil
	}
	return r.wait.then(cmd, func(ctx context.Context) error { return r.follow(ctx, done.GetMoves(), out) })
}

// print shows the moves as a table, and who stays.
func (r *rebalanceVerb) print(out io.Writer, done *proto.RebalanceResponse) error {
	dry := ""
	if r.dryRun {
		dry = " (dry run)"
	}
	if len(done.GetMoves()) == 0 {
		fmt.Fprintf(out, "nothing to move: no node has two members of a set fewer than another, where they can be placed and moved%s\n", dry)
	} else {
		fmt.Fprintf(out, "%s%s\n", countOf(len(done.GetMoves()), "member moves", "members move"), dry)
		t := newTable(out, "MEMBER", "FROM", "TO", "SIZE", "AFTER", "WHY")
		for _, m := range done.GetMoves() {
			why := m.GetWhy()
			if m.GetWaits() != "" {
				why += "; " + m.GetWaits()
			}
			t.row(rebalanceName(m), m.GetFrom(), m.GetTo(), bytesText(m.GetBytes()), m.GetAfter(), why)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	for _, m := range done.GetStays() {
		fmt.Fprintf(out, "%s stays on node %s: %s\n", rebalanceName(m), m.GetFrom(), m.GetWhy())
	}
	return nil
}

func rebalanceName(m *proto.RebalanceRow) string {
	if m.GetNamespace() == string(spec.DefaultNamespace) {
		return m.GetMember()
	}
	return m.GetNamespace() + "/" + m.GetMember()
}

func countOf(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// follow prints how far each move is until all are over, and fails if one was given up.
func (r *rebalanceVerb) follow(ctx context.Context, rows []*proto.RebalanceRow, out io.Writer) error {
	var failed []error
	for _, row := range rows {
		m := moveVerb{cli: &cli{control: r.control, namespace: row.GetNamespace()}, to: row.GetTo()}
		if err := m.follow(ctx, row.GetMember(), out); ctx.Err() != nil || errors.Is(err, errNotInTime) || errors.Is(err, errLeft) {
			return err
		} else if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
