package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// One that somebody takes away behind the agent's back ended without anybody seeing it.
func TestAContainerThatWasTakenAwayIsReadyWhenItsNextIs(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := &tellProber{now: probe.Health{Started: true, Ready: true}}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		n.wantReady()
		p.now = probe.Health{Started: true}
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Create" {
				return errors.New("no room")
			}
			return nil
		})
		must(t, n.host.Remove(t.Context(), cid))
		n.wantLast("nothing is there", func(r records.Report) bool { return !r.Ready && r.Cause == causes.StartError })
		n.host.OnCall(nil)
		before := len(n.all())
		time.Sleep(time.Minute)
		n.wantStarts(tok(5), 2)
		for _, r := range n.all()[before:] {
			if r.Ready {
				t.Fatalf("ready before it was probed: %+v", r)
			}
		}
		p.say(probe.Health{Started: true, Ready: true})
		n.wantReady()
	})
}

func TestBeingAvailableIsToldOnce(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.MinReadySeconds = 10 }))
		n.wantReady()
		before := len(n.all())
		time.Sleep(5 * time.Second)
		n.w.FilesChanged() // it looks, and has nothing to tell
		time.Sleep(5 * time.Second)
		n.last()
		time.Sleep(5 * time.Minute)
		if told := n.all()[before:]; len(told) != 1 || !told[0].Ready || told[0].ReadyFor != 10*time.Second {
			t.Errorf("got %+v", told)
		}
	})
}
