package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

func TestWhatFailsIsTriedAgainLaterAndLater(t *testing.T) {
	ms := func(at ...int) (times []time.Duration) {
		for _, n := range at {
			times = append(times, time.Duration(n)*time.Millisecond)
		}
		return times
	}
	cases := []struct {
		op   string
		err  error
		want []time.Duration // since the first
	}{
		{"EnsureImage", runtime.ErrImagePull, ms(0, 10_000, 30_000, 70_000)},
		{"Attach", errors.New("no link"), ms(0, 500, 1500, 3500, 7500, 15_500, 31_500, 63_500)},
		{"Create", runtime.ErrUnavailable, ms(0, 1000, 2000, 3000, 4000)},
	}
	for _, c := range cases {
		t.Run(c.op, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				var got []time.Duration
				begin := time.Now()
				n.host.OnCall(func(_ context.Context, call fakert.Call) error {
					if call.Op != c.op {
						return nil
					}
					got = append(got, time.Since(begin))
					return c.err
				})
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				time.Sleep(c.want[len(c.want)-1] + time.Millisecond)
				synctest.Wait()
				if !slices.Equal(got, c.want) {
					t.Errorf("tried at %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestAWaitIsEndedByWhatItWaitsForAlone(t *testing.T) {
	cases := []struct {
		name, op string
		nudge    func(*Worker)
		again    bool
	}{
		{"an image that came ends the wait for one", "EnsureImage", (*Worker).ImagesChanged, true},
		{"changed files do not", "EnsureImage", (*Worker).FilesChanged, false},
		{"an image that came does not end the wait for a volume", "Ensure", (*Worker).ImagesChanged, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				calls := n.count(func(call fakert.Call) error {
					if call.Op == c.op {
						return runtime.ErrImagePull
					}
					return nil
				})
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				time.Sleep(9500 * time.Millisecond) // between two tries of either
				before := calls.of(c.op)
				c.nudge(n.w)
				if got := calls.of(c.op) > before; got != c.again {
					t.Errorf("tried again: %v, want %v", got, c.again)
				}
			})
		})
	}
}

func TestAPullMayTakeLongerThanAnyOtherOperation(t *testing.T) {
	hang := func(n *node, op string) *time.Duration {
		took := new(time.Duration)
		n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
			if c.Op != op {
				return nil
			}
			begin := time.Now()
			<-ctx.Done()
			*took = time.Since(begin)
			return ctx.Err()
		})
		return took
	}
	for op, want := range map[string]time.Duration{"EnsureImage": 30 * time.Minute, "Attach": 2 * time.Minute} {
		scenario(t, func(t *testing.T, n *node) {
			took := hang(n, op)
			n.run()
			n.w.Tell(life(5, records.GoalRun))
			time.Sleep(want + 100*time.Millisecond)
			n.wantLast("the failure", func(r records.Report) bool { return strings.Contains(r.Message, context.DeadlineExceeded.Error()) })
			if *took != want {
				t.Errorf("%s was broken off after %s, want %s", op, *took, want)
			}
		})
	}
}

func TestAnOrderBreaksOffAPullAlsoWhenItCameJustBefore(t *testing.T) {
	orders := map[string]func(*Worker){
		"the life is to stop":       func(w *Worker) { w.Tell(life(5, records.GoalStop)) },
		"a newer life is wanted":    func(w *Worker) { w.Tell(life(6, records.GoalRun)) },
		"a newer token is known":    func(w *Worker) { w.Over(tok(5)) },
		"a much newer one is known": func(w *Worker) { w.Over(tok(7)) },
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				ordered := false
				n.pictures = func(c *files.SetFilesConfig) {
					picture := c.Snapshot
					c.Snapshot = func(ref spec.SetRef) (records.Snapshot, bool) { // the worker has chosen already
						if n.ledger.Look(db0).Open == tok(5) && !ordered {
							ordered = true
							order(n.w)
						}
						return picture(ref)
					}
				}
				n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
					if c.Op == "EnsureImage" && n.ledger.Look(db0).Open == tok(5) {
						t.Error("it is pulled")
						<-ctx.Done()
					}
					return nil
				})
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				if !slices.ContainsFunc(n.all(), func(r records.Report) bool { return r.Token == tok(5) && r.Phase == records.PhaseStopped }) {
					t.Errorf("it goes on: %+v", n.last())
				}
			})
		})
	}
}

func TestWhatIsDoneWithoutEffectIsToldAndTriedLater(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		b := n.bend(answers{})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		removals := 0
		b.say(answers{remove: func() error { removals++; return nil }}) // and it stands there still
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantCause(causes.StartError, errNoEffect.Error())
		if removals != mostRepeats+1 {
			t.Errorf("removed %d times before it was told, want %d", removals, mostRepeats+1)
		}
		b.say(answers{})
		time.Sleep(time.Minute)
		n.wantReady()
		n.wantStarts(tok(5), 2)
	})
}

func TestAStartWaitsForAPlaceLikeACreation(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.starts = make(chan struct{}, 1)
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Create" { // another member takes the place when this one gives it back
				go func() { n.starts <- struct{}{} }()
				time.Sleep(time.Second)
			}
			return nil
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		time.Sleep(10 * time.Second)
		n.wantStarts(tok(5), 0)
		<-n.starts
		n.wantStarts(tok(5), 1)
	})
}

func TestWhatTakesTooLongIsNamed(t *testing.T) {
	for op, verb := range map[string]string{"Create": "creating", "Start": "starting"} {
		scenario(t, func(t *testing.T, n *node) {
			goOn := make(chan struct{})
			n.host.OnCall(func(_ context.Context, c fakert.Call) error {
				if c.Op == op {
					<-goOn
				}
				return nil
			})
			n.run()
			n.w.Tell(life(5, records.GoalRun))
			time.Sleep(61 * time.Second)
			n.wantCause(causes.StartError, "container db: "+verb+" it has taken 1m0s so far")
			close(goOn)
			n.wantReady()
		})
	}
}

func TestEveryFailureHasACause(t *testing.T) {
	other := errors.New("other")
	cases := []struct {
		kind step.Kind
		err  error
		want causes.Cause
	}{
		{step.CreateContainer, &files.MissingError{}, causes.ConfigMissing},
		{step.WriteFiles, &files.MissingError{}, causes.ConfigMissing},
		{step.StartContainer, runtime.ErrUnavailable, causes.RuntimeUnavailable},
		{step.CreateContainer, runtime.ErrImageMissing, causes.ImageMissing},
		{step.AttachNetwork, runtime.ErrPortTaken, causes.HostPortTaken},
		{step.EnsureImage, other, causes.ImagePull},
		{step.EnsureVolumes, runtime.ErrForeign, causes.VolumeForeign},
		{step.EnsureSandbox, other, causes.SandboxError},
		{step.AttachNetwork, other, causes.NetworkError},
		{step.WriteFiles, other, causes.FilesError},
		{step.OpenToken, other, causes.LedgerError},
		{step.CloseToken, other, causes.LedgerError},
		{step.CreateContainer, other, causes.StartError},
		{step.Detach, other, causes.StopError},
	}
	for _, c := range cases {
		if got := causeOf(c.kind, c.err); got != c.want {
			t.Errorf("%s, %v: got %s, want %s", c.kind, c.err, got, c.want)
		}
	}
}

func TestAFullDiskSaysThatItHealsByItself(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.count(func(c fakert.Call) error {
			if c.Op == "Ensure" {
				return syscall.ENOSPC
			}
			return nil
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.last()
		if r := n.last(); !strings.Contains(r.Message, "free space there: it is tried again by itself") {
			t.Errorf("got %q", r.Message)
		}
	})
}

func TestDefaultsTakeThePlaceOfWhatIsZeroAlone(t *testing.T) {
	got := Tuning{Look: time.Second}.Filled()
	want := Tuning{
		CrashFirst: 10 * time.Second, CrashMost: 5 * time.Minute,
		ImageFirst: 10 * time.Second, ImageMost: 5 * time.Minute,
		RetryFirst: 500 * time.Millisecond, RetryMost: time.Minute,
		Look: time.Second, Away: time.Second, Renew: time.Second,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
