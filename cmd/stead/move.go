package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec/scalar"
)

// moveVerb is one use of the verb move.
type moveVerb struct {
	*cli
	to, rate      string
	abort, dryRun bool
	back, yes     bool
	from          string // where the volumes of a move that goes back are
	wait          waitFlags
}

func moveCommand(c *cli) *cobra.Command {
	m := moveVerb{cli: c}
	cmd := &cobra.Command{
		Use:   "move MEMBER --to NODE",
		Short: "Move a member with its volumes to another node",
		Long: `Move a member with its volumes to another node. The volumes are copied while the member runs.
Then it stops once, within the budget of its set, for what has changed since; the copy is compared
with the original, and the member starts on the other node. Its name, address and data stay its
own. When it is ready there, the old volumes go to the trash of the node on which they were.

The servers carry it out, whether this command runs or not. --abort gives it up, as long as the
volumes are not on the other node: the member stays where it is.

--back is for a move whose target was lost before the member was ready there: the member starts
again where it was, with its data as of the moment when it was stopped there. The target must be
known to be off (stead node fence). What a life wrote there since is given up.`,
		Example: `  stead move etcd-1 --to host-c --dry-run
  stead move etcd-1 --to host-c --rate 50Mi --wait
  stead move etcd-1 --abort
  stead move etcd-1 --back`,
		ValidArgsFunction: c.completeNames(proto.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := parseName(args, proto.KindMember, "move needs a member, not a %s")
			switch {
			case err != nil:
				return err
			case m.abort && m.back || (m.abort || m.back) == (m.to != ""):
				return misuse("move needs --to NODE, or --abort, or --back")
			case m.to == "" && m.rate != "":
				return misuse("--rate is of a move that begins")
			}
			return m.run(cmd, name)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&m.to, "to", "", "the node to which the member is to go")
	flags.StringVar(&m.rate, "rate", "", "copy at most so many bytes in a second, for example 50Mi; without it: as many as the nodes do (--move-rate of the agent)")
	flags.BoolVar(&m.abort, "abort", false, "give the move up; the member stays where it is")
	flags.BoolVar(&m.back, "back", false, "the target is lost for good: the member starts again where it was")
	flags.BoolVar(&m.yes, "yes", false, "with --back: do not ask for confirmation")
	flags.BoolVar(&m.dryRun, "dry-run", false, "only say what it means")
	m.wait.add(cmd, "wait until it is done, and show how far it is")
	return cmd
}

func (m *moveVerb) run(cmd *cobra.Command, name string) error {
	req := &proto.MoveRequest{Namespace: m.namespace, Member: name, Node: m.to, Abort: m.abort, Back: m.back, DryRun: m.dryRun}
	if m.rate != "" {
		rate, err := scalar.ParseQuantity(m.rate)
		if err != nil || rate.Value() < 1 {
			return misuse("--rate %s is not a number of bytes in a second, such as 50Mi", m.rate)
		}
		req.BytesPerSecond = rate.Value()
	}
	out := cmd.OutOrStdout()
	if m.back && !m.dryRun {
		if err := m.sure(cmd, req); err != nil {
			return err
		}
	}
	done, err := m.control.Move(cmd.Context(), req)
	if err != nil {
		return err
	}
	m.from = done.GetFrom()
	what := "moves to node " + m.to
	switch {
	case m.abort:
		what = "is not moved any more"
	case m.back:
		what = "goes back to node " + m.from
	}
	if m.dryRun {
		what += " (dry run)"
	}
	fmt.Fprintf(out, "member %s %s\n", name, what)
	if !m.back || m.dryRun { // else they were told before
		printEffects(out, done.GetEffects())
	}
	if m.dryRun {
		return nil
	}
	return m.wait.then(cmd, func(ctx context.Context) error { return m.follow(ctx, name, out) })
}

// sure says what it means that a move goes back, and asks.
func (m *moveVerb) sure(cmd *cobra.Command, req *proto.MoveRequest) error {
	would := &proto.MoveRequest{Namespace: req.GetNamespace(), Member: req.GetMember(), Back: true, DryRun: true}
	told, err := m.control.Move(cmd.Context(), would)
	if err != nil {
		return err
	}
	printEffects(cmd.OutOrStdout(), told.GetEffects())
	return confirm(cmd, fmt.Sprintf("Is node %s lost for good?", told.GetTo()), m.yes)
}

// moveInterval is the time between two looks.
const moveInterval = 500 * time.Millisecond

// follow prints how far the move is until it is over.
func (m *moveVerb) follow(ctx context.Context, name string, out io.Writer) error {
	said, why := "", ""
	for {
		now, err := m.control.Move(ctx, &proto.MoveRequest{Namespace: m.namespace, Member: name, Look: true})
		switch {
		case ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded:
			if m.back {
				return fmt.Errorf("%s goes back when node %s has its volumes in use again: %w", name, m.from, drainEnd(ctx))
			}
			return fmt.Errorf("the move of %s continues; to give it up: stead move %s --abort: %w", name, name, drainEnd(ctx))
		case status.Code(err) == codes.Unavailable: // until a server is back
		case err != nil:
			return err
		case now.GetMove() == "" && !now.GetAsked():
			return m.end(name, now.GetOn(), why, out)
		case now.GetText() != "" && now.GetText() != said:
			said, why = now.GetText(), now.GetWhy()
			fmt.Fprintf(out, "%s: %s\n", name, said)
		}
		select {
		case <-ctx.Done():
		case <-time.After(moveInterval):
		}
	}
}

// end says how the move ended: the member's volumes are on a node.
func (m *moveVerb) end(name, on, why string, out io.Writer) error {
	switch {
	case m.abort:
		fmt.Fprintf(out, "%s stays on node %s\n", name, on)
	case m.back && on != m.from:
		return fmt.Errorf("%s did not go back to node %s; 'stead describe member %s' shows its events", name, m.from, name)
	case m.back:
		fmt.Fprintf(out, "%s is on node %s again\n", name, on)
	case on != m.to && why != "":
		return fmt.Errorf("%s was not moved to node %s: %s", name, m.to, why)
	case on != m.to:
		return fmt.Errorf("%s was not moved to node %s; 'stead describe member %s' shows its events", name, m.to, name)
	default:
		fmt.Fprintf(out, "%s is on node %s\n", name, on)
	}
	return nil
}
