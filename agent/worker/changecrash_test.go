package worker

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

func TestAPullForAChangeEndsWithTheLife(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		var broken atomic.Int64
		n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
			if c.Op != "EnsureImage" {
				return nil
			}
			<-ctx.Done()
			broken.Add(1)
			return ctx.Err()
		})
		n.w.Tell(with(life(5, records.GoalRun), changeTo(7, image("2"))))
		n.last()
		n.w.Tell(with(life(5, records.GoalStop), changeTo(7, image("2")))) // a stop makes it void
		time.Sleep(time.Minute)
		n.wantStopped(tok(5))
		n.host.OnCall(nil)
		n.w.Tell(life(6, records.GoalRun))
		n.wantReady()
		n.wantStarts(tok(5), 1)
		if broken.Load() != 1 {
			t.Errorf("the pull was broken off %d times", broken.Load())
		}
	})
}

// An agent may be killed at each call of a change, before the call or after: the one after it carries the change out, each container
// is started once by each image, and nothing counts as a crash.
func TestAChangeOutlastsTheAgentWhereverItIsKilled(t *testing.T) {
	for _, before := range []bool{false, true} {
		for call := 1; ; call++ {
			reached := false
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				var dead atomic.Bool
				calls := 0
				n.change = func(c *Config) { c.Files = mortal{c.Files, &dead} }
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), twins))
				n.wantReady()
				n.host.OnCall(func(context.Context, fakert.Call) error {
					calls++
					if calls == call {
						reached = true
						dead.Store(true)
						n.cancel()
						if before {
							return context.Canceled
						}
					}
					return nil
				})
				n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(7, func(c *spec.Container) { image("2")(c); memory(1 << 30)(c) })))
				synctest.Wait()
				if reached {
					<-n.done
					n.kill()
					dead.Store(false)
					n.run()
					// The server may say it again, or not yet.
					if call%2 == 0 {
						n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(7, func(c *spec.Container) { image("2")(c); memory(1 << 30)(c) })))
					}
					time.Sleep(5 * time.Minute)
				}
				what := fmt.Sprintf("killed at call %d, before it %v", call, before)
				r := n.last()
				if r.Change.ID != at(7) || !r.Change.Done || !r.Ready {
					t.Errorf("%s: %+v", what, r)
				}
				for _, c := range r.Containers {
					made, _ := n.host.Container(ctrID(c.Name))
					if starts := n.host.StartsOf(ctrID(c.Name), tok(5)); starts != 2 || c.Restarts != 0 || !strings.HasSuffix(made.Image, ":2") || made.MemoryBytes != 1<<30 {
						t.Errorf("%s: %s was started %d times, restarted %d times, as %s with %d bytes", what, c.Name, starts, c.Restarts, made.Image, made.MemoryBytes)
					}
				}
			})
			if !reached {
				if call < 8 {
					t.Fatalf("a change is over after %d calls", call)
				}
				break
			}
		}
	}
}

// A life that cannot be kept with an order is what it was before.
func TestAnOrderThatCannotBeKeptIsNotTaken(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		var dead atomic.Bool
		n.change = func(c *Config) { c.Files = mortal{c.Files, &dead} }
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		dead.Store(true)
		acts := n.acts()
		n.w.Tell(with(life(5, records.GoalRun), changeTo(7, image("2"))))
		wantActs(t, "told", acts())
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantReady()
		if made, _ := n.host.Container(cid); made.Image != "img:1" {
			t.Errorf("it begins again by %s", made.Image)
		}
		n.wantLast("no change", func(r records.Report) bool { return r.Change == inplace.ChangeResult{} })
		dead.Store(false)
		time.Sleep(time.Minute)
		n.wantDone(7)
	})
}

func TestAChangeRunsThePreStopHookOnceWithinTheGrace(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		made := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: sleep(4), PostStart: hookOf("ok")}))
		n.run()
		n.w.Tell(made)
		n.wantReady()
		n.w.Tell(with(made, changeTo(7, image("2"))))
		n.wantLast("not ready while it ends", func(r records.Report) bool {
			return !r.Ready && r.Cause == causes.NotReady && strings.Contains(r.Message, "its image is changed in place")
		})
		time.Sleep(10 * time.Second)
		n.kill() // after the signal
		n.run()
		n.wantLast("not ready while it ends", func(r records.Report) bool { return !r.Ready })
		time.Sleep(21 * time.Second) // the grace does not begin anew
		n.wantDone(7)
		n.wantReady()
		p.want(t, "Start db@0s", "db ok@0s", "db ok done@0s", "probe db@0s",
			"db sleep@0s", "db sleep done@4s", "signal db, @4s", "probe db@10s", "signal db, @30s", "Start db@30s", "db ok@30s", "db ok done@30s", "probe db@30s")
	})
}

func TestAnEndThatWasBegunGoesOnWhenTheOrderIsTakenBack(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(c runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		acts := n.acts()
		n.w.Tell(with(life(5, records.GoalRun), changeTo(7, image("2"))))
		n.wantLast("not ready", func(r records.Report) bool { return !r.Ready })
		n.w.Tell(with(life(5, records.GoalRun), changeTo(8, image("1"))))
		n.wantLast("not done, for it ends", func(r records.Report) bool { return !r.Ready && r.Change.ID == at(8) && !r.Change.Done })
		time.Sleep(31 * time.Second)
		n.wantDone(8)
		n.wantReady()
		wantActs(t, "told", acts(), "Signal db", "Signal db", "Remove db", "Create db", "Start db")
		n.wantImages("img:1")
	})
}
