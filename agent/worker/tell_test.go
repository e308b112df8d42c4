package worker

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// pulling makes every pull hang until it is broken off; it counts them.
func (n *node) pulling() *atomic.Int64 {
	var pulls atomic.Int64
	n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
		if c.Op != "EnsureImage" {
			return nil
		}
		pulls.Add(1)
		<-ctx.Done()
		return ctx.Err()
	})
	return &pulls
}

func TestAPullGoesOnUntilItsLifeIsNotWanted(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		pulls := n.pulling()
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.last()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.MinReadySeconds = 10 })) // the list is told again
		time.Sleep(time.Minute)
		if got := pulls.Load(); got != 1 {
			t.Errorf("pulled %d times, want once: it goes on", got)
		}
		n.host.OnCall(nil)
		n.w.Tell(life(6, records.GoalRun))
		if r := n.wantReady(); r.Token != tok(6) {
			t.Errorf("got %+v", r)
		}
		n.wantStarts(tok(5), 0)
	})
}

// deadline is a guard whose lives miss their deadline when the test says so.
type deadline struct {
	late
	passed atomic.Bool
}

func (d *deadline) Look(spec.Identity, spec.Token, time.Duration) Guarded {
	return Guarded{Recorded: true, Passed: d.passed.Load(), Watched: true}
}

func TestADeadlineEndsALifeAtOnce(t *testing.T) {
	for name, pulls := range map[string]bool{"that runs": false, "that waits for its image": true} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				guard := &deadline{late: late{n.dir}}
				n.guard = guard
				if pulls {
					n.pulling()
				}
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.Member.Bound = time.Minute }))
				n.wantLast("a life", func(r records.Report) bool { return r.Ready != pulls && r.Phase != records.PhaseAssigned })
				guard.passed.Store(true)
				must(t, n.ledger.CloseToken(db0, tok(5), causes.DeadlinePassed))
				n.w.Expired()
				n.wantStopped(tok(5)) // at once, on the bubble's clock
			})
		})
	}
}

func TestAMemberReadsTheReasonLastTold(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		stop := func(r records.Reason) records.Life {
			return with(life(5, records.GoalStop), func(l *records.Life) { l.Member.StopReason = r })
		}
		reason, goOn := "", make(chan struct{})
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			switch c.Op {
			case "Start":
				<-goOn
			case "Signal":
				reason = n.steadFile(files.TerminationFile)
			}
			return nil
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.last()
		n.w.Tell(stop(records.ReasonReplace))
		n.w.Tell(stop(records.ReasonScaleDown))
		close(goOn)
		n.wantStopped(tok(5))
		if reason != "ScaleDown\n" {
			t.Errorf("got %q", reason)
		}
	})
}

func TestPendingIsWhatWasToldToRunAndIsNotOpened(t *testing.T) {
	open := func(number int64) func(*testing.T, *Worker) {
		return func(t *testing.T, w *Worker) { must(t, w.c.Ledger.OpenToken(db0, tok(number))) }
	}
	tell := func(number int64, goal records.Goal) func(*testing.T, *Worker) {
		return func(_ *testing.T, w *Worker) { w.Tell(life(number, goal)) }
	}
	over := func(number int64) func(*testing.T, *Worker) {
		return func(_ *testing.T, w *Worker) { w.Over(tok(number)) }
	}
	for _, c := range []struct {
		name string
		then []func(*testing.T, *Worker)
		want bool
	}{
		{"nothing is told", nil, false},
		{"a life is", []func(*testing.T, *Worker){tell(5, records.GoalRun)}, true},
		{"it was opened", []func(*testing.T, *Worker){open(5), tell(5, records.GoalRun)}, false},
		{"an older one was", []func(*testing.T, *Worker){open(4), tell(5, records.GoalRun)}, true},
		{"a newer one was", []func(*testing.T, *Worker){open(6), tell(5, records.GoalRun)}, false},
		{"it is to stop", []func(*testing.T, *Worker){tell(5, records.GoalRun), tell(5, records.GoalStop)}, false},
		{"it is over", []func(*testing.T, *Worker){tell(5, records.GoalRun), over(5)}, false},
		{"an older one is over", []func(*testing.T, *Worker){tell(5, records.GoalRun), over(4)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger")
			must(t, ledger.Create(path))
			l, err := ledger.Open(path, "b1")
			must(t, err)
			defer l.Close()
			w := New(&Config{Ledger: l, Files: OnHost(t.TempDir(), t.TempDir()), RunDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}, db0, Found{})
			for _, then := range c.then {
				then(t, w)
			}
			token, got := w.Pending()
			if got != c.want || got && token != tok(5) {
				t.Errorf("got %s, %v, want %v", token, got, c.want)
			}
		})
	}
}

func TestLastIsTheNewestReport(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		if r, ok := n.w.Last(); ok {
			t.Errorf("before any: got %+v", r)
		}
		n.w.Tell(life(5, records.GoalRun))
		want := n.wantReady()
		if r, ok := n.w.Last(); !ok || r.Seq != want.Seq || !r.Ready {
			t.Errorf("got %+v, %v, want %+v", r, ok, want)
		}
	})
}
