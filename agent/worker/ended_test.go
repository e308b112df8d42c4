package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

func TestEveryEndOfAContainerIsNamed(t *testing.T) {
	limited := func(l *records.Life) {
		l.Template.Spec.Containers[0].Resources.Limits = map[string]scalar.Quantity{"memory": {}}
	}
	exit := func(e runtime.Exit) func(*node) { return func(n *node) { n.host.Exit(cid, e) } }
	code := func(c int) *int { return &c }
	cases := []struct {
		name    string
		life    func(*records.Life)
		end     func(*node)
		cause   causes.Cause
		message string
		code    *int // nil: none is told
	}{
		{"with a code", nil, exit(runtime.Exit{Code: 3}), "CrashLoop", "exited with code 3", code(3)},
		{"with a code that nobody saw", nil, exit(runtime.Exit{Unknown: true}), "CrashLoop", "exit code is not known", nil},
		{"out of sight", nil, func(n *node) { n.host.Lose(cid) }, "CrashLoop", "exit code is not known", nil},
		{"out of sight, after an end that was seen", nil, func(n *node) {
			if n.host.StartsOf(cid, tok(5)) == 1 {
				n.host.Exit(cid, runtime.Exit{Code: 3})
			}
			n.host.Lose(cid)
		}, "CrashLoop", "exit code is not known", nil},
		{"by the kernel, for its limit", limited, exit(runtime.Exit{Code: 137, OOM: true}), "OOMKilled", "raise resources.limits.memory", code(137)},
		{"by the kernel, for all of the host", nil, exit(runtime.Exit{Code: 137, OOM: true}), "OOMKilled", "no limit of its own", code(137)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.run()
				l := life(5, records.GoalRun)
				if c.life != nil {
					c.life(&l)
				}
				n.w.Tell(l)
				n.wantReady()
				c.end(n)
				if r := n.wantReady(); r.Containers[0].Restarts != 1 {
					t.Fatalf("the first restart is not at once: %+v", r)
				}
				c.end(n)
				r := n.wantCause(c.cause, c.message)
				n.wantCause(c.cause, "2 times in a row; the next start waits 10s")
				if r.Containers[0].State != "Exited" {
					t.Errorf("state %s", r.Containers[0].State)
				}
				if got := r.Containers[0].ExitCode; (got == nil) != (c.code == nil) || got != nil && *got != *c.code {
					t.Errorf("exit code: got %v, want %v", got, c.code)
				}
				n.wantStarts(tok(5), 2)
				time.Sleep(11 * time.Second)
				n.wantStarts(tok(5), 3)
			})
		})
	}
}

func TestAContainerThatCannotBeStartedHasNoExitCodeAndStartsLaterAndLater(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour {
			return fakert.Behaviour{StartErr: errors.New("no such file")}
		})
		calls := n.count(nil)
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		time.Sleep(69 * time.Second) // at once, then after 10, 20 and 40 seconds
		if r := n.wantCause(causes.StartError, "no such file"); r.Containers[0].ExitCode != nil {
			t.Errorf("exit code %d", *r.Containers[0].ExitCode)
		}
		if got := calls.of("Start"); got != 4 {
			t.Errorf("%d starts were tried, want 4", got)
		}
	})
}

func TestALongRunIsForgivenAndAShorterIsNot(t *testing.T) {
	for ran, starts := range map[time.Duration]int{10*time.Minute - time.Second: 2, 10 * time.Minute: 3} {
		scenario(t, func(t *testing.T, n *node) {
			n.run()
			n.w.Tell(life(5, records.GoalRun))
			n.wantReady()
			n.host.Exit(cid, runtime.Exit{Code: 1})
			n.wantStarts(tok(5), 2)
			time.Sleep(ran)
			n.host.Exit(cid, runtime.Exit{Code: 1})
			n.wantStarts(tok(5), starts)
		})
	}
}

func TestAFirstRestartThatAnAgentDidNotLiveToSeeIsAtOnceInTheNext(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
			if c.Op == "Remove" {
				<-ctx.Done() // the agent dies
				return ctx.Err()
			}
			return nil
		})
		n.host.Exit(cid, runtime.Exit{Code: 1})
		synctest.Wait()
		n.kill()
		n.host.OnCall(nil)
		n.run()
		n.wantStarts(tok(5), 2)
		if r := n.wantReady(); r.Containers[0].Restarts != 1 {
			t.Errorf("got %+v", r.Containers[0])
		}
	})
}

func TestAnEndByOrderIsNoCrash(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{TermCode: 143} })
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.w.Tell(life(5, records.GoalStop))
		n.wantStopped(tok(5))
		last := n.last().Containers
		if len(last) != 1 || last[0].Restarts != 0 || last[0].ExitCode == nil || *last[0].ExitCode != 143 {
			t.Errorf("got %+v", last)
		}
	})
}

// Nobody knows how a lost container ended, or whether: its process may run on.
func TestOnlyWhatNeverRanIsKilledWhenItIsLost(t *testing.T) {
	const (
		real = iota
		lost // the runtime lost sight of the first attempt
		runs
	)
	type when struct {
		after time.Duration
		say   int64
	}
	cases := []struct {
		name   string
		says   []when // at first, and later
		killed bool
	}{
		{"lost in its start, it never ran", []when{{0, lost}}, true},
		{"lost after it ran", []when{{0, real}, {time.Minute, lost}}, false},
		{"lost in its start, then seen to run, then lost", []when{{0, lost}, {time.Second, runs}, {time.Minute, lost}}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				var say atomic.Int64
				say.Store(c.says[0].say)
				n.bend(answers{status: func(st runtime.Status) runtime.Status {
					if st.State == runtime.Running && st.Attempt == 0 && say.Load() == lost {
						st.State = runtime.Lost
					}
					return st
				}})
				begin := time.Now()
				calls := n.count(func(call fakert.Call) error {
					if call.Op == "KillAll" && time.Since(begin) < 10*time.Second {
						return errors.New("not yet") // so that it is looked at again
					}
					return nil
				})
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				for _, w := range c.says {
					time.Sleep(w.after)
					synctest.Wait()
					say.Store(w.say)
				}
				before := calls.of("KillAll")
				time.Sleep(10 * time.Minute)
				if c.killed {
					n.wantReady()
					n.wantStarts(tok(5), 2)
					return
				}
				n.wantCause(causes.ProcessLeft, "lost track")
				n.wantStarts(tok(5), 1)
				if len(n.host.RunningTokens(db0)) != 1 || calls.of("KillAll") != before {
					t.Error("what runs was killed")
				}
			})
		})
	}
}
