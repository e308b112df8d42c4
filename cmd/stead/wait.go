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
)

// what can be waited for.
const (
	forAvailable = "available"
	forReady     = "ready"
	forDeleted   = "deleted"
	// forScaled is what 'scale --wait' waits for: whatever an update still has to do.
	forScaled = "scaled"
)

func waitCommand(c *cli) *cobra.Command {
	var (
		goal    string
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "wait SET",
		Short: "Wait until a set is available, ready or gone, showing who waits for what",
		Long: `Wait until every member of a set is ready, is available (ready for minReadySeconds), or
until the set is deleted. Whatever a member does or waits for is shown when it changes.
Exit code 1 when it will not come by itself: the rollout is paused, stalled or was rolled
back, or the set is deleted; 3 when the time is over.`,
		Example: `  stead wait set/etcd
  stead wait etcd --for ready --timeout 1m
  stead wait set/etcd --for deleted`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := c.parseSet(args, "only sets can be waited for")
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
				return usageError{fmt.Errorf("--for %q: write %s, %s or %s", goal, forAvailable, forReady, forDeleted)}
			})
		},
		ValidArgsFunction: c.completeNames("set"),
	}
	flags := cmd.Flags()
	flags.StringVar(&goal, "for", forAvailable, "available, ready or deleted")
	flags.DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait; exit code 3 when it is over")
	return cmd
}

// waitSet blocks until the set is as its spec says and its members are available, or
// at least ready, printing each change of what its members do and wait for. It ends with
// an error when that will not come by itself: the rollout is paused and all else is done,
// stalled, or was given up.
// errNotInTime when ctx's deadline passes first, errLeft when it is ended.
func waitSet(ctx context.Context, control proto.ControlClient, ref spec.SetRef, goal string, out io.Writer) error {
	return followSet(ctx, control, ref, out, func(o object, s *spec.SetSpec, st *setStatus) (string, error) {
		return waitEnd(o, s, st, goal)
	})
}

// waitEnd says how a wait ended, or why what it waits for will not come by itself; empty
// while it may.
func waitEnd(o object, s *spec.SetSpec, st *setStatus, goal string) (string, error) {
	if settled(o, s, st, goal) {
		if goal == forScaled {
			goal = forAvailable // all are
		}
		return "is " + goal, nil
	}
	if paused(st) && !settled(o, s, st, forScaled) {
		return "", nil // the members that are missing still come
	}
	return "", halted(o, s, st)
}

// followSet prints what the members of a set do and wait for until judge says how it
// ended, in the words that end the sentence "default/db ...", or that it never will.
func followSet(ctx context.Context, control proto.ControlClient, ref spec.SetRef, out io.Writer,
	judge func(object, *spec.SetSpec, *setStatus) (string, error)) error {
	told, found := newTeller(out), false
	defer told.beat()()
	err := watchSet(ctx, control, ref, func(o object, s *spec.SetSpec, st *setStatus) (bool, error) {
		found = true
		told.members(s, st)
		end, err := judge(o, s, st)
		if end != "" {
			told.line(ref, end)
		}
		return end != "", err
	})
	switch {
	case errors.Is(err, errSetGone) && found:
		return fmt.Errorf("set %s was deleted while waiting for it", ref)
	case errors.Is(err, errSetGone):
		return fmt.Errorf("there is no set %s in namespace %s", ref.Name, ref.Namespace)
	}
	return err
}

// waitGone blocks until the set no longer exists.
func waitGone(ctx context.Context, control proto.ControlClient, ref spec.SetRef, out io.Writer) error {
	told := newTeller(out)
	defer told.beat()()
	err := watchSet(ctx, control, ref, func(_ object, s *spec.SetSpec, st *setStatus) (bool, error) {
		told.members(s, st)
		return false, nil
	})
	if errors.Is(err, errSetGone) {
		told.line(ref, "is gone")
		return nil
	}
	return err
}

// stillEvery is after how much silence a wait says that it goes on.
const stillEvery = 20 * time.Second

// teller prints what changed, with the time since it began.
type teller struct {
	began time.Time
	every time.Duration // of silence

	mu     sync.Mutex
	out    io.Writer
	said   map[string]string
	last   time.Time // when something was said
	stands string    // how it stands, for who waits in silence
}

func newTeller(out io.Writer) *teller {
	now := time.Now()
	return &teller{out: out, began: now, last: now, every: stillEvery, said: map[string]string{}}
}

func (t *teller) line(who any, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.say(who, what)
}

// say prints a line; mu is held.
func (t *teller) say(who any, what string) {
	t.last = time.Now()
	fmt.Fprintf(t.out, "%6s  %s  %s\n", elapsed(t.began), who, spec.Plain(what))
}

func (t *teller) members(s *spec.SetSpec, st *setStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waits := ""
	for _, m := range st.Members {
		line := memberState(m)
		if t.said[m.Name] != line {
			t.said[m.Name] = line
			t.say(m.Name, line)
		}
		if waits == "" && (!m.Ready || m.Blocked != "") {
			waits = "; " + m.Name + " " + line
		}
	}
	t.stands = fmt.Sprintf("%d of %d available%s", st.AvailableReplicas, replicasOf(s), waits)
}

// beat says after each span of silence how it stands, until the returned function ends
// it.
func (t *teller) beat() (stop func()) {
	quit := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(t.every)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			t.mu.Lock()
			if time.Since(t.last) >= t.every {
				t.say("still waiting:", firstOf(t.stands, "no answer yet"))
			}
			t.mu.Unlock()
		}
	})
	return func() { close(quit); group.Wait() }
}

func elapsed(since time.Time) string {
	return fmt.Sprintf("%.1fs", time.Since(since).Seconds())
}

// settled reports whether everything the spec asks for has been reached, with all
// members available, or at least ready; forScaled: but for the update.
func settled(o object, s *spec.SetSpec, st *setStatus, goal string) bool {
	have, updated := st.AvailableReplicas, st.UpdatedAvailableReplicas
	if goal == forReady {
		have, updated = st.ReadyReplicas, st.UpdatedReadyReplicas
	}
	want := replicasOf(s)
	return st.ObservedGeneration >= o.Metadata.Generation &&
		st.Replicas == want && have == want && st.TerminatingReplicas == 0 &&
		(goal == forScaled || updated >= updatable(s, want))
}

// paused reports whether the update is held back by a person.
func paused(st *setStatus) bool {
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

// memberState is one member in one line: what it is, or what it waits for.
func memberState(m records.MemberStatus) string {
	switch {
	case m.Ready && m.Goal != records.GoalStop:
		return fmt.Sprintf("ready on %s at %s", m.Node, m.Address)
	case m.Cause != "":
		return fmt.Sprintf("%s: %s: %s", m.Phase, m.Cause, m.Message)
	case strings.HasPrefix(m.Blocked, "waits "):
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
