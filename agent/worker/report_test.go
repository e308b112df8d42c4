package worker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// side is the second container of a life.
var side = runtime.ContainerID{ID: db0, Name: "side"}

func withSide(l *records.Life) {
	l.Template.Spec.Containers = append(l.Template.Spec.Containers, spec.Container{Name: "side", Image: "img:2"})
}

// noSide makes the image of the second container missing.
func (n *node) noSide() {
	n.host.OnPull(func(ref, _ string) error {
		if ref == "img:2" {
			return runtime.ErrImageMissing
		}
		return nil
	})
}

func TestThePhasesOfALifeAreToldInTheirOrder(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.w.Tell(life(5, records.GoalStop))
		n.wantStopped(tok(5))
		var got []records.Phase
		for _, r := range n.all() {
			got = append(got, r.Phase)
		}
		want := []records.Phase{
			records.PhaseAssigned, records.PhasePreparing, records.PhaseStarting, records.PhaseRunning, records.PhaseStopping, records.PhaseStopped,
		}
		got = slices.Compact(got)
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAnAgentThatLostWhatWasKeptTellsWhatItSees(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.noSide()
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), withSide))
		starting := func(r records.Report) bool {
			return r.Phase == records.PhaseStarting && r.Cause == causes.ImageMissing && !r.Ready
		}
		n.wantLast("one container waits", starting)
		n.kill()
		must(t, os.RemoveAll(filepath.Join(n.dir, "run-b1", "state")))
		n.run()
		n.wantLast("one container waits", starting)
	})
}

func TestEachContainerIsToldOf(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.noSide()
		p := &tellProber{now: probe.Health{Started: true}}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), withSide, probed))
		want := func(what string, ready bool, db, side records.ContainerReport) {
			t.Helper()
			r := n.last()
			if len(r.Containers) != 2 || r.Ready != ready {
				t.Fatalf("%s: got %+v", what, r)
			}
			db.Name, db.Image, side.Name, side.Image = "db", "img:1", "side", "img:2"
			for i, w := range []records.ContainerReport{db, side} {
				got := r.Containers[i]
				if got.Started.IsZero() == (w.State == "Running") {
					t.Errorf("%s: %s started at %s", what, got.Name, got.Started)
				}
				if got.ExitCode != nil && *got.ExitCode == 2 {
					got.ExitCode = nil
				}
				got.Started = w.Started
				if got != w {
					t.Errorf("%s: got %+v, want %+v", what, got, w)
				}
			}
		}
		running := records.ContainerReport{State: "Running"}
		ready := records.ContainerReport{State: "Running", Ready: true}
		want("one waits", false, running, records.ContainerReport{State: "Waiting"})
		n.host.AddImage("img:2")
		n.w.ImagesChanged()
		want("the first is not ready", false, running, ready)
		p.say(probe.Health{Started: true, Ready: true})
		want("both are", true, ready, ready)
		for range 2 {
			n.host.Exit(side, runtime.Exit{Code: 2})
			n.last()
		}
		want("the second ended", false, ready, records.ContainerReport{State: "Exited", Restarts: 2, Cause: "CrashLoop"})
		n.wantLast("why", func(r records.Report) bool {
			return r.Cause == "CrashLoop" && strings.HasPrefix(r.Message, "container side: exited with code 2")
		})
	})
}

// What was wrong with a container while it ran says nothing of why it ended.
func TestWhatEndedIsToldAsEnded(t *testing.T) {
	for name, wrong := range map[string]struct {
		cause causes.Cause
		begin func(*node)
	}{
		"its logger was killed": {causes.LogLost, func(n *node) {
			n.logger(0).Close()
		}},
		"it was refused processes": {causes.ProcessLimit, func(n *node) { n.host.Refuse(cid, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.tuning.CrashFirst = time.Hour
				n.host.OnStart(func(c runtime.Container) fakert.Behaviour {
					return fakert.Behaviour{Exits: c.Attempt > 0, Code: 1}
				})
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				n.wantReady()
				wrong.begin(n)
				time.Sleep(2 * time.Minute)
				n.wantLast("what is wrong", func(r records.Report) bool { return r.Cause == wrong.cause })
				before := len(n.all())
				n.host.Exit(cid, runtime.Exit{Code: 1})
				if r := n.all()[before]; r.Ready || r.Cause != "Exited" {
					t.Errorf("first told of its end: %+v", r)
				}
				n.wantLast("its ends", func(r records.Report) bool { return r.Cause == "CrashLoop" && !r.Ready })
			})
		})
	}
}

// logger is what writes the log of a run of the container.
func (n *node) logger(attempt int) *logs.Writer {
	return logs.NewWriter(logs.Config{
		Dir: filepath.Join(n.dir, "logs", "default", "db-0", cid.Name), Run: logs.RunName(tok(5).Epoch, tok(5).Number, attempt),
		FileBytes: 1 << 20, Files: 2,
	})
}

func TestAnEndSaysWhy(t *testing.T) {
	closed := func(cause causes.Cause) func(*node) {
		return func(n *node) {
			n.w.Tell(life(5, records.GoalRun))
			n.wantReady()
			n.kill()
			n.host.Exit(cid, runtime.Exit{})
			n.record(func(l *ledger.Ledger) error { return l.CloseToken(db0, tok(5), cause) })
			n.run()
		}
	}
	for name, c := range map[string]struct {
		end     func(*node)
		phase   records.Phase
		cause   causes.Cause
		message string
	}{
		"it was told to stop": {func(n *node) {
			n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
			n.w.Tell(life(5, records.GoalRun))
			n.wantReady()
			n.w.Tell(life(5, records.GoalStop))
			n.wantLast("its grace, which is no trouble", func(r records.Report) bool {
				return r.Phase == records.PhaseStopping && r.Cause == "" && r.Message == ""
			})
			time.Sleep(time.Minute)
		}, records.PhaseStopped, "", ""},
		"the machine was booted": {func(n *node) {
			n.w.Tell(life(5, records.GoalRun))
			n.wantReady()
			n.kill()
			n.host.Reboot()
			n.boot = "b2"
			n.run()
		}, records.PhaseStopped, "Reboot", "the node was booted; nothing of the member is left"},
		"it missed its deadline": {
			closed(causes.DeadlinePassed), records.PhaseStopped, causes.DeadlinePassed,
			"no server confirmed the node within the member's bound (nodeLoss.after); it was ended here",
		},
		"it was closed by an agent before": {closed(causes.Stopped), records.PhaseStopped, "", ""},
		"it was meant for the boot before": {func(n *node) {
			n.epoch.Store(tok(5).Epoch)
			n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.Member.Boot = "b0" }))
			n.wantStarts(tok(5), 0)
		}, records.PhaseFailed, "OtherBoot", "the node was booted since the member was assigned to it; nothing was started"},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.run()
				c.end(n)
				r := n.last()
				if r.Token != tok(5) || r.Phase != c.phase || r.Cause != c.cause || r.Message != c.message {
					t.Errorf("got %+v", r)
				}
			})
		})
	}
}

// record writes into the ledger while no agent runs.
func (n *node) record(write func(*ledger.Ledger) error) {
	n.t.Helper()
	l, err := ledger.Open(filepath.Join(n.dir, "ledger"), n.boot)
	must(n.t, err)
	must(n.t, errors.Join(write(l), l.Close()))
}

func TestOfASpentTokenOnlyItsEndIsTold(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.record(func(l *ledger.Ledger) error {
			return errors.Join(l.CloseToken(db0, tok(9), causes.Stopped), l.Stored(db0, tok(9)))
		})
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{Unkillable: true} })
		stranger(t, n.host, tok(9)) // its process is left
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		time.Sleep(time.Hour)
		if all := n.all(); len(all) > 0 {
			t.Fatalf("told while a process is left: %+v", all)
		}
		n.host.Exit(cid, runtime.Exit{})
		time.Sleep(time.Minute)
		n.wantStopped(tok(5))
		if all := n.all(); len(all) != 1 || all[0].Message != messageSpent {
			t.Errorf("got %+v", all)
		}
		n.wantStarts(tok(5), 0)
	})
}
