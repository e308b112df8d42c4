package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// drainVerb is one use of the verb drain.
type drainVerb struct {
	*cli
	timeout              time.Duration
	dryRun, atOnce, move bool
	noWait               bool
}

func nodeDrain(c *cli) *cobra.Command {
	d := drainVerb{cli: c}
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Stop the members of a node, in order and within the budgets of their sets, and wait until they are gone",
		Long: `Cordon a node, and stop its members: highest first, and of each set no more at a time than its
updates may (maxUnavailable, the disruption floor, PodDisruptionBudgets; with OrderedReady one),
with its hooks and grace period. A member starts elsewhere, if its volumes are not on the node;
otherwise it waits for the node. Volumes stay where they are; with --move such members are
moved to other nodes, with their volumes, one after the other ('stead move' does it for one).

The servers carry it out, whether this command runs or not, until 'stead uncordon NODE', which
lets members start there again. Run the command again to continue the wait.`,
		Example: `  stead drain host-a --dry-run
  stead drain host-a --timeout 30m
  stead drain host-a --move
  stead uncordon host-a`,
		Args:              exactly(1, "the name of a node"),
		ValidArgsFunction: c.completeNames(proto.KindNode),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.move && d.atOnce {
				return misuse("--move and --disable-eviction exclude each other: members are either moved, or stopped at once")
			}
			return d.run(cmd, args[0])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&d.dryRun, "dry-run", false, "only say in which order members stop, who waits for whom, and what becomes of them")
	flags.DurationVar(&d.timeout, "timeout", 0, "time limit for the wait; exit code 3 when it expires, and the drain continues; 0: none")
	flags.BoolVar(&d.atOnce, "disable-eviction", false, "stop all members at once, whatever else of their sets is down: a set may lose its quorum")
	flags.BoolVar(&d.noWait, "no-wait", false, "do not wait")
	flags.BoolVar(&d.move, "move", false, "move members whose volumes are on the node to other nodes, with these")
	for _, habit := range drainHabits {
		flags.Bool(habit.flag, false, "of kubectl; changes nothing: "+habit.why)
	}
	return cmd
}

// drainHabits are flags of 'kubectl drain' that change nothing here.
var drainHabits = []struct{ flag, why string }{
	{"ignore-daemonsets", "there are no DaemonSets"},
	{"delete-emptydir-data", "an emptyDir ends with its member's life anyway"},
	{"force", "every member belongs to a set"},
}

func (d *drainVerb) run(cmd *cobra.Command, name string) error {
	for _, habit := range drainHabits {
		if cmd.Flags().Changed(habit.flag) {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: --%s changes nothing: %s\n", habit.flag, habit.why)
		}
	}
	out := cmd.OutOrStdout()
	first, err := d.control.DrainNode(cmd.Context(), &proto.DrainNodeRequest{Name: name, DryRun: d.dryRun, AtOnce: d.atOnce, Move: d.move})
	switch {
	case err != nil:
		return err
	case d.dryRun:
		fmt.Fprintf(out, "node %s would be cordoned and drained (dry run)\n", name)
		printEffects(out, first.GetEffects())
		return nil
	case first.GetUnchanged():
		fmt.Fprintf(out, "node %s is being drained already: %s\n", name, membersLeft(first))
	default:
		fmt.Fprintf(out, "node %s cordoned, and to be drained: %s\n", name, membersLeft(first))
	}
	if d.noWait {
		return nil
	}
	ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
	if d.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
	}
	defer cancel()
	return d.wait(ctx, name, first, out)
}

func membersLeft(r *proto.DrainNodeResponse) string {
	if n := len(r.GetLeft()); n != 1 {
		return fmt.Sprintf("%d members to stop", n)
	}
	return "1 member to stop"
}

// drainInterval is the time between two looks.
const drainInterval = 500 * time.Millisecond

// wait prints what becomes of the members until none is left.
func (d *drainVerb) wait(ctx context.Context, name string, now *proto.DrainNodeResponse, out io.Writer) error {
	all := len(now.GetLeft())
	p := drainProgress{out: out, said: map[string]string{}}
	p.show(now, all)
	for len(now.GetLeft()) > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(drainInterval):
		}
		var next *proto.DrainNodeResponse
		err := ctx.Err()
		if err == nil {
			next, err = d.control.DrainNode(ctx, &proto.DrainNodeRequest{Name: name, Look: true})
		}
		switch {
		case ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded: // the server's clock may be ahead of ours
			return fmt.Errorf("%s of node %s left; the drain continues: 'stead drain %s' waits again, 'stead uncordon %s' ends it: %w",
				membersLeft(now), name, name, name, drainEnd(ctx))
		case status.Code(err) == codes.Unavailable: // until a server is back
			continue
		case err != nil:
			return err
		case !next.GetWanted():
			return fmt.Errorf("node %s is not drained any more: somebody uncordoned it", name)
		}
		now = next
		p.show(now, all)
	}
	fmt.Fprintf(out, "node %s drained\n", name)
	for _, row := range now.GetWaiting() {
		if row.GetWhy() == "" { // it starts again at once
			continue
		}
		fmt.Fprintf(out, "%s waits: %s\n", rowName(row), row.GetWhy())
	}
	return nil
}

// drainEnd is why the wait ended: the user ended it, or else its time was over.
func drainEnd(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errLeft
	}
	return errNotInTime
}

func rowName(row *proto.DrainRow) string {
	if row.GetNamespace() == string(spec.DefaultNamespace) {
		return row.GetMember()
	}
	return row.GetNamespace() + "/" + row.GetMember()
}

// drainProgress prints each change once.
type drainProgress struct {
	out  io.Writer
	said map[string]string // of the members that are left
}

func (p *drainProgress) show(now *proto.DrainNodeResponse, all int) {
	left := map[string]bool{}
	for _, row := range now.GetLeft() {
		name := rowName(row)
		left[name] = true
		if why, known := p.said[name]; row.GetWhy() != "" && (!known || why != row.GetWhy()) {
			fmt.Fprintf(p.out, "%s: %s\n", name, row.GetWhy())
		}
		p.said[name] = row.GetWhy()
	}
	gone := all - len(left)
	for _, name := range slices.Sorted(maps.Keys(p.said)) {
		if !left[name] {
			delete(p.said, name)
			fmt.Fprintf(p.out, "%s stopped (%d of %d are gone)\n", name, gone, all)
		}
	}
}
