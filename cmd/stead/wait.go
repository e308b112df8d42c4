package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// What can be waited for.
const (
	forAvailable = "available"
	forReady     = "ready"
	forDeleted   = "deleted"
	// forScaled is the goal of 'scale --wait': an update may still be in progress.
	forScaled = "scaled"
)

func waitCommand(c *cli) *cobra.Command {
	var (
		goal    string
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "wait SET",
		Short: "Wait until a set is available, ready or deleted, and show what each member waits for",
		Long: `Wait until every member of a set is ready or available (ready for minReadySeconds), or
until the set is deleted. Every change of a member, and what it waits for, is shown. Exit
code 1 when the goal cannot be reached without a user: the rollout is paused, stalled or
was rolled back, or the set is deleted. 3 on timeout.`,
		Example: `  stead wait set/etcd
  stead wait etcd --for ready --timeout 1m
  stead wait set/etcd --for deleted`,
		RunE: c.onSet("wait needs a set", func(cmd *cobra.Command, ref spec.SetRef) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			switch goal {
			case forAvailable, forReady:
				return c.waitSet(ctx, ref, goal, cmd.OutOrStdout())
			case forDeleted:
				return c.waitGone(ctx, ref, cmd.OutOrStdout())
			}
			return misuse("invalid --for %q; use %s, %s or %s", goal, forAvailable, forReady, forDeleted)
		}),
		ValidArgsFunction: c.completeNames(proto.KindSet),
	}
	flags := cmd.Flags()
	flags.StringVar(&goal, "for", forAvailable, "available, ready or deleted")
	flags.DurationVar(&timeout, "timeout", 10*time.Minute, "time limit; exit code 3 when it expires")
	return cmd
}

// waitFlags are the flags of a verb that can wait until what it did has its effect.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

func (w *waitFlags) add(cmd *cobra.Command, use string) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, use)
	cmd.Flags().DurationVar(&w.timeout, "timeout", 10*time.Minute, "time limit of --wait; exit code 3 when it expires")
}

// then calls do with the time limit, if a wait was requested.
func (w *waitFlags) then(cmd *cobra.Command, do func(context.Context) error) error {
	if !w.wait {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), w.timeout)
	defer cancel()
	return do(ctx)
}

// waitSet blocks until the set has reached its spec and its members are available, or at
// least ready, and prints every change of its members. It returns an error when the goal
// cannot be reached without a user: the rollout is paused and everything else is done, it is
// stalled, or it was rolled back. errNotInTime: ctx's deadline passed; errLeft: ctx ended.
func (c *cli) waitSet(ctx context.Context, ref spec.SetRef, goal string, out io.Writer) error {
	return c.followSet(ctx, ref, out, func(o *shownSet) (string, error) { return waitEnd(o, goal) })
}

// waitEnd says how a wait ended, or returns why it cannot end without a user; empty while
// it may.
func waitEnd(o *shownSet, goal string) (string, error) {
	if settled(o, goal) {
		if goal == forScaled {
			goal = forAvailable // all members are
		}
		return "is " + goal, nil
	}
	if paused(&o.Status) && !settled(o, forScaled) {
		return "", nil // missing members are still started
	}
	return "", halted(o)
}

// followSet prints every change of a set's members until judge says how it ended, in words
// that complete the sentence "default/db ...", or returns an error.
func (c *cli) followSet(ctx context.Context, ref spec.SetRef, out io.Writer, judge func(*shownSet) (string, error)) error {
	log, found := newProgress(out), false
	defer log.beat()()
	err := c.watchSet(ctx, ref, func(o *shownSet) (bool, error) {
		found = true
		log.members(&o.Spec, &o.Status)
		end, err := judge(o)
		if end != "" {
			log.line(ref, end)
		}
		return end != "", err
	})
	switch {
	case errors.Is(err, errSetGone) && found:
		return fmt.Errorf("set %s was deleted during the wait", ref)
	case errors.Is(err, errSetGone):
		return fmt.Errorf("there is no set %s in namespace %s", ref.Name, ref.Namespace)
	}
	return err
}

// waitGone blocks until the set no longer exists.
func (c *cli) waitGone(ctx context.Context, ref spec.SetRef, out io.Writer) error {
	log := newProgress(out)
	defer log.beat()()
	err := c.watchSet(ctx, ref, func(o *shownSet) (bool, error) {
		log.members(&o.Spec, &o.Status)
		return false, nil
	})
	if errors.Is(err, errSetGone) {
		log.line(ref, "is deleted")
		return nil
	}
	return err
}

// settled reports whether the set has reached its spec, with all members available, or at
// least ready; forScaled: except for the update.
func settled(o *shownSet, goal string) bool {
	st := &o.Status
	have, updated := st.AvailableReplicas, st.UpdatedAvailableReplicas
	if goal == forReady {
		have, updated = st.ReadyReplicas, st.UpdatedReadyReplicas
	}
	want := replicasOf(&o.Spec)
	return st.ObservedGeneration >= o.Metadata.Generation &&
		st.Replicas == want && have == want && st.TerminatingReplicas == 0 &&
		(goal == forScaled || updated >= updatable(&o.Spec, want))
}

// paused reports whether a user has paused the update.
func paused(st *records.ShownSet) bool {
	return slices.ContainsFunc(st.Conditions, func(c records.Condition) bool { return c.Type == "Progressing" && c.Reason == "Paused" })
}

// updatable is how many members an update reaches by itself: those at or above the
// partition; under OnDelete none.
func updatable(s *spec.SetSpec, want int) int {
	u := s.UpdateStrategy
	switch {
	case u.Type == spec.OnDeleteStrategy:
		return 0
	case u.RollingUpdate != nil && u.RollingUpdate.Partition != nil:
		return above(s.Ordinals.Range(want), int(*u.RollingUpdate.Partition))
	}
	return want
}

// above counts the ordinals at or above the partition, which counts from the first.
func above(r spec.OrdinalRange, partition int) (n int) {
	for o := r.Next(r.First + partition); o < r.End; o = r.Next(o + 1) {
		n++
	}
	return n
}

// memberState is one member in one line: its state, or what it waits for.
func memberState(m records.MemberStatus) string {
	switch {
	case m.Ready && m.Goal != records.GoalStop:
		return fmt.Sprintf("ready on %s at %s", m.Node, m.Address)
	case m.Cause != "":
		return fmt.Sprintf("%s: %s: %s", m.Phase, m.Cause, m.Message)
	case strings.HasPrefix(m.Blocked, "waits "), strings.HasPrefix(m.Blocked, "waiting "):
		return m.Blocked
	case m.Blocked != "":
		return "waits: " + m.Blocked
	case m.Goal == records.GoalStop:
		return "stopping"
	case m.Phase == "":
		return "waits"
	}
	return "not ready yet (" + string(m.Phase) + ")"
}
