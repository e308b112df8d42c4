package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := c.parseSet(args, "wait needs a set")
			if err != nil {
				return err
			}
			return c.with(func(control proto.ControlClient) error {
				ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
				defer cancel()
				switch goal {
				case forAvailable, forReady:
					return waitSet(ctx, control, ref, goal, cmd.OutOrStdout())
				case forDeleted:
					return waitGone(ctx, control, ref, cmd.OutOrStdout())
				}
				return usageError{fmt.Errorf("invalid --for %q; use %s, %s or %s", goal, forAvailable, forReady, forDeleted)}
			})
		},
		ValidArgsFunction: c.completeNames(proto.KindSet),
	}
	flags := cmd.Flags()
	flags.StringVar(&goal, "for", forAvailable, "available, ready or deleted")
	flags.DurationVar(&timeout, "timeout", 10*time.Minute, "time limit; exit code 3 when it expires")
	return cmd
}

// waitSet blocks until the set has reached its spec and its members are available, or at
// least ready, and prints every change of its members. It returns an error when the goal
// cannot be reached without a user: the rollout is paused and everything else is done, it is
// stalled, or it was rolled back. errNotInTime: ctx's deadline passed; errLeft: ctx ended.
func waitSet(ctx context.Context, control proto.ControlClient, ref spec.SetRef, goal string, out io.Writer) error {
	return followSet(ctx, control, ref, out, func(o object, s *spec.SetSpec, st *records.ShownSet) (string, error) {
		return waitEnd(o, s, st, goal)
	})
}

// waitEnd says how a wait ended, or returns why it cannot end without a user; empty while
// it may.
func waitEnd(o object, s *spec.SetSpec, st *records.ShownSet, goal string) (string, error) {
	if settled(o, s, st, goal) {
		if goal == forScaled {
			goal = forAvailable // all members are
		}
		return "is " + goal, nil
	}
	if paused(st) && !settled(o, s, st, forScaled) {
		return "", nil // missing members are still started
	}
	return "", halted(o, s, st)
}

// followSet prints every change of a set's members until judge says how it ended, in words
// that complete the sentence "default/db ...", or returns an error.
func followSet(ctx context.Context, control proto.ControlClient, ref spec.SetRef, out io.Writer,
	judge func(object, *spec.SetSpec, *records.ShownSet) (string, error)) error {
	log, found := newProgress(out), false
	defer log.beat()()
	err := watchSet(ctx, control, ref, func(o object, s *spec.SetSpec, st *records.ShownSet) (bool, error) {
		found = true
		log.members(s, st)
		end, err := judge(o, s, st)
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
func waitGone(ctx context.Context, control proto.ControlClient, ref spec.SetRef, out io.Writer) error {
	log := newProgress(out)
	defer log.beat()()
	err := watchSet(ctx, control, ref, func(_ object, s *spec.SetSpec, st *records.ShownSet) (bool, error) {
		log.members(s, st)
		return false, nil
	})
	if errors.Is(err, errSetGone) {
		log.line(ref, "is deleted")
		return nil
	}
	return err
}

// stillEvery is the time without news after which a wait says that it still waits.
const stillEvery = 20 * time.Second

// progress prints what changed during a wait, with the time since its start.
type progress struct {
	start time.Time
	every time.Duration // without news, until it repeats what it waits for

	mu      sync.Mutex
	out     io.Writer
	printed map[string]string // the last line of each member
	last    time.Time         // of the last line
	summary string            // what is repeated when there are no news
}

func newProgress(out io.Writer) *progress {
	now := time.Now()
	return &progress{out: out, start: now, last: now, every: stillEvery, printed: map[string]string{}}
}

func (p *progress) line(subject any, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(subject, text)
}

// print prints a line; mu is held.
func (p *progress) print(subject any, text string) {
	p.last = time.Now()
	fmt.Fprintf(p.out, "%6s  %s  %s\n", elapsed(p.start), subject, scalar.Plain(text))
}

// members prints every member whose line has changed.
func (p *progress) members(s *spec.SetSpec, st *records.ShownSet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := ""
	for _, m := range st.Members {
		line := memberState(m)
		if p.printed[m.Name] != line {
			p.printed[m.Name] = line
			p.print(m.Name, line)
		}
		if waits == "" && (!m.Ready || m.Blocked != "") {
			waits = "; " + m.Name + " " + line
		}
	}
	p.summary = fmt.Sprintf("%d of %d available%s", st.AvailableReplicas, replicasOf(s), waits)
}

// beat repeats, whenever there was no news for a while, what is waited for, until the
// returned function is called.
func (p *progress) beat() (stop func()) {
	quit := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(p.every)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			p.mu.Lock()
			if time.Since(p.last) >= p.every {
				p.print("still waiting:", firstOf(p.summary, "no answer yet"))
			}
			p.mu.Unlock()
		}
	})
	return func() { close(quit); group.Wait() }
}

func elapsed(since time.Time) string {
	return fmt.Sprintf("%.1fs", time.Since(since).Seconds())
}

// settled reports whether the set has reached its spec, with all members available, or at
// least ready; forScaled: except for the update.
func settled(o object, s *spec.SetSpec, st *records.ShownSet, goal string) bool {
	have, updated := st.AvailableReplicas, st.UpdatedAvailableReplicas
	if goal == forReady {
		have, updated = st.ReadyReplicas, st.UpdatedReadyReplicas
	}
	want := replicasOf(s)
	return st.ObservedGeneration >= o.Metadata.Generation &&
		st.Replicas == want && have == want && st.TerminatingReplicas == 0 &&
		(goal == forScaled || updated >= updatable(s, want))
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
