package worker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Kubernetes: nothing is probed, and nothing is ready, until the postStart hook has returned.
func TestAPostStartHookHoldsReadiness(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), hooked(spec.Lifecycle{PostStart: sleep(20)})))
		time.Sleep(19 * time.Second)
		n.wantCause(causes.NotReady, "container db: waiting for its postStart hook")
		time.Sleep(2 * time.Second)
		n.wantReady()
		p.want(t, "Start db@0s", "db sleep@0s", "db sleep done@20s", "probe db@20s")
	})
}

// Also without any probe.
func TestAContainerWithoutProbesIsReadyAfterItsPostStartHook(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		hookNode(n)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) {
			l.Template.Spec.Containers[0].Lifecycle = &spec.Lifecycle{PostStart: sleep(20)}
		}))
		time.Sleep(19 * time.Second)
		n.wantLast("not ready", func(r records.Report) bool { return !r.Ready && !r.ReadyOnce })
		time.Sleep(2 * time.Second)
		n.wantReady()
	})
}

// Kubernetes: a container starts when the hooks of those before it have returned.
func TestThePostStartHookOfAContainerHoldsUpTheNext(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twoContainers, hooked(spec.Lifecycle{PostStart: sleep(5)})))
		time.Sleep(4 * time.Second)
		n.wantCause(causes.NotReady, "container db: its postStart hook has not returned")
		time.Sleep(2 * time.Second)
		n.wantReady()
		p.wantButProbes(t, "Start db@0s", "db sleep@0s", "db sleep done@5s", "Start side@5s")
	})
}

// Kubernetes: a postStart hook that fails has its container stopped, with its preStop hook, and
// started again with back-off.
func TestAPostStartHookThatFailsEndsItsContainer(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), hooked(spec.Lifecycle{PostStart: hookOf("fail"), PreStop: sleep(1)})))
		time.Sleep(30 * time.Second)
		n.wantLast("a back-off", func(r records.Report) bool {
			return !r.Ready && !r.ReadyOnce && r.Cause == causes.FailedPostStartHook && r.Containers[0].Restarts == 3
		})
		once := func(at ...string) []string {
			return []string{"Start db" + at[0], "db fail" + at[0], "db fail failed" + at[0], "db sleep" + at[0], "db sleep done" + at[1], "signal db, " + at[1]}
		}
		var want []string
		want = append(want, once("@0s", "@1s")...)
		want = append(want, once("@1s", "@2s")...)
		want = append(want, once("@12s", "@13s")...)
		p.want(t, want...)
	})
}

// An agent that did not see the hook return runs it again; one that is told that it did does not.
func TestAPostStartHookOutlastsTheAgent(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), hooked(spec.Lifecycle{PostStart: sleep(10)})))
		time.Sleep(4 * time.Second)
		n.kill()
		n.run()
		time.Sleep(9 * time.Second)
		n.wantLast("not ready", func(r records.Report) bool { return !r.Ready })
		time.Sleep(2 * time.Second)
		n.wantReady()
		n.kill()
		n.run()
		time.Sleep(time.Minute)
		p.want(t, "Start db@0s", "db sleep@0s", "db sleep broken off@4s", "db sleep@4s", "db sleep done@14s", "probe db@14s", "probe db@15s")
		n.wantStarts(tok(5), 1)
	})
}

func TestAStopBreaksOffAPostStartHook(t *testing.T) {
	for _, preStop := range []*spec.Hook{nil, sleep(1)} {
		scenario(t, func(t *testing.T, n *node) {
			p := hookNode(n)
			l := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PostStart: hookOf("hang"), PreStop: preStop}))
			n.run()
			n.w.Tell(l)
			time.Sleep(time.Second)
			n.w.Tell(stop(l))
			time.Sleep(5 * time.Second)
			n.wantStopped(tok(5))
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			if !slices.Contains(p.seen, "db hang broken off@1s") {
				t.Errorf("got %v", p.seen)
			}
		})
	}
}

// A hook fails when its container ends: that end is what is reported.
func TestAContainerThatEndsDuringItsPostStartHookIsReportedAsEnded(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		p.run = func(context.Context, probe.Target, spec.Hook) error {
			time.Sleep(time.Second)
			n.host.Exit(cid, runtime.Exit{Code: 7})
			return errors.New("exit code 137")
		}
		n.change = func(c *Config) { c.Runtime = unwatched{c.Runtime} }
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), hooked(spec.Lifecycle{PostStart: hookOf("warm")})))
		time.Sleep(1500 * time.Millisecond)
		n.wantStarts(tok(5), 2) // the first restart is at once
		if r := n.last(); r.Containers[0].ExitCode == nil || *r.Containers[0].ExitCode != 7 || r.Cause == causes.FailedPostStartHook {
			t.Errorf("got %+v", r)
		}
	})
}

// unwatched is a runtime that never says by itself that a container has ended.
type unwatched struct{ runtime.Runtime }

func (unwatched) Wait(ctx context.Context, _ runtime.ContainerID) (runtime.Exit, error) {
	<-ctx.Done()
	return runtime.Exit{}, ctx.Err()
}
