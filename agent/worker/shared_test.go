package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
)

var side0 = runtime.ContainerID{ID: db0, Name: "side"}

// sharing is a life of two containers that share their processes.
func sharing(l *records.Life) {
	twoContainers(l)
	yes := true
	l.Template.Spec.ShareProcessNamespace = &yes
}

// calls are the operations on the host from now on, but looks.
func (n *node) calls() func() []string {
	var mu sync.Mutex
	var list []string
	n.host.OnCall(func(_ context.Context, c fakert.Call) error {
		if !slices.Contains([]string{"Status", "Wait", "Empty", "EnsureImage", "Clean", "SubPath"}, c.Op) {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, c.Op+" "+c.Name)
		}
		return nil
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

func TestTheContainersOfAMemberShareTheirProcessesWhereItSaysSo(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		change func(*records.Life)
		want   bool
	}{
		"said": {sharing, true}, "not said": {twoContainers, false},
		"denied": {func(l *records.Life) { twoContainers(l); l.Template.Spec.ShareProcessNamespace = &no }, false},
	} {
		scenario(t, func(t *testing.T, n *node) {
			n.run()
			n.w.Tell(with(life(5, records.GoalRun), c.change))
			n.wantReady()
			if boxes, err := n.host.Sandboxes(t.Context()); err != nil || len(boxes) != 1 || boxes[0].SharedPIDs != c.want {
				t.Errorf("%s: %+v, %v", name, boxes, err)
			}
		})
	}
}

// TestWhatAContainerLeftIsKilledAtOnceAndNothingElse: where containers share their processes the end of one does not
// end what it started; as where they do not, that is gone before anything else is done for it (SAFETY S13).
func TestWhatAContainerLeftIsKilledAtOnceAndNothingElse(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnStart(func(c runtime.Container) fakert.Behaviour { return fakert.Behaviour{Leaves: c.ID.Name == "db"} })
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), sharing))
		n.wantReady()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantStarts(tok(5), 2) // at once
		calls := n.calls()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		time.Sleep(time.Second)
		if got := calls(); !slices.Equal(got, []string{"Signal db"}) {
			t.Errorf("before its back-off was over: %q, want what it left to be killed", got)
		}
		if st, err := n.host.Status(t.Context(), cid); err != nil || st.Left {
			t.Errorf("%+v, %v", st, err)
		}
		time.Sleep(time.Minute)
		n.wantStarts(tok(5), 3)
		if got := n.host.StartsOf(side0, tok(5)); got != 1 {
			t.Errorf("its neighbour was started %d times", got)
		}
	})
}

// TestASandboxWhoseProcessEndedIsMadeAgain: all containers end with it, and start again in the same life.
func TestASandboxWhoseProcessEndedIsMadeAgain(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), sharing))
		n.wantReady()
		fakert.LoseSandbox(n.host, db0)
		time.Sleep(time.Minute)
		n.wantReady()
		for _, id := range []runtime.ContainerID{cid, side0} {
			if got := n.host.StartsOf(id, tok(5)); got != 2 {
				t.Errorf("%s was started %d times, want 2", id.Name, got)
			}
		}
	})
}

// TestAnAgentThatIsKilledLosesNothingOfASharedSandbox: the agent is killed between any two things that it does, while
// a member starts, one of its containers ends and leaves processes, its sandbox is lost, and it is stopped.
func TestAnAgentThatIsKilledLosesNothingOfASharedSandbox(t *testing.T) {
	for k, more := 1, true; more; k++ {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.host.OnStart(func(c runtime.Container) fakert.Behaviour { return fakert.Behaviour{Leaves: c.ID.Name == "db"} })
				died := n.diesAt(k)
				n.run()
				again := func(goal records.Goal) {
					time.Sleep(time.Minute)
					if died() {
						n.kill()
						n.host.OnCall(nil)
						n.change = nil
						n.run()
					}
					n.w.Tell(with(life(5, goal), sharing))
					time.Sleep(10 * time.Minute)
				}
				n.w.Tell(with(life(5, records.GoalRun), sharing))
				again(records.GoalRun)
				n.host.Exit(cid, runtime.Exit{Code: 1})
				again(records.GoalRun)
				fakert.LoseSandbox(n.host, db0)
				again(records.GoalRun)
				n.wantReady()
				more = died()
				again(records.GoalStop)
				n.wantStopped(tok(5))
				if empty, err := n.host.Empty(t.Context(), db0); !empty || err != nil {
					t.Errorf("empty: %v, %v", empty, err)
				}
				if boxes, err := n.host.Sandboxes(t.Context()); len(boxes) != 0 || err != nil {
					t.Errorf("left: %+v, %v", boxes, err)
				}
			})
		})
	}
}
