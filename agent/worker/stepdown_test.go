package worker

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// stepping is a life whose container has these hooks.
func stepping(down, preStop *spec.Hook) func(*records.Life) {
	return func(l *records.Life) {
		c := &l.Template.Spec.Containers[0]
		c.StepDown = down
		if preStop != nil {
			c.Lifecycle = &spec.Lifecycle{PreStop: preStop}
		}
	}
}

func within(h *spec.Hook, seconds int32) *spec.Hook {
	h.TimeoutSeconds = seconds
	return h
}

func stopFor(l records.Life, reason records.Reason) records.Life {
	l = stop(l)
	l.Member.StopReason = reason
	return l
}

var leads = records.Claim{Leads: true, Term: 7}

// wantSteppedDown is wantButProbes with a hook that was broken off before the signal of the same instant: the hook returns in its own
// goroutine while the stop goes on, so either is noted first.
func (p *hookProber) wantSteppedDown(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	for i := 1; i < len(p.seen); i++ {
		_, at, _ := strings.Cut(p.seen[i], " broken off@")
		if at != "" && strings.HasPrefix(p.seen[i-1], "signal ") && strings.HasSuffix(p.seen[i-1], "@"+at) {
			p.seen[i-1], p.seen[i] = p.seen[i], p.seen[i-1]
		}
	}
	p.mu.Unlock()
	p.wantButProbes(t, want...)
}

// The hook of the member that leads runs before its preStop hook and its signal, for as long as it may; the grace begins after it.
func TestALeaderStepsDownBeforeItStops(t *testing.T) {
	for _, c := range []struct {
		name   string
		down   *spec.Hook
		pre    *spec.Hook
		says   records.Claim
		reason records.Reason
		want   []string
	}{
		{"it returns", sleep(10), sleep(5), leads, records.ReasonUpdate,
			[]string{"db sleep@0s", "db sleep done@10s", "db sleep@10s", "db sleep done@15s", "signal db, Update@15s"}},
		{"it fails", hookOf("fail"), nil, leads, records.ReasonDrain, []string{"db fail@0s", "db fail failed@0s", "signal db, Drain@0s"}},
		{"it hangs", within(hookOf("hang"), 20), nil, leads, records.ReasonMove, []string{"db hang@0s", "db hang broken off@20s", "signal db, Move@20s"}},
		{"by default for half a minute", hookOf("hang"), nil, leads, records.ReasonRestart, []string{"db hang@0s", "db hang broken off@30s", "signal db, Restart@30s"}},
		{"a member that leaves", hookOf("leave"), nil, leads, records.ReasonScaleDown, []string{"db leave@0s", "db leave done@0s", "signal db, ScaleDown@0s"}},
		{"one that does not lead", hookOf("leave"), nil, records.Claim{Note: "follows"}, records.ReasonUpdate, []string{"signal db, Update@0s"}},
		{"a set that is deleted", hookOf("leave"), nil, leads, records.ReasonDelete, []string{"signal db, Delete@0s"}},
		{"all members leave", hookOf("leave"), nil, leads, records.ReasonScaleToZero, []string{"signal db, ScaleToZero@0s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				p, s := hookNode(n), speaking(n)
				l := with(life(5, records.GoalRun), stepping(c.down, c.pre))
				n.startHooked(p, l)
				s.say(c.says)
				_ = n.last()
				p.wantButProbes(t)
				n.w.Tell(stopFor(l, c.reason))
				time.Sleep(time.Minute)
				p.wantSteppedDown(t, c.want...)
				n.wantStopped(tok(5))
			})
		})
	}
}

// The agent is killed while its member steps down: the next agent starts the hook again if the member still leads, with the time that is left.
func TestAStepDownOutlastsTheAgent(t *testing.T) {
	for _, c := range []struct {
		name  string
		down  *spec.Hook
		away  time.Duration
		after records.Claim // what the member says meanwhile
		want  []string
	}{
		{"it leads still", within(sleep(10), 25), 2 * time.Second, leads,
			[]string{"db sleep@0s", "db sleep broken off@4s", "db sleep@6s", "db sleep done@16s", "signal db, Update@16s"}},
		{"it leads no more", within(sleep(10), 25), 2 * time.Second, records.Claim{},
			[]string{"db sleep@0s", "db sleep broken off@4s", "signal db, Update@6s"}},
		{"its time is over", within(hookOf("hang"), 25), time.Minute, leads,
			[]string{"db hang@0s", "db hang broken off@4s", "signal db, Update@1m4s"}},
		{"with little of it left", within(hookOf("hang"), 25), 10 * time.Second, leads,
			[]string{"db hang@0s", "db hang broken off@4s", "db hang@14s", "db hang broken off@25s", "signal db, Update@25s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				p, s := hookNode(n), speaking(n)
				l := with(life(5, records.GoalRun), stepping(c.down, nil))
				n.startHooked(p, l)
				s.say(leads)
				_ = n.last()
				p.wantButProbes(t)
				n.w.Tell(stopFor(l, records.ReasonUpdate))
				time.Sleep(4 * time.Second)
				if c.after != leads {
					s.say(c.after)
					_ = n.last()
				}
				n.kill()
				time.Sleep(c.away)
				n.run()
				time.Sleep(2 * time.Minute)
				p.wantSteppedDown(t, c.want...)
				n.wantStopped(tok(5))
			})
		})
	}
}

// A host that goes down waits for nobody to step down.
func TestNobodyStepsDownForAShutdown(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p, s := hookNode(n), speaking(n)
		n.startHooked(p, with(life(5, records.GoalRun), stepping(hookOf("hang"), nil)))
		s.say(leads)
		_ = n.last()
		p.wantButProbes(t)
		n.w.StopHere(records.ReasonNodeShutdown, time.Now().Add(10*time.Second))
		time.Sleep(time.Minute)
		p.wantButProbes(t, "signal db, NodeShutdown@0s")
		n.wantStopped(tok(5))
	})
}
