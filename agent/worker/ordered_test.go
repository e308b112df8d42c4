package worker

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
)

// ordered is a life that is to run a hook: a command of that word, as order number.
func ordered(l records.Life, number int64, kind hooks.HookKind, word string) records.Life {
	l.Member.Hook = &hooks.HookOrder{
		ID: spec.Sequence{Epoch: 1, Rev: number}, Kind: kind,
		Hook: spec.MemberHook{Container: "db", Exec: &spec.ExecAction{Command: []string{word}}, TimeoutSeconds: 60},
	}
	if kind == hooks.Decommission {
		l.Member.StopReason = records.ReasonScaleDown
	}
	return l
}

func (n *node) wantHook(want hooks.HookResult) {
	n.t.Helper()
	n.wantLast("the hook", func(r records.Report) bool { return r.Hook == want && r.Ready })
}

// A hook that the server orders runs beside the containers until it succeeds; the member reads why first, and stays ready.
func TestAnOrderedHookRunsUntilItSucceeds(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		failures := 0
		p.run = func(context.Context, probe.Target, spec.Hook) error {
			p.note("reads %s", strings.TrimSpace(n.steadFile(files.TerminationFile)))
			failures++
			if failures <= 2 {
				return errors.New("exit code 1: two shards are left")
			}
			return nil
		}
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		n.w.Tell(ordered(l, 7, hooks.Decommission, "leave"))
		id := spec.Sequence{Epoch: 1, Rev: 7}
		synctest.Wait()
		n.wantHook(hooks.HookResult{ID: id, Failures: 1, Message: "exit code 1: two shards are left"})
		time.Sleep(time.Minute)
		n.wantHook(hooks.HookResult{ID: id, Done: true, Failures: 2, Overdue: true})
		p.want(t, "ordered STEAD_HOOK=decommission@0s", "db leave@0s", "reads ScaleDown@0s", "db leave failed@0s",
			"ordered STEAD_HOOK=decommission@500ms", "db leave@500ms", "reads ScaleDown@500ms", "db leave failed@500ms",
			"ordered STEAD_HOOK=decommission@1.5s", "db leave@1.5s", "reads ScaleDown@1.5s", "db leave done@1.5s")
		time.Sleep(time.Hour)
		p.want(t) // not again
		n.w.Tell(l)
		n.wantHook(hooks.HookResult{})
		if got := n.steadFile(files.TerminationFile); got != "" {
			t.Errorf("the order was taken back, and the member reads %q", got)
		}
	})
}

// Another order begins when what ran of the one before has ended: never two at a time. A stop waits for none.
func TestOneOrderedHookRunsAtATime(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		p.run = func(ctx context.Context, _ probe.Target, h spec.Hook) error {
			if h.Exec.Command[0] == "stay" {
				return nil
			}
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			p.note("left")
			return ctx.Err()
		}
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		n.w.Tell(ordered(l, 7, hooks.Decommission, "leave"))
		time.Sleep(10 * time.Second)
		n.w.Tell(ordered(l, 8, hooks.Abort, "stay"))
		time.Sleep(10 * time.Second)
		p.want(t, "ordered STEAD_HOOK=decommission@0s", "db leave@0s", "left@13s", "db leave broken off@13s",
			"ordered STEAD_HOOK=abort@13s", "db stay@13s", "db stay done@13s")
		n.wantHook(hooks.HookResult{ID: spec.Sequence{Epoch: 1, Rev: 8}, Done: true})
		n.w.Tell(ordered(l, 9, hooks.Decommission, "leave"))
		time.Sleep(time.Second)
		n.w.Tell(stop(l))
		time.Sleep(10 * time.Second)
		n.wantStopped(tok(5))
	})
}

// A run that takes longer than its time-out is broken off, and tried again.
func TestAnOrderedHookThatHangsIsBrokenOff(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		n.w.Tell(ordered(l, 7, hooks.Decommission, "hang"))
		time.Sleep(59 * time.Second)
		n.wantHook(hooks.HookResult{ID: spec.Sequence{Epoch: 1, Rev: 7}})
		time.Sleep(2 * time.Second)
		n.wantHook(hooks.HookResult{ID: spec.Sequence{Epoch: 1, Rev: 7}, Failures: 1, Overdue: true, Message: errLate.Error()})
		p.want(t, "ordered STEAD_HOOK=decommission@0s", "db hang@0s", "db hang broken off@1m0s",
			"ordered STEAD_HOOK=decommission@1m0.5s", "db hang@1m0.5s")
	})
}

// The agent is killed while a hook runs, or after it succeeded: it runs at least once, and not again when it is known to be done.
func TestAnOrderedHookOutlastsTheAgent(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		p.run = func(ctx context.Context, _ probe.Target, _ spec.Hook) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Second):
				return nil
			}
		}
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		order := ordered(l, 7, hooks.Forget, "gone")
		order.Member.Hook.Gone = &hooks.GoneMember{
			ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: 3}, Token: tok(4), Service: "db", Address: netip.MustParseAddr("10.88.0.9"),
		}
		n.w.Tell(order)
		time.Sleep(4 * time.Second)
		n.kill()
		n.run()
		time.Sleep(20 * time.Second)
		env := "ordered STEAD_HOOK=forget STEAD_GONE=db-3 STEAD_GONE_ORDINAL=3 STEAD_GONE_TOKEN=1.4 " +
			"STEAD_GONE_FQDN=db-3.db.default.svc.cluster.local STEAD_GONE_ADDRESS=10.88.0.9"
		p.wantButProbes(t, env+"@0s", "db gone@0s", "db gone broken off@4s", env+"@4s", "db gone@4s", "db gone done@14s")
		n.kill()
		n.run()
		n.w.Tell(order)
		time.Sleep(20 * time.Second)
		p.wantButProbes(t)
		n.wantHook(hooks.HookResult{ID: spec.Sequence{Epoch: 1, Rev: 7}, Done: true})
	})
}

// While its container does not run a hook waits, and its time goes on.
func TestAnOrderedHookWaitsForItsContainer(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.host.Exit(cid, runtime.Exit{Code: 1})
		synctest.Wait()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		synctest.Wait()
		n.w.Tell(ordered(l, 7, hooks.Decommission, "leave"))
		time.Sleep(5 * time.Second)
		if r := n.last(); r.Ready || r.Hook != (hooks.HookResult{ID: spec.Sequence{Epoch: 1, Rev: 7}}) {
			t.Errorf("while its container is down: %+v", r)
		}
		time.Sleep(time.Minute)
		n.wantHook(hooks.HookResult{ID: spec.Sequence{Epoch: 1, Rev: 7}, Done: true, Overdue: true})
	})
}
