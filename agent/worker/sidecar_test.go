package worker

import (
	"context"
	"slices"
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

// sidecarProber says of each container what health has for it.
type sidecarProber struct {
	noHooks
	health map[string]probe.Health
	tell   map[string]func(probe.Health)
}

func (p *sidecarProber) Probe(ctx context.Context, t probe.Target, tell func(probe.Health)) {
	p.tell[t.ID.Name] = tell
	tell(p.health[t.ID.Name])
	<-ctx.Done()
}

func TestASidecarHoldsUpTheNextUntilItHasStarted(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := &sidecarProber{health: map[string]probe.Health{"side": {Message: "startup probe: 503"}}, tell: map[string]func(probe.Health){}}
		n.prober = p
		n.completes(zero)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), initialized, func(l *records.Life) {
			l.Template.Spec.InitContainers[1].StartupProbe = &spec.Probe{}
			l.Template.Spec.InitContainers[1].ReadinessProbe = &spec.Probe{}
		}))
		n.wantCause(causes.Initializing, "sidecar side: startup probe: 503")
		n.wantStarted("one", "side")
		p.tell["side"](probe.Health{Started: true, Message: "readiness probe: 503"})
		n.wantStarted(inOrder...)
		n.wantCause(causes.NotReady, "sidecar side: readiness probe: 503") // it counts for the member
		p.tell["side"](probe.Health{Started: true, Ready: true})
		n.wantReady()
		n.host.Exit(ctrID("side"), runtime.Exit{}) // it is started again, whatever its code, and holds up nothing
		synctest.Wait()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantStarted(append(inOrder, "side", "db")...)
		n.wantCause(causes.NotReady, "sidecar side: startup probe: 503")
	})
}

// signals are those that the host was asked to send, as "container number".
func (n *node) signals() *[]string {
	var out []string
	n.host.OnCall(func(_ context.Context, c fakert.Call) error {
		if c.Op == "Signal" {
			out = append(out, c.Name)
		}
		return nil
	})
	return &out
}

func twoSidecars(l *records.Life) {
	initialized(l)
	always := spec.RestartAlways
	l.Template.Spec.InitContainers[2].RestartPolicy = &always
}

func TestSidecarsAreStoppedAfterTheContainersInReverseOrder(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(c runtime.Container) fakert.Behaviour {
			return fakert.Behaviour{Exits: c.ID.Name == "one", IgnoreTerm: c.ID.Name == "db" || c.ID.Name == "two"}
		})
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twoSidecars))
		n.wantReady()
		signals := n.signals()
		want := func(names ...string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if !slices.Equal(*signals, names) {
				t.Fatalf("signals went to %v, want %v", *signals, names)
			}
		}
		n.w.Tell(with(life(5, records.GoalStop), twoSidecars))
		want("db")
		n.host.Exit(cid, runtime.Exit{})
		want("db", "two")
		n.kill() // the next agent does not ask again
		n.run()
		want("db", "two")
		n.host.Exit(ctrID("two"), runtime.Exit{})
		want("db", "two", "side")
		n.wantStopped(tok(5))
	})
}

func TestASidecarHasAMomentAfterTheGrace(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(c runtime.Container) fakert.Behaviour {
			return fakert.Behaviour{Exits: c.ID.Name == "one", IgnoreTerm: true}
		})
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twoSidecars))
		n.wantReady()
		signals := n.signals()
		n.w.Tell(with(life(5, records.GoalStop), twoSidecars))
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if got := strings.Join(*signals, " "); got != "db db two side" { // SIGKILL for db, when its grace is over
			t.Fatalf("signals went to %s", got)
		}
		if c := n.report("db"); c.State != "Exited" {
			t.Errorf("the container outlasts its grace: %+v", c)
		}
		if c := n.report("side"); c.State != "Running" {
			t.Errorf("the sidecar has no time: %+v", c)
		}
		time.Sleep(2 * time.Second)
		n.wantStopped(tok(5))
	})
}

// Hooks of a sidecar: nothing after it begins before its postStart hook has returned; its preStop hook
// runs with those of the containers, and the signal after it waits for its turn.
func TestASidecarsHooks(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		n.host.OnStart(func(c runtime.Container) fakert.Behaviour {
			return fakert.Behaviour{Exits: c.ID.Name == "one" || c.ID.Name == "two", IgnoreTerm: c.ID.Name == "db"}
		})
		hooks := func(l *records.Life) {
			initialized(l)
			l.Template.Spec.InitContainers[1].Lifecycle = &spec.Lifecycle{PostStart: sleep(3), PreStop: sleep(4)}
		}
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), hooks))
		time.Sleep(10 * time.Second)
		n.wantReady()
		p.wantButProbes(t, "Start one@0s", "Start side@0s", "side sleep@0s", "side sleep done@3s", "Start two@3s", "Start db@3s")
		n.w.Tell(with(life(5, records.GoalStop), hooks))
		time.Sleep(10 * time.Second)
		n.host.Exit(cid, runtime.Exit{})
		time.Sleep(time.Second)
		p.wantButProbes(t, "signal db, ScaleDown@0s", "side sleep@0s", "side sleep done@4s", "signal side, ScaleDown@10s")
		n.wantStopped(tok(5))
	})
}
