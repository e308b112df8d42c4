package worker

import (
	"context"
	"errors"
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

func TestAContainerIsProbedWhenItHasAnyProbe(t *testing.T) {
	cases := []struct {
		name   string
		probes func(*spec.Container)
		probed bool
	}{
		{"none", func(*spec.Container) {}, false},
		{"startup", func(c *spec.Container) { c.StartupProbe = &spec.Probe{} }, true},
		{"readiness", func(c *spec.Container) { c.ReadinessProbe = &spec.Probe{} }, true},
		{"liveness", func(c *spec.Container) { c.LivenessProbe = &spec.Probe{} }, true},
	}
	for _, c := range cases {
		for _, prober := range []*tellProber{{}, nil} {
			scenario(t, func(t *testing.T, n *node) {
				if prober != nil {
					n.prober = prober
				}
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { c.probes(&l.Template.Spec.Containers[0]) }))
				r := n.last()
				if ready := !c.probed || prober == nil; r.Ready != ready || r.Cause != "" {
					t.Errorf("%s, with a prober %v: ready %v, cause %q", c.name, prober != nil, r.Ready, r.Cause)
				}
			})
		}
	}
}

func TestAContainerThatWasGivenUpStaysGivenUp(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		p := &tellProber{now: probe.Health{Started: true, Ready: true}}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		n.wantReady()
		p.say(probe.Health{Started: true, Failed: true, Message: "liveness: exit 1"})
		p.say(probe.Health{Started: true, Ready: true})
		n.wantCause(causes.Unhealthy, "container db: liveness: exit 1")
		time.Sleep(31 * time.Second)
		n.wantStarts(tok(5), 2)
		n.wantReady()
	})
}

// The word comes while the worker looks at the container and finds that it has ended.
func TestALateWordOfAProbeMakesNothingReady(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := &tellProber{now: probe.Health{Started: true}}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		n.wantStarts(tok(5), 1)
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantStarts(tok(5), 2)
		late := false
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Status" && !late {
				late = true
				p.tell(probe.Health{Started: true, Ready: true})
			}
			return nil
		})
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantCause("CrashLoop", "exited with code 1")
		time.Sleep(time.Minute)
		n.wantStarts(tok(5), 3)
		if r := n.last(); !late || r.Ready || r.ReadyOnce {
			t.Errorf("late %v; got %+v", late, r)
		}
	})
}

func TestAReadyContainerHasNoCauseWhateverItsProbeSays(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.prober = &tellProber{now: probe.Health{Started: true, Ready: true, Message: "took 900 ms"}}
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		if r := n.wantReady(); r.Containers[0].Cause != "" {
			t.Errorf("got %+v", r.Containers[0])
		}
	})
}

// sideProber lets the test speak for the container named side, and says nothing of others.
type sideProber struct{ tellProber }

func (p *sideProber) Probe(ctx context.Context, t probe.Target, tell func(probe.Health)) {
	if t.ID.Name == "side" {
		p.target, p.tell = t, tell
	}
	<-ctx.Done()
}

// twoContainers is a life with a second container, named side, that is like the first.
func twoContainers(l *records.Life) {
	side := l.Template.Spec.Containers[0]
	side.Name, side.VolumeMounts = "side", nil
	l.Template.Spec.Containers = append(l.Template.Spec.Containers, side)
}

func TestTheNextAgentKnowsWhatProbesSaidLast(t *testing.T) {
	started, ready := probe.Health{Started: true}, probe.Health{Started: true, Ready: true}
	for _, said := range [][]probe.Health{{started}, {started, ready}, {ready, started}} {
		scenario(t, func(t *testing.T, n *node) {
			p := &sideProber{}
			n.prober = p
			n.run()
			n.w.Tell(with(with(life(5, records.GoalRun), probed), twoContainers))
			n.wantLast("running", func(r records.Report) bool { return r.Phase == records.PhaseRunning && !r.Ready })
			for _, h := range said {
				p.say(h)
				synctest.Wait()
			}
			n.kill()
			n.run()
			synctest.Wait()
			if want := said[len(said)-1]; !p.target.Adopted || p.target.Health != want {
				t.Errorf("adopted %v with %+v, want %+v", p.target.Adopted, p.target.Health, want)
			}
		})
	}
}

func TestALifeThatIsOverIsNotProbed(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{Unkillable: true, IgnoreTerm: true} })
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		n.wantReady()
		must(t, n.ledger.CloseToken(db0, tok(5), causes.DeadlinePassed))
		n.kill()
		p := &silentProber{}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		time.Sleep(time.Minute)
		if p.target.ID == cid {
			t.Error("it is probed")
		}
	})
}

// A watch is only a hint: without one the containers are looked at all the same.
func TestAWatchThatFailsBeginsAnewAndDoesNotSpin(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		calls := n.count(func(c fakert.Call) error {
			if c.Op == "Wait" {
				return errors.New("no events")
			}
			return nil
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		time.Sleep(10 * time.Second)
		n.wantReady()
		if got := calls.of("Wait"); got < 10 || got > 51 {
			t.Errorf("watched %d times in ten seconds", got)
		}
		n.host.OnCall(nil)
		time.Sleep(time.Second)
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantStarts(tok(5), 2)
	})
}
