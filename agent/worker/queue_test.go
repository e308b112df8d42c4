package worker

import (
	"context"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

func TestAContainerWaitsForAPlaceAndAStopDoesNot(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.starts = make(chan struct{}, 1)
		n.starts <- struct{}{} // another member starts, and takes its time
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantStarts(tok(5), 0)
		n.w.Tell(life(5, records.GoalStop))
		n.wantStopped(tok(5))
		n.wantStarts(tok(5), 0)
		n.w.Tell(life(6, records.GoalRun))
		n.wantStarts(tok(6), 0)
		<-n.starts
		n.wantReady()
		n.wantStarts(tok(6), 1)
		if len(n.starts) != 0 {
			t.Error("it keeps the place")
		}
	})
}

// Whatever blocks it heeds no context, as a system call on a disk that hangs.
func TestAnOperationThatHangsGivesItsPlaceBack(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.starts = make(chan struct{}, 1)
		goOn := make(chan struct{})
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Create" {
				<-goOn
			}
			return nil
		})
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		time.Sleep(59 * time.Second)
		if len(n.starts) != 1 {
			t.Fatal("it has no place")
		}
		time.Sleep(2 * time.Second)
		n.wantLast("what is wrong", func(r records.Report) bool { return r.Cause == causes.StartError && !r.Ready })
		if len(n.starts) != 0 {
			t.Fatal("it keeps others waiting")
		}
		n.w.Tell(life(5, records.GoalStop)) // is not answered before it is certain what became of it
		time.Sleep(time.Hour)
		n.wantLast("no end", func(r records.Report) bool {
			return r.Cause == causes.StartError && r.Phase == records.PhasePreparing
		})
		close(goOn)
		n.wantStopped(tok(5))
		n.wantStarts(tok(5), 0)
		if left, _ := n.host.List(t.Context()); len(left) != 0 {
			t.Errorf("left behind: %+v", left)
		}
		if len(n.starts) != 0 {
			t.Error("a place is taken that nobody has")
		}
	})
}

func TestAContainerThatWasRefusedProcessesIsToldAndRunsOn(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.host.Refuse(cid, 3)
		time.Sleep(31 * time.Second) // until it is looked at again
		n.wantLast("the limit", func(r records.Report) bool { return r.Cause == causes.ProcessLimit && r.Ready })
		time.Sleep(6 * time.Minute)
		n.wantLast("nothing any more", func(r records.Report) bool { return r.Cause == "" && r.Ready })
		n.wantStarts(tok(5), 1)
	})
}
