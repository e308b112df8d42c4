package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// hookProber writes down, with their times, which hooks were begun and how they ended, beside the
// signals and starts of the host. Probes say ready.
type hookProber struct {
	mu    sync.Mutex
	begun time.Time
	seen  []string
	run   func(ctx context.Context, t probe.Target, h spec.Hook) error
}

func (p *hookProber) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, fmt.Sprintf(format, args...)+fmt.Sprintf("@%v", time.Since(p.begun)))
}

func (p *hookProber) Probe(ctx context.Context, t probe.Target, tell func(probe.Health)) {
	p.note("probe %s", t.ID.Name)
	tell(probe.Health{Started: true, Ready: true})
	<-ctx.Done()
}

// Hook runs a sleep as the prober does, and a command by its first word.
func (p *hookProber) Hook(ctx context.Context, t probe.Target, h spec.Hook) error {
	word := "sleep"
	if h.Exec != nil {
		word = h.Exec.Command[0]
	}
	p.note("%s %s", t.ID.Name, word)
	err := p.run(ctx, t, h)
	switch {
	case ctx.Err() != nil:
		p.note("%s %s broken off", t.ID.Name, word)
		return ctx.Err()
	case err != nil:
		p.note("%s %s failed", t.ID.Name, word)
	default:
		p.note("%s %s done", t.ID.Name, word)
	}
	return err
}

// Order runs an ordered hook as a command, with its variables.
func (p *hookProber) Order(ctx context.Context, t probe.Target, h spec.MemberHook, env []string) error {
	p.note("ordered %s", strings.Join(env, " "))
	return p.Hook(ctx, t, spec.Hook{Exec: h.Exec})
}

// doHook sleeps the seconds of a sleep; commands fail, hang or succeed as they are called.
func doHook(ctx context.Context, t probe.Target, h spec.Hook) error {
	switch {
	case h.Sleep != nil:
		return probe.New(probe.Config{}).Hook(ctx, t, h)
	case h.Exec.Command[0] == "hang":
		<-ctx.Done()
		return ctx.Err()
	case h.Exec.Command[0] == "fail":
		return errors.New("exit code 3")
	}
	return nil
}

func sleep(seconds int64) *spec.Hook { return &spec.Hook{Sleep: &spec.SleepAction{Seconds: seconds}} }
func hookOf(word string) *spec.Hook {
	return &spec.Hook{Exec: &spec.ExecAction{Command: []string{word}}}
}

// hooked is a life whose container has these hooks, and a readiness probe.
func hooked(l spec.Lifecycle) func(*records.Life) {
	return func(life *records.Life) {
		life.Template.Spec.Containers[0].Lifecycle = &l
		life.Template.Spec.Containers[0].ReadinessProbe = &spec.Probe{}
	}
}

// hookNode is a node whose events are written down from the start of the test.
func hookNode(n *node) *hookProber {
	p := &hookProber{begun: time.Now(), run: doHook}
	n.prober = p
	n.host.OnCall(func(_ context.Context, c fakert.Call) error {
		switch c.Op {
		case "Signal":
			p.note("signal %s, %s", c.Name, strings.TrimSpace(n.steadFile(files.TerminationFile)))
		case "Start", "KillAll":
			p.note("%s", strings.TrimSpace(c.Op+" "+c.Name))
		}
		return nil
	})
	return p
}

func (p *hookProber) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.seen, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(p.seen, "\n  "), strings.Join(want, "\n  "))
	}
	p.seen, p.begun = nil, time.Now()
}

// wantButProbes is want without the probes' begin.
func (p *hookProber) wantButProbes(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	p.seen = slices.DeleteFunc(p.seen, func(s string) bool { return strings.HasPrefix(s, "probe ") })
	p.mu.Unlock()
	p.want(t, want...)
}

// startHooked runs a life and forgets what was seen until it was ready.
func (n *node) startHooked(p *hookProber, l records.Life) {
	n.t.Helper()
	n.run()
	n.w.Tell(l)
	n.wantReady()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.begun = nil, time.Now()
}

func stop(l records.Life) records.Life {
	l.Member.Goal, l.Member.StopReason = records.GoalStop, records.ReasonScaleDown
	return l
}

// Kubernetes: the preStop hook runs before the signal, its time is part of the grace, and at least
// 2 s are left after it.
func TestAPreStopHookComesBeforeTheSignalWithinTheGrace(t *testing.T) {
	ignores := func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} }
	cases := []struct {
		name  string
		hook  *spec.Hook
		grace int64
		want  []string
	}{
		{"it returns", sleep(10), 30, []string{"db sleep@0s", "db sleep done@10s", "signal db, ScaleDown@10s", "KillAll@30s"}},
		{"it returns at once", hookOf("leave"), 30, []string{"db leave@0s", "db leave done@0s", "signal db, ScaleDown@0s", "KillAll@30s"}},
		{"it fails", hookOf("fail"), 30, []string{"db fail@0s", "db fail failed@0s", "signal db, ScaleDown@0s", "KillAll@30s"}},
		{"it returns with one second left", sleep(29), 30, []string{"db sleep@0s", "db sleep done@29s", "signal db, ScaleDown@29s", "KillAll@31s"}},
		{"it hangs", hookOf("hang"), 30, []string{"db hang@0s", "signal db, ScaleDown@30s", "db hang broken off@30s", "KillAll@32s"}},
		{"the grace is one second", hookOf("hang"), 1, []string{"db hang@0s", "signal db, ScaleDown@1s", "db hang broken off@1s", "KillAll@3s"}},
		{"there is no grace", sleep(0), 0, []string{"signal db, ScaleDown@0s", "KillAll@0s"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.host.OnStart(ignores)
				p := hookNode(n)
				l := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: c.hook}))
				l.Member.GraceSeconds = c.grace
				n.startHooked(p, l)
				n.w.Tell(stop(l))
				time.Sleep(time.Minute)
				p.want(t, c.want...)
				n.wantStopped(tok(5))
			})
		})
	}
}

func TestAPreStopHookThatFailsIsReported(t *testing.T) {
	for word, c := range map[string]struct {
		after time.Duration
		want  string
	}{
		"fail": {time.Second, "container db: its preStop hook failed: exit code 3"},
		"hang": {31 * time.Second, "container db: its preStop hook failed: it did not return within terminationGracePeriodSeconds"},
	} {
		scenario(t, func(t *testing.T, n *node) {
			n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
			p := hookNode(n)
			l := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: hookOf(word)}))
			n.startHooked(p, l)
			n.w.Tell(stop(l))
			time.Sleep(c.after)
			n.wantCause(causes.FailedPreStopHook, c.want)
			time.Sleep(30 * time.Second)
			n.wantStopped(tok(5))
		})
	}
}

// Kubernetes: each container's hook is its own; one without a hook is signalled at once.
func TestContainersWithoutAHookAreNotHeldUp(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		l := with(life(5, records.GoalRun), twoContainers, hooked(spec.Lifecycle{PreStop: sleep(5)}))
		n.startHooked(p, l)
		n.w.Tell(stop(l))
		time.Sleep(time.Minute)
		p.want(t, "signal side, ScaleDown@0s", "db sleep@0s", "db sleep done@5s", "signal db, ScaleDown@5s")
		n.wantStopped(tok(5))
	})
}

func TestNoPreStopHookOfAContainerThatHasEnded(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		l := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: hookOf("leave")}))
		n.startHooked(p, l)
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantStarts(tok(5), 2)
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantCause("CrashLoop", "exited with code 1")
		n.w.Tell(stop(l))
		time.Sleep(time.Minute)
		p.want(t, "Start db@0s", "probe db@0s")
		n.wantStopped(tok(5))
	})
}

// One that ends during its hook is over at once.
func TestAContainerThatEndsDuringItsHookIsNotWaitedFor(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		l := with(life(5, records.GoalRun), hooked(spec.Lifecycle{PreStop: hookOf("hang")}))
		n.startHooked(p, l)
		n.w.Tell(stop(l))
		time.Sleep(3 * time.Second)
		n.host.Exit(cid, runtime.Exit{Code: 0})
		p.want(t, "db hang@0s", "db hang broken off@3s")
		n.wantStopped(tok(5))
	})
}
