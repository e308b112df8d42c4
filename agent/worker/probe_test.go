package worker

import (
	"context"
	"strings"
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

// noHooks is a prober whose hooks return at once.
type noHooks struct{}

func (noHooks) Hook(context.Context, probe.Target, spec.Hook) error { return nil }

func (noHooks) Order(context.Context, probe.Target, spec.MemberHook, []string) error { return nil }

// tellProber says of every container what the test last said of it.
type tellProber struct {
	noHooks
	now    probe.Health
	target probe.Target
	tell   func(probe.Health)
}

func (p *tellProber) Probe(ctx context.Context, t probe.Target, tell func(probe.Health)) {
	p.target, p.tell = t, tell
	tell(p.now)
	<-ctx.Done()
}

func (p *tellProber) say(h probe.Health) {
	synctest.Wait()
	p.tell(h)
}

func probed(l *records.Life) {
	l.Template.Spec.Containers[0].ReadinessProbe = &spec.Probe{}
	l.Template.Spec.Containers[0].LivenessProbe = &spec.Probe{}
}

func TestReadinessGatesReady(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := &tellProber{now: probe.Health{Started: true, Message: "connection refused"}}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		n.wantLast("running and not ready", func(r records.Report) bool {
			return r.Phase == records.PhaseRunning && !r.Ready && r.Cause == causes.NotReady && strings.Contains(r.Message, "connection refused")
		})
		if p.target.Address != life(5, records.GoalRun).Member.Address || p.target.Adopted {
			t.Fatalf("target: got %+v", p.target)
		}
		p.say(probe.Health{Started: true, Ready: true})
		if r := n.wantReady(); r.Cause != "" {
			t.Fatalf("got %+v", r)
		}
		p.say(probe.Health{Started: true, Message: "slow"})
		n.wantLast("not ready", func(r records.Report) bool { return !r.Ready && r.Phase == records.PhaseRunning })
		n.wantStarts(tok(5), 1)
	})
}

func TestLivenessRestartsInPlace(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		scenario(t, func(t *testing.T, n *node) {
			n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: stubborn} })
			p := &tellProber{now: probe.Health{Started: true, Ready: true}}
			n.prober = p
			n.run()
			n.w.Tell(with(life(5, records.GoalRun), probed))
			n.wantReady()
			p.say(probe.Health{Started: true, Failed: true, Message: "liveness: exit 1"})
			if stubborn {
				n.wantLast("unhealthy", func(r records.Report) bool { return r.Cause == causes.Unhealthy && !r.Ready })
				n.wantStarts(tok(5), 1)
				time.Sleep(31 * time.Second)
			}
			if r := n.wantReady(); r.Containers[0].Restarts != 1 {
				t.Fatalf("got %+v", r)
			}
			n.wantStarts(tok(5), 2)
			if _, ok := n.host.Address(db0); !ok {
				t.Fatal("the address was lost")
			}
		})
	}
}
