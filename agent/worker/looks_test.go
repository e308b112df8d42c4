package worker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

func TestALifeThatWasAssignedForAnotherBootIsRefused(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.Member.Boot = "b0" }))
		n.wantLast("refused", func(r records.Report) bool {
			return r.Token == tok(5) && r.Phase == records.PhaseFailed && r.Cause == "OtherBoot"
		})
		n.wantStarts(tok(5), 0)
	})
}

func TestALifeBeginsWhenAStrangerHasGone(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		stranger(t, n.host, tok(9))
		n.run()
		n.w.Tell(life(10, records.GoalRun))
		time.Sleep(10 * time.Minute)
		n.wantCause(causes.Stray, "container db of token 1.9 is on this node")
		n.host.Exit(cid, runtime.Exit{})
		must(t, n.host.Remove(t.Context(), cid))
		time.Sleep(31 * time.Second)
		n.wantReady()
		n.wantStarts(tok(10), 1)
	})
}

// What the agent kept of a life is lost with its description: what runs is left alone,
// and what is to end ends.
func TestALifeWhoseDescriptionIsLostRunsOnAndCanBeEnded(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		reason := ""
		n.count(func(c fakert.Call) error {
			if c.Op == "Signal" {
				reason = n.steadFile(files.TerminationFile)
			}
			return nil
		})
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		n.wantReady()
		n.kill()
		n.loseDescription()
		n.found = Found{Containers: []string{"db"}}
		n.run()
		time.Sleep(time.Hour)
		n.wantStarts(tok(5), 1)
		if got := n.host.RunningTokens(db0); len(got) != 1 {
			t.Fatalf("running: %v", got)
		}
		n.w.Over(tok(5))
		time.Sleep(29 * time.Second)
		n.wantLast("its grace", func(r records.Report) bool { return r.Phase == records.PhaseStopping })
		time.Sleep(2 * time.Second)
		n.wantStopped(tok(5))
		if reason != "Replace\n" {
			t.Errorf("termination-reason at the signal: %q", reason)
		}
	})
	scenario(t, func(t *testing.T, n *node) { // how it ends is told
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.kill()
		n.loseDescription()
		n.found = Found{Containers: []string{"db"}}
		n.run()
		synctest.Wait()
		n.host.Exit(cid, runtime.Exit{Code: 137, OOM: true})
		time.Sleep(31 * time.Second)
		n.wantCause("OOMKilled", "raise resources.limits.memory")
	})
}

func TestALifeEndsWithItsOwnGraceWhenANewerIsWanted(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.Member.GraceSeconds = 10 }))
		n.wantReady()
		n.w.Tell(life(6, records.GoalRun))
		time.Sleep(9 * time.Second)
		n.wantLast("its grace", func(r records.Report) bool { return r.Token == tok(5) && r.Phase == records.PhaseStopping })
		if got := n.steadFile(files.TerminationFile); got != "Replace\n" {
			t.Errorf("termination-reason: %q", got)
		}
		time.Sleep(2 * time.Second)
		n.wantStarts(tok(6), 1)
	})
}

func TestAStopWithoutAReasonIsAReplacement(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.w.Tell(with(life(5, records.GoalStop), func(l *records.Life) { l.Member.StopReason = "" }))
		synctest.Wait()
		if got := n.steadFile(files.TerminationFile); got != "Replace\n" {
			t.Errorf("termination-reason: %q", got)
		}
	})
}

// A container may end, and be removed, between the look at it and the signal: the others
// are asked to stop all the same.
func TestASignalToWhatHasGoneIsNoFailure(t *testing.T) {
	for _, removed := range []bool{false, true} {
		scenario(t, func(t *testing.T, n *node) {
			n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
			n.run()
			n.w.Tell(with(life(5, records.GoalRun), twoContainers))
			n.wantReady()
			n.count(func(c fakert.Call) error {
				if c.Op == "Signal" && c.Name == cid.Name {
					n.host.Exit(cid, runtime.Exit{})
					if removed {
						return n.host.Remove(t.Context(), cid)
					}
				}
				return nil
			})
			n.w.Tell(with(life(5, records.GoalStop), twoContainers))
			time.Sleep(10 * time.Second)
			n.wantLast("the grace of the other", func(r records.Report) bool { return r.Phase == records.PhaseStopping })
			time.Sleep(21 * time.Second)
			n.wantStopped(tok(5))
			for _, r := range n.all() {
				if r.Phase == records.PhaseStopping && r.Cause != "" {
					t.Errorf("removed %v: told %s: %s", removed, r.Cause, r.Message)
				}
			}
		})
	}
}

// SAFETY S13: a runtime that hangs says that a container runs whose processes are gone.
func TestAStopBelievesTheHostThatAContainerIsGone(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.bend(answers{status: func(st runtime.Status) runtime.Status {
			if st.State == runtime.Exited {
				st.State = runtime.Running
			}
			return st
		}})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.host.Exit(cid, runtime.Exit{})
		n.w.Tell(life(5, records.GoalStop))
		n.wantStopped(tok(5))
	})
}

func TestNothingBeginsWhileWhetherMountsAreLeftCannotBeSeen(t *testing.T) {
	for name, say := range map[string]answers{
		"an error":       {clean: func() (bool, error) { return true, os.ErrPermission }},
		"some are there": {clean: func() (bool, error) { return false, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				b := n.bend(say)
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				time.Sleep(time.Minute)
				n.wantCause(causes.StopError, errNoEffect.Error())
				if open := n.ledger.Look(db0).Open; !open.IsZero() {
					t.Fatal("its token is open")
				}
				b.say(answers{})
				time.Sleep(2 * time.Minute)
				n.wantReady()
				b.say(say)
				n.w.Tell(life(5, records.GoalStop))
				time.Sleep(time.Minute)
				if open := n.ledger.Look(db0).Open; open != tok(5) {
					t.Fatal("its token is closed")
				}
				n.wantCause(causes.StopError, errNoEffect.Error())
				b.say(answers{})
				time.Sleep(2 * time.Minute)
				n.wantStopped(tok(5))
			})
		})
	}
}

func TestAStateThatIsDamagedOrOfAnotherLifeCountsForNothing(t *testing.T) {
	another, err := json.Marshal(State{Token: tok(4), Phase: records.PhaseStopping, ReadyOnce: true})
	must(t, err)
	for name, doc := range map[string]string{
		"damaged":         `{"token":{"epoch":1,"number":5},"phase":"Stopping","readyOnce":true,"containers":7}`,
		"of another life": string(another),
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				p := &silentProber{}
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), probed))
				n.wantReady()
				n.kill()
				n.prober = p // says nothing
				path := filepath.Join(n.dir, "run-b1", "state", "default", "db-0.json")
				must(t, os.WriteFile(path, []byte(doc), 0o600))
				n.run()
				n.wantLast("running, not ready", func(r records.Report) bool {
					return r.Phase == records.PhaseRunning && !r.Ready && !r.ReadyOnce
				})
			})
		})
	}
}
