package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// TestAProbesGraceTakesThePlaceOfTheTemplates: as Kubernetes' setTerminationGracePeriod, for the probe that
// ended the container, and not when the member is being stopped.
func TestAProbesGraceTakesThePlaceOfTheTemplates(t *testing.T) {
	five := int64(5)
	probes := func(l *records.Life) {
		l.Template.Spec.Containers[0].LivenessProbe = &spec.Probe{TerminationGracePeriodSeconds: &five}
		l.Template.Spec.Containers[0].StartupProbe = &spec.Probe{}
	}
	for _, tt := range []struct {
		by    probe.Kind
		grace time.Duration
	}{{probe.Liveness, 5 * time.Second}, {probe.Startup, 30 * time.Second}} {
		scenario(t, func(t *testing.T, n *node) {
			n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
			p := &tellProber{now: probe.Health{Started: true, Ready: true}}
			n.prober = p
			n.run()
			n.w.Tell(with(life(5, records.GoalRun), probes))
			n.wantReady()
			p.say(probe.Health{Started: true, Failed: true, By: tt.by, Message: "exit 1"})
			time.Sleep(tt.grace - 100*time.Millisecond)
			n.wantStarts(tok(5), 1)
			time.Sleep(200 * time.Millisecond)
			n.wantStarts(tok(5), 2)
		})
	}
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		n.prober = &tellProber{now: probe.Health{Started: true, Ready: true}}
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probes))
		n.wantReady()
		n.w.Tell(with(life(5, records.GoalStop), probes))
		time.Sleep(29 * time.Second)
		n.wantLast("stopping", func(r records.Report) bool { return r.Phase == records.PhaseStopping })
		time.Sleep(2 * time.Second)
		n.wantStopped(tok(5))
	})
}

// toldAndHooked runs the hooks of another prober.
type toldAndHooked struct {
	*tellProber
	hooks *hookProber
}

func (p toldAndHooked) Order(ctx context.Context, t probe.Target, h spec.MemberHook, env []string) error {
	return p.hooks.Order(ctx, t, h, env)
}

func (p toldAndHooked) Hook(ctx context.Context, t probe.Target, h spec.Hook) error {
	return p.hooks.Hook(ctx, t, h)
}

// TestAPreStopHookHasTheGraceOfItsProbe: also where that of the template is 0, with which none is run.
func TestAPreStopHookHasTheGraceOfItsProbe(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		five := int64(5)
		p := hookNode(n)
		told := &tellProber{now: probe.Health{Started: true, Ready: true}}
		n.prober = toldAndHooked{told, p}
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: sleep(2)}), func(l *records.Life) {
			l.Member.GraceSeconds = 0
			l.Template.Spec.Containers[0].LivenessProbe = &spec.Probe{TerminationGracePeriodSeconds: &five}
		}))
		n.wantReady()
		told.say(probe.Health{Started: true, Failed: true, By: probe.Liveness, Message: "exit 1"})
		time.Sleep(3 * time.Second)
		p.want(t, "Start db@0s", "db sleep@0s", "db sleep done@2s", "signal db, @2s", "Start db@2s")
	})
}

// TestTheStopSignalOfTheTemplateComesBeforeThatOfTheImage: as in Kubernetes.
func TestTheStopSignalOfTheTemplateComesBeforeThatOfTheImage(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{StopSignal: 3} })
		signal := "SIGUSR1"
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), hooked(spec.Lifecycle{StopSignal: &signal})))
		n.wantReady()
		ctr := n.w.container("db")
		if got := n.w.stopSignal("db", ctr); got != 10 {
			t.Errorf("signal %d, want SIGUSR1", got)
		}
		n.w.life.Template.Spec.Containers[0].Lifecycle = nil
		if got := n.w.stopSignal("db", ctr); got != 3 {
			t.Errorf("signal %d, want that of the image", got)
		}
		ctr.status.StopSignal = 0
		if got := n.w.stopSignal("db", ctr); got != sigterm {
			t.Errorf("signal %d, want SIGTERM", got)
		}
	})
}

// TestAHostnameThatIsTooLongWaitsAndSaysSo: Kubernetes' "Failed to construct FQDN"; nothing is cut off.
func TestAHostnameThatIsTooLongWaitsAndSaysSo(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		yes := true
		n.run()
		l := with(life(5, records.GoalRun), func(l *records.Life) {
			l.Template.Spec.SetHostnameAsFQDN, l.Domain = &yes, strings.Repeat("a", 64-len("db-0.db.default.svc."))
		})
		n.w.Tell(with(l, func(l *records.Life) { l.Domain += "a" }))
		r := n.last()
		if r.Phase != records.PhasePreparing || !strings.Contains(r.Message, "has 65 characters, the maximum of a hostname is 64") {
			t.Errorf("got %+v", r)
		}
		n.w.Tell(stop(life(5, records.GoalRun)))
		n.wantStopped(tok(5))
		l.Member.Token = tok(6)
		n.w.Tell(l)
		n.wantReady()
		boxes, err := n.host.Sandboxes(t.Context())
		if err != nil || len(boxes) != 1 || boxes[0].Hostname != l.FQDN() || len(boxes[0].Hostname) != 64 {
			t.Errorf("the sandboxes are %+v, %v", boxes, err)
		}
	})
}

// TestAHostThatGoesDownEndsItsLives: with the grace that is left of its time, whatever a server said or says later.
func TestAHostThatGoesDownEndsItsLives(t *testing.T) {
	stubborn := func(n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
	}
	stopping := func(r records.Report) bool { return r.Phase == records.PhaseStopping }
	scenario(t, func(t *testing.T, n *node) {
		stubborn(n)
		n.w.StopHere(records.ReasonNodeShutdown, time.Now().Add(10*time.Second))
		n.w.Tell(life(5, records.GoalRun))
		time.Sleep(9 * time.Second)
		n.wantLast("stopping", stopping)
		time.Sleep(2 * time.Second)
		n.wantStopped(tok(5))
		n.w.Tell(life(5, records.GoalRun))
		n.wantStarts(tok(5), 1)
	})
	scenario(t, func(t *testing.T, n *node) { // one that stops already
		stubborn(n)
		n.w.Tell(life(5, records.GoalStop))
		time.Sleep(time.Second)
		n.w.StopHere(records.ReasonNodeShutdown, time.Now().Add(10*time.Second))
		time.Sleep(9 * time.Second)
		n.wantLast("stopping", stopping)
		time.Sleep(2 * time.Second)
		n.wantStopped(tok(5))
	})
	scenario(t, func(t *testing.T, n *node) { // one that has not begun
		n.run()
		n.host.OnPull(func(string, string) error { return runtime.ErrImageMissing })
		n.w.Tell(life(5, records.GoalRun))
		time.Sleep(time.Second)
		n.w.StopHere(records.ReasonNodeShutdown, time.Now().Add(10*time.Second))
		n.wantStopped(tok(5))
	})
}
