package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

func TestALeaderThatWouldStepDownIsNotEndedForAChange(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := &tellProber{now: probe.Health{Started: true, Ready: true, Leads: true, Term: 3}}
		n.prober = p
		steps := func(l *records.Life) {
			probed(l)
			l.Template.Spec.Containers[0].StepDown = &spec.Hook{Exec: &spec.ExecAction{Command: []string{"step"}}}
		}
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), steps))
		n.wantReady()
		n.w.Tell(with(life(5, records.GoalRun), steps, changeTo(7, memory(1<<30))))
		n.wantDone(7)
		n.w.Tell(with(life(5, records.GoalRun), steps, changeTo(8, image("2"))))
		n.wantLast("a refusal", func(r records.Report) bool {
			return r.Ready && r.Change.ID == at(8) && strings.Contains(r.Change.Refused, "the member leads")
		})
		n.wantStarts(tok(5), 1)
		p.now = probe.Health{Started: true, Ready: true}
		p.say(p.now)
		n.w.Tell(with(life(5, records.GoalRun), steps, changeTo(9, image("2"))))
		n.wantDone(9)
		n.wantLast("no leader", func(r records.Report) bool { return r.Claim == records.Claim{} })
	})
}

func TestWhatEndsAnUnguardedContainerIsNoChange(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		g := n.guarded(Guarded{Recorded: true, Watched: true})
		bound := func(l *records.Life) { l.Member.Bound = time.Minute }
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), bound))
		n.wantReady()
		g.say(Guarded{Recorded: true})
		n.w.Tell(with(life(5, records.GoalRun), bound, changeTo(7, image("2"))))
		time.Sleep(time.Minute)
		n.wantCause(causes.Unwatched, "watchdog")
		n.wantReady()
		n.wantStarts(tok(5), 1)
		g.say(Guarded{Recorded: true, Watched: true})
		time.Sleep(time.Second)
		n.wantDone(7)
		g.say(Guarded{Recorded: true, Watched: true, Passed: true})
		n.w.Tell(with(life(5, records.GoalRun), bound, changeTo(8, image("3"))))
		time.Sleep(time.Minute)
		n.wantLast("its end", func(r records.Report) bool {
			return r.Cause == causes.DeadlinePassed && r.Containers[0].Image == "img:2"
		})
	})
}

// A change that may be the repair is tried at once; what it does not touch waits on.
func TestAChangeEndsTheWaitOfWhatItChanges(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(c runtime.Container) fakert.Behaviour {
			return fakert.Behaviour{Exits: c.ID.Name == "log" || c.MemoryBytes == 0 && c.Attempt > 0, Code: 1}
		})
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twins))
		n.last()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.last()
		logs := n.host.StartsOf(ctrID("log"), tok(5))
		n.wantStarts(tok(5), 2)
		n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(7, func(c *spec.Container) {
			if c.Name == "db" {
				memory(1 << 30)(c)
			}
		})))
		n.wantStarts(tok(5), 3)
		if got := n.host.StartsOf(ctrID("log"), tok(5)); got != logs {
			t.Errorf("log was started %d times, want %d", got, logs)
		}
		n.wantDone(7)
	})
}

// What failed for the order before is tried at once for the next.
func TestAnotherOrderDoesNotWaitForWhatFailedBefore(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.host.OnPull(func(ref, _ string) error {
			if ref == "img:2" {
				return runtime.ErrImagePull
			}
			return nil
		})
		n.w.Tell(with(life(5, records.GoalRun), changeTo(7, image("2"))))
		n.wantCause(causes.ImagePull, "image pull failed")
		n.w.Tell(with(life(5, records.GoalRun), changeTo(8, image("3"))))
		n.wantDone(8)
		fails := true
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Resize" && fails {
				return errors.New("disk I/O error")
			}
			return nil
		})
		resized := func(bytes int64) func(*spec.Container) {
			return func(c *spec.Container) { image("3")(c); memory(bytes)(c) }
		}
		n.w.Tell(with(life(5, records.GoalRun), changeTo(9, resized(1<<30))))
		n.wantCause(causes.StartError, "disk I/O error")
		n.wantReady()
		fails = false
		n.w.Tell(with(life(5, records.GoalRun), changeTo(10, resized(1<<31))))
		n.wantDone(10)
	})
}

// An order is taken in a life that was begun and is to run; of one whose description is lost nothing is known.
func TestAnOrderIsTakenInALifeThatRuns(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		none := func(r records.Report) bool { return r.Change == inplace.ChangeResult{} }
		g := n.guarded(Guarded{Passed: true})
		bound := func(l *records.Life) { l.Member.Bound = time.Minute }
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), bound, changeTo(7, image("2"))))
		n.wantCause(causes.Unconfirmed, "confirmed")
		n.wantLast("no change", none)
		g.say(Guarded{Recorded: true, Watched: true})
		n.w.Confirmed()
		n.wantDone(7)
		n.wantStarts(tok(5), 1)
		n.host.OnPull(func(string, string) error { return runtime.ErrImagePull })
		n.w.Tell(with(life(5, records.GoalRun), bound, changeTo(8, image("3"))))
		n.wantCause(causes.ImagePull, "image pull failed")
		n.kill()
		must(t, os.Remove(filepath.Join(n.dir, "run-b1", "lives", "default", "db-0.json")))
		n.run()
		time.Sleep(time.Minute)
		n.wantLast("the order, not done", func(r records.Report) bool { return r.Change.ID == at(8) && !r.Change.Done })
		n.host.OnPull(nil)
		n.w.Tell(with(life(5, records.GoalRun), bound, changeTo(7, image("9"))))
		time.Sleep(time.Minute)
		n.wantLast("the newest order", func(r records.Report) bool { return r.Ready && r.Change.ID == at(8) && !r.Change.Done })
		n.wantStarts(tok(5), 1)
		n.w.Tell(with(life(5, records.GoalStop), bound, changeTo(9, image("4"))))
		time.Sleep(time.Minute)
		n.wantLast("no other order", func(r records.Report) bool { return r.Phase == records.PhaseStopped && r.Change.ID == at(8) })
	})
}

func TestAnInitContainerThatRunsIsNotEndedForAChange(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		first := func(l *records.Life) {
			l.Template.Spec.InitContainers = []spec.Container{{Name: "first", Image: "first:1"}}
		}
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), first))
		n.wantCause(causes.Initializing, "first")
		acts := n.acts()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) {
			l.Template.Spec.InitContainers = []spec.Container{{Name: "first", Image: "first:2"}}
		}, changeTo(7, image("2"))))
		wantActs(t, "told", acts())
		n.host.Exit(ctrID("first"), runtime.Exit{})
		n.wantDone(7)
		if got := n.host.StartsOf(ctrID("first"), tok(5)); got != 1 {
			t.Errorf("the init container was started %d times", got)
		}
	})
}

// Done is said of what ran.
func TestAChangeIsNotDoneBeforeAllContainersRan(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		fails := true
		n.host.OnStart(func(c runtime.Container) fakert.Behaviour {
			if c.Image == "img:2" && fails {
				return fakert.Behaviour{StartErr: runtime.ErrBadSpec}
			}
			return fakert.Behaviour{}
		})
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twins))
		n.wantReady()
		n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(7, image("2"))))
		time.Sleep(10 * time.Minute)
		n.wantCause(causes.StartError, "cannot be started")
		n.wantLast("not done", func(r records.Report) bool { return !r.Ready && !r.Change.Done && r.Containers[0].Restarts > 2 })
		if made, _ := n.host.Container(ctrID("log")); made.Image != "log:1" {
			t.Errorf("the other has %s although the first does not run", made.Image)
		}
		n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(8, image("3")))) // which may be the repair: it does not wait
		n.wantDone(8)
		n.wantReady()
	})
}

func TestAContainerThatCrashesByTheNewImageRanIt(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(c runtime.Container) fakert.Behaviour {
			return fakert.Behaviour{Exits: c.Image == "img:2", Code: 3}
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.w.Tell(with(life(5, records.GoalRun), changeTo(7, image("2"))))
		n.wantDone(7)
		n.wantLast("a crash loop", func(r records.Report) bool {
			return !r.Ready && r.Cause == causes.CrashLoop && *r.Containers[0].ExitCode == 3
		})
	})
}

func TestAnOrderedHookReturnsBeforeItsContainerIsEndedForAChange(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.prober = &hookProber{begun: time.Now(), run: doHook}
		told := with(life(5, records.GoalRun), func(l *records.Life) { *l = ordered(*l, 3, hooks.Forget, "hang") })
		n.run()
		n.w.Tell(told)
		n.wantReady()
		n.w.Tell(with(told, changeTo(7, image("2"))))
		n.wantCause(causes.NotReady, "when the ordered hook that runs in it has returned")
		n.wantReady()
		n.wantStarts(tok(5), 1)
		n.w.Tell(with(life(5, records.GoalRun), changeTo(7, image("2"))))
		n.wantDone(7)
	})
}
