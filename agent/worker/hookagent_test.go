package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// The agent is killed at any moment of a stop: a hook that it did not see return is run again while
// the grace lasts, one that returned is not, and the grace does not begin anew.
func TestAHookOutlastsTheAgent(t *testing.T) {
	ignores := func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} }
	cases := []struct {
		name       string
		hook       *spec.Hook
		kill, away time.Duration // when the agent is killed, and for how long
		want       []string
	}{
		{"in the middle of the hook", sleep(10), 4 * time.Second, 2 * time.Second,
			[]string{"db sleep@0s", "db sleep broken off@4s", "db sleep@6s", "db sleep done@16s", "signal db, ScaleDown@16s", "KillAll@30s"}},
		{"after the signal", sleep(10), 12 * time.Second, 2 * time.Second,
			[]string{"db sleep@0s", "db sleep done@10s", "signal db, ScaleDown@10s", "KillAll@30s"}},
		{"until the grace is over", sleep(10), 4 * time.Second, time.Minute,
			[]string{"db sleep@0s", "db sleep broken off@4s", "signal db, ScaleDown@1m4s", "KillAll@1m6s"}},
		{"with little of it left", hookOf("hang"), 4 * time.Second, 20 * time.Second,
			[]string{"db hang@0s", "db hang broken off@4s", "db hang@24s", "signal db, ScaleDown@30s", "db hang broken off@30s", "KillAll@32s"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.host.OnStart(ignores)
				p := hookNode(n)
				l := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: c.hook}))
				n.startHooked(p, l)
				n.w.Tell(stop(l))
				time.Sleep(c.kill)
				n.kill()
				time.Sleep(c.away)
				n.run()
				time.Sleep(2 * time.Minute)
				p.wantButProbes(t, c.want...)
				n.wantStopped(tok(5))
			})
		})
	}
}

// A host that goes down does not wait for a hook; its container has leastGrace after the signal none the less.
func TestAHookThatLastsUntilTheHostGoesDown(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		p := hookNode(n)
		n.startHooked(p, with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: hookOf("hang")})))
		by := time.Now().Add(10 * time.Second)
		for range 60 {
			n.w.StopHere(records.ReasonNodeShutdown, by)
			time.Sleep(200 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		p.wantButProbes(t, "db hang@0s", "signal db, NodeShutdown@10s", "db hang broken off@10s", "KillAll@12s")
		n.wantStopped(tok(5))
	})
}

// What returned is known although the agent is killed before it has signalled.
func TestAHookThatReturnedIsNotRunAgain(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		l := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: sleep(3)}))
		n.startHooked(p, l)
		n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
			if c.Op == "Signal" {
				<-ctx.Done() // the agent dies
				return ctx.Err()
			}
			return nil
		})
		n.w.Tell(stop(l))
		time.Sleep(4 * time.Second)
		n.kill()
		n.host.OnCall(nil)
		n.run()
		time.Sleep(time.Second)
		p.wantButProbes(t, "db sleep@0s", "db sleep done@3s")
		n.wantStopped(tok(5))
	})
}

// Kubernetes: a container that a probe gave up has its preStop hook run, within the grace.
func TestAPreStopHookRunsWhenAProbeGivesAContainerUp(t *testing.T) {
	for _, c := range []struct {
		hook *spec.Hook
		want []string
	}{
		{sleep(5), []string{"db sleep@0s", "db sleep done@5s", "signal db, @5s", "signal db, @30s"}},
		{hookOf("hang"), []string{"db hang@0s", "signal db, @30s", "db hang broken off@30s", "signal db, @32s"}}, // the last one is SIGKILL
	} {
		scenario(t, func(t *testing.T, n *node) {
			n.host.OnStart(func(c runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
			p := hookNode(n)
			fails := &failingProber{hookProber: p}
			n.prober = fails
			l := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: c.hook}))
			n.startHooked(p, l)
			fails.tell(probe.Health{Started: true, Failed: true, Message: "liveness: exit 1"})
			time.Sleep(29 * time.Second)
			n.wantCause(causes.Unhealthy, "liveness: exit 1")
			time.Sleep(31 * time.Second)
			p.wantButProbes(t, append(c.want, "Start db"+c.want[3][len("signal db, "):])...)
			n.wantReady()
			n.wantStarts(tok(5), 2)
		})
	}
}

// failingProber lets the test say how the container is.
type failingProber struct {
	*hookProber
	tell func(probe.Health)
}

func (p *failingProber) Probe(ctx context.Context, _ probe.Target, tell func(probe.Health)) {
	p.tell = tell
	tell(probe.Health{Started: true, Ready: true})
	<-ctx.Done()
}

// A guarded life that misses its deadline is killed at once, whatever its hook does.
func TestADeadlineDoesNotWaitForAHook(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		g := &handGuard{ledger: func() error { return n.ledger.CloseToken(db0, tok(5), causes.DeadlinePassed) }}
		n.guard = g
		l := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: hookOf("hang")}))
		l.Member.Bound = time.Minute
		g.state = Guarded{Recorded: true, Watched: true}
		n.startHooked(p, l)
		n.w.Tell(stop(l))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		g.state.Passed = true
		n.w.Expired()
		p.wantButProbes(t, "db hang@0s", "KillAll@3s", "db hang broken off@3s")
		n.wantStopped(tok(5))
	})
}

// handGuard is a Guard whose word the test gives.
type handGuard struct {
	state  Guarded
	ledger func() error
}

func (g *handGuard) Begin(spec.Identity, spec.Token, time.Duration) error  { return nil }
func (g *handGuard) Look(spec.Identity, spec.Token, time.Duration) Guarded { return g.state }
func (g *handGuard) Expire(spec.Identity, spec.Token) error                { return g.ledger() }
func (g *handGuard) Forget(spec.Identity, spec.Token) error                { return nil }
func (g *handGuard) Record(spec.Identity) string                           { return "" }

// An end that did not come, for the agent died and the container did well again, leaves the hook to the next.
func TestEachEndHasItsPreStopHook(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		p := hookNode(n)
		fails := &failingProber{hookProber: p}
		n.prober = fails
		l := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: sleep(1)}))
		n.startHooked(p, l)
		fails.tell(probe.Health{Started: true, Failed: true, Message: "liveness: exit 1"})
		time.Sleep(2 * time.Second)
		n.kill()
		n.run()
		time.Sleep(time.Minute)
		n.wantReady()
		n.w.Tell(stop(l))
		time.Sleep(time.Minute)
		p.wantButProbes(t, "db sleep@0s", "db sleep done@1s", "signal db, @1s",
			"db sleep@1m2s", "db sleep done@1m3s", "signal db, ScaleDown@1m3s", "KillAll@1m32s")
		n.wantStopped(tok(5))
	})
}

// Kubernetes: a container is asked to end with its image's STOPSIGNAL.
func TestAContainerIsAskedToEndWithTheSignalOfItsImage(t *testing.T) {
	const sigint = 2
	ends := map[string]func(*node, *failingProber){
		"by an order": func(n *node, _ *failingProber) { n.w.Tell(life(5, records.GoalStop)) },
		"after a hook": func(n *node, _ *failingProber) {
			n.w.Tell(stop(with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: sleep(1)}))))
		},
		"given up": func(_ *node, p *failingProber) { p.tell(probe.Health{Started: true, Failed: true}) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{StopSignal: sigint} })
				p := &failingProber{hookProber: hookNode(n)}
				n.prober = p
				n.startHooked(p.hookProber, with(life(5, records.GoalRun), probed))
				end(n, p)
				time.Sleep(2 * time.Second)
				if got := n.host.RunningTokens(db0); name != "given up" && len(got) != 0 {
					t.Errorf("it runs on")
				}
				n.wantStarts(tok(5), map[bool]int{true: 2, false: 1}[name == "given up"])
			})
		})
	}
}
