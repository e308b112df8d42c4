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
	"github.com/stead-project/stead/spec/causes"
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
	w := waitVerb{cli: c}
	cmd := &cobra.Command{
		Use:   "wait SET | KIND NAME... | KIND/NAME... | KIND -l LABELS",
		Short: "Wait until sets, members or other objects are as wanted, and show what each member waits for",
		Long: `Wait until every member of a set is ready or available (ready for minReadySeconds), or
until the set is deleted. Every change of a member, and what it waits for, is shown. Exit
code 1 when the goal cannot be reached without a user: the rollout is paused, stalled or
was rolled back, or the set is deleted. 3 on timeout.

--for takes kubectl's words, too: delete, condition=NAME[=VALUE] (of a member Ready,
ContainersReady, PodScheduled; of a set what 'stead get set -o yaml' shows, and Ready), and
jsonpath=PATH[=VALUE]. For a member, delete waits until its present life is over.`,
		Example: `  stead wait set/etcd
  stead wait etcd --for ready --timeout 1m
  stead wait set/etcd --for deleted
  stead wait --for=condition=Ready pod/etcd-0 pod/etcd-1 --timeout=60s
  stead wait --for=condition=Ready pods -l app=etcd
  stead wait --for=jsonpath={.status.readyReplicas}=3 sts/etcd
  stead wait --for=delete pod/etcd-2`,
		RunE: func(cmd *cobra.Command, args []string) error {
			want, targets, err := w.check(cmd, args)
			if err != nil {
				return err
			}
			if w.timeout < 0 {
				w.timeout = 7 * 24 * time.Hour // as kubectl
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), w.timeout)
			defer cancel()
			return w.run(ctx, cmd.OutOrStdout(), want, targets)
		},
		ValidArgsFunction: c.completeNames(proto.KindSet),
	}
	flags := cmd.Flags()
	flags.StringVar(&w.goal, "for", forAvailable, "of sets: available, ready or deleted; of all objects: delete, condition=NAME[=VALUE] or jsonpath=PATH[=VALUE]")
	flags.StringVarP(&w.selector, "selector", "l", "", "the objects with these labels: app=db,tier!=test")
	flags.BoolVar(&w.all, "all", false, "all objects of the kind in the namespace")
	flags.DurationVar(&w.timeout, "timeout", 10*time.Minute, "time limit; exit code 3 when it expires; negative: a week")
	return cmd
}

// waitVerb is one use of the verb wait.
type waitVerb struct {
	*cli
	goal     string
	selector string
	all      bool
	timeout  time.Duration
}

// check reads the command line, or returns what is wrong with it.
func (w *waitVerb) check(cmd *cobra.Command, args []string) (want condition, targets []target, err error) {
	if _, err := spec.ParseSelector(w.selector); w.selector != "" && err != nil {
		return want, nil, misuse("-l: %w", err)
	}
	several := w.selector != "" || w.all
	switch {
	case len(args) == 0:
		return want, nil, misuse("%s", wanted[proto.KindSet])
	case len(args) == 1 && !several && !strings.Contains(args[0], "/"):
		targets, err = addTarget(nil, target{kind: proto.KindSet, word: proto.KindSet}, args[0])
	default:
		targets, err = parseTargets(args)
	}
	if err != nil {
		return want, nil, err
	}
	if (len(targets[0].names) > 0) == several {
		return want, nil, misuse("wait needs names, or one of -l LABELS and --all")
	}
	switch w.goal {
	case forAvailable, forReady:
		want = condition{kind: w.goal, value: "True", written: w.goal}
	case forDeleted:
		want = condition{gone: true, written: w.goal}
	default:
		want, err = parseCondition(w.goal)
	}
	for _, t := range targets {
		if w.goal == forAvailable && t.kind != proto.KindSet && err == nil {
			err = misuse("wait needs a set for 'available', not a %s; for a member write --for condition=Ready", t.kind)
		}
	}
	return want, targets, err
}

// run waits for all that targets name.
func (w *waitVerb) run(ctx context.Context, out io.Writer, want condition, targets []target) error {
	other := waiter{cli: w.cli, want: want, out: out}
	for _, t := range targets {
		if len(t.names) == 0 {
			got, err := w.control.List(ctx, &proto.ListRequest{Kind: t.kind, Namespace: w.namespace, Selector: w.selector})
			if err != nil {
				return err
			}
			for _, o := range got.GetObjects() {
				t.names = append(t.names, o.GetName())
			}
			if len(t.names) == 0 && !want.gone {
				return fmt.Errorf("no %s to wait for in namespace %s", t.kind, w.namespace)
			}
		}
		if t.kind == proto.KindMember && want.path != "" && other.hosts == nil {
			var err error
			if other.hosts, err = (&getter{cli: w.cli}).hostAddresses(ctx); err != nil {
				return err
			}
		}
		for _, name := range t.names {
			if err := w.one(ctx, &other, t, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// one waits for one object: a set by its members, where that is what is wanted.
func (w *waitVerb) one(ctx context.Context, other *waiter, t target, name string) error {
	goal := other.want.ofSet()
	if t.kind != proto.KindSet || goal == "" {
		return other.object(ctx, t.kind, t.word, name)
	}
	ref := spec.SetRef{Namespace: spec.Namespace(w.namespace), Name: spec.SetName(name)}
	if goal == forDeleted {
		return w.waitGone(ctx, ref, other.out)
	}
	return w.waitSet(ctx, ref, goal, other.out)
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
	case m.Ready && m.Goal != records.GoalStop && strings.HasPrefix(m.Blocked, causes.AwaitsImages):
		return fmt.Sprintf("ready; %s", m.Blocked)
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
