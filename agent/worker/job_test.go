package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
)

// job is a life that is to run a job: a command of that word, as order number, after so many failures.
func job(l records.Life, number int64, word string, failures int) records.Life {
	l = ordered(l, number, hooks.RunJob, word)
	l.Member.Hook.Job = &hooks.JobFacts{Name: "grow", Ordinals: []int{0, 1, 2}, Before: []int{0, 1}, Attempt: failures}
	return l
}

func jobID(number int64) spec.Sequence { return spec.Sequence{Epoch: 1, Rev: number} }

const jobVariables = "ordered STEAD_HOOK=job STEAD_JOB=grow STEAD_JOB_ORDINALS=0 1 2 STEAD_JOB_BEFORE=0 1 STEAD_JOB_RUN=1."

func (p *hookProber) exits(with error) {
	p.run = func(context.Context, probe.Target, spec.Hook) error { return with }
}

// A job runs beside the containers, and not again when it has succeeded, also not by another agent.
func TestAJobIsBegunOnce(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		p.run = func(context.Context, probe.Target, spec.Hook) error {
			state, _ := OnHost(n.dir, filepath.Join(n.dir, "run-b1")).LoadState(db0)
			p.note("begun is kept: %v", state.Ordered.Begun)
			return nil
		}
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		n.w.Tell(job(l, 7, "grow", 0))
		time.Sleep(30 * time.Second)
		n.wantHook(hooks.HookResult{ID: jobID(7), Begun: true, Done: true})
		p.want(t, jobVariables+"7@0s", "db grow@0s", "begun is kept: true@0s", "db grow done@0s")
		n.kill()
		n.run()
		n.w.Tell(job(l, 7, "grow", 0))
		time.Sleep(time.Minute)
		p.wantButProbes(t)
		n.wantHook(hooks.HookResult{ID: jobID(7), Begun: true, Done: true, Overdue: true})
	})
}

// One that failed is begun again by another order only, and the later the oftener it failed.
// TestAJobWhoseOrderIsGoneIsNotBegunOnceMore: what an agent that was killed had kept of the life may name a job that is done.
func TestAJobWhoseOrderIsGoneIsNotBegunOnceMore(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		n.w.Tell(job(l, 7, "grow", 0))
		time.Sleep(30 * time.Second)
		p.want(t, jobVariables+"7@0s", "db grow@0s", "db grow done@0s")
		n.w.Tell(l)
		time.Sleep(time.Second)
		n.kill()
		if err := OnHost(n.dir, filepath.Join(n.dir, "run-b1")).SaveLife(new(job(l, 7, "grow", 0))); err != nil {
			t.Fatal(err)
		}
		n.run()
		time.Sleep(30 * time.Second)
		p.wantButProbes(t)
		n.w.Tell(job(l, 8, "grow", 0))
		time.Sleep(30 * time.Second)
		n.wantHook(hooks.HookResult{ID: jobID(8), Begun: true, Done: true})
	})
}

func TestAJobThatFailedIsNotBegunAgainByItself(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		failure := probe.Ended(3, "two shards are left")
		p.exits(failure)
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		n.w.Tell(job(l, 7, "grow", 0))
		time.Sleep(30 * time.Second)
		n.wantHook(hooks.HookResult{ID: jobID(7), Begun: true, Failures: 1, Message: failure.Error()})
		p.want(t, jobVariables+"7@0s", "db grow@0s", "db grow failed@0s")
		n.w.Tell(job(l, 8, "grow", 3))
		time.Sleep(time.Second)
		n.wantHook(hooks.HookResult{ID: jobID(8)})
		p.want(t)
		time.Sleep(30 * time.Second)
		p.want(t, jobVariables+"8@1s", "db grow@1s", "db grow failed@1s")
	})
}

// What ends a run other than its command says so: nobody knows how far it came, and it is not begun again.
func TestWhatEndsAJobFromOutsideIsUnknown(t *testing.T) {
	hang := func(ctx context.Context, _ probe.Target, _ spec.Hook) error { <-ctx.Done(); return ctx.Err() }
	l := life(5, records.GoalRun)
	for name, c := range map[string]struct {
		run  func(context.Context, probe.Target, spec.Hook) error
		end  func(n *node)
		want string
	}{
		"a signal":         {func(context.Context, probe.Target, spec.Hook) error { return probe.Ended(137, "") }, func(*node) {}, "exit code 137"},
		"the runtime":      {func(context.Context, probe.Target, spec.Hook) error { return runtime.ErrUnavailable }, func(*node) {}, runtime.ErrUnavailable.Error()},
		"its time":         {hang, func(*node) { time.Sleep(time.Hour) }, errLate.Error()},
		"the agent's kill": {hang, func(n *node) { n.kill(); n.run(); n.w.Tell(job(l, 7, "grow", 0)) }, "the agent was restarted while it ran"},
		"a lost state": {hang, func(n *node) {
			n.kill()
			must(n.t, os.Remove(filepath.Join(n.dir, "run-b1", "state", "default", "db-0.json")))
			n.run()
			n.w.Tell(job(l, 7, "grow", 0))
		}, "what the agent had kept of it is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				p := hookNode(n)
				p.run = c.run
				n.startHooked(p, l)
				n.w.Tell(job(l, 7, "grow", 0))
				time.Sleep(time.Second)
				c.end(n)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				n.wantLast("the job", func(r records.Report) bool {
					return r.Hook.Unknown && !r.Hook.Done && r.Hook.Failures == 0 && r.Hook.Message == c.want
				})
				begun := 0
				for _, line := range p.seen {
					if line == "db grow@0s" || line == "db grow@1s" || line == "db grow@11s" {
						begun++
					}
				}
				if begun != 1 {
					t.Errorf("it was begun %d times: %q", begun, p.seen)
				}
			})
		})
	}
}

// A job that was ordered before the store was restored may have run since: it is not begun, and nobody knows whether it ran.
func TestAJobOfBeforeARestoreIsNotBegun(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		n.epoch.Store(2)
		n.w.Tell(job(l, 7, "grow", 0))
		time.Sleep(30 * time.Second)
		n.wantHook(hooks.HookResult{ID: jobID(7), Unknown: true, Message: "the store was restored since it was ordered"})
		p.want(t)
	})
}

// The last report of a life says what came of its job: that it was not begun, or that it ended with the life.
func TestTheEndOfALifeSaysWhatCameOfItsJob(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		p.run = func(ctx context.Context, _ probe.Target, _ spec.Hook) error { <-ctx.Done(); return ctx.Err() }
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		n.w.Tell(job(l, 7, "grow", 9))
		time.Sleep(time.Second)
		n.w.Tell(stop(l))
		n.wantLast("its end", func(r records.Report) bool {
			return r.Phase == records.PhaseStopped && r.Hook == hooks.HookResult{ID: jobID(7)}
		})
	})
	scenario(t, func(t *testing.T, n *node) {
		p := hookNode(n)
		p.run = func(ctx context.Context, _ probe.Target, _ spec.Hook) error {
			<-ctx.Done()
			return errors.New("killed")
		}
		l := life(5, records.GoalRun)
		n.startHooked(p, l)
		n.w.Tell(job(l, 7, "grow", 0))
		time.Sleep(time.Second)
		n.w.Tell(stop(l))
		n.wantLast("its end", func(r records.Report) bool { return r.Phase == records.PhaseStopped && r.Hook.Unknown })
	})
}
