package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

func ctrID(name string) runtime.ContainerID { return runtime.ContainerID{ID: db0, Name: name} }

// initialized gives a life the init containers one and two, with a sidecar between them.
func initialized(l *records.Life) {
	always := spec.RestartAlways
	l.Template.Spec.InitContainers = []spec.Container{
		{Name: "one", Image: "img:1"}, {Name: "side", Image: "img:1", RestartPolicy: &always}, {Name: "two", Image: "img:1"},
	}
}

// completes lets init containers end at once, with the code that code gives for the attempt.
func (n *node) completes(code func(name string, attempt int) int) {
	n.host.OnStart(func(c runtime.Container) fakert.Behaviour {
		if c.ID.Name != "one" && c.ID.Name != "two" {
			return fakert.Behaviour{}
		}
		return fakert.Behaviour{Exits: true, Code: code(c.ID.Name, c.Attempt)}
	})
}

func zero(string, int) int { return 0 }

// started are the names of what was started for the identity, in order.
func (n *node) started() (names []string) {
	synctest.Wait()
	for _, s := range n.host.Starts(db0) {
		names = append(names, s.Name)
	}
	return names
}

func (n *node) wantStarted(want ...string) {
	n.t.Helper()
	if got := n.started(); !slices.Equal(got, want) {
		n.t.Fatalf("started: %v, want %v; the last report is %+v", got, want, n.last())
	}
}

func (n *node) report(name string) records.ContainerReport {
	n.t.Helper()
	r := n.last()
	i := slices.IndexFunc(r.Containers, func(c records.ContainerReport) bool { return c.Name == name })
	if i < 0 {
		n.t.Fatalf("no container %s in %+v", name, r)
	}
	return r.Containers[i]
}

var inOrder = []string{"one", "side", "two", "db"}

func TestInitContainersRunInOrderAndOnce(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.completes(zero)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), initialized))
		n.wantReady()
		n.wantStarted(inOrder...)
		if c := n.report("two"); c.State != "Exited" || c.Role != spec.RoleInit || c.Ready || c.ExitCode == nil || *c.ExitCode != 0 {
			t.Errorf("of an init container that has passed: %+v", c)
		}
		if c := n.report("side"); c.State != "Running" || c.Role != spec.RoleSidecar || !c.Ready {
			t.Errorf("of the sidecar: %+v", c)
		}
		if _, there := n.host.Container(ctrID("one")); there {
			t.Error("what has passed is still in the runtime")
		}
		n.host.Exit(cid, runtime.Exit{Code: 1}) // a restart in place
		n.wantReady()
		n.wantStarted(append(inOrder, "db")...)
		n.kill()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		must(t, n.host.Remove(t.Context(), cid)) // the agent ended while it made the container again
		n.run()
		time.Sleep(time.Minute)
		n.wantReady()
		n.wantStarted(append(inOrder, "db", "db")...)
		n.w.Tell(with(life(6, records.GoalRun), initialized)) // a new life runs them again
		time.Sleep(time.Minute)
		n.wantReady()
		n.wantStarted(append(append(inOrder, "db", "db"), inOrder...)...)
	})
}

// mortal are files that keep nothing from the moment on at which their agent was killed.
type mortal struct {
	HostFiles
	dead *atomic.Bool
}

func (m mortal) SaveState(id spec.Identity, s *State) error {
	if m.dead.Load() {
		return errKilled
	}
	return m.HostFiles.SaveState(id, s)
}

func (m mortal) SaveLife(l *records.Life) error {
	if m.dead.Load() {
		return errKilled
	}
	return m.HostFiles.SaveLife(l)
}

var errKilled = errors.New("killed")

// diesAt lets the agent that runs next die before its call number k of the host; died says that it
// got so far.
func (n *node) diesAt(k int) (died func() bool) {
	var calls atomic.Int64
	var dead atomic.Bool
	n.change = func(c *Config) { c.Files = mortal{c.Files, &dead} }
	n.host.OnCall(func(_ context.Context, c fakert.Call) error {
		if dead.Load() {
			return errKilled
		}
		if c.Op == "Wait" {
			return nil
		}
		if calls.Add(1) == int64(k) {
			dead.Store(true)
			n.cancel()
			return errKilled
		}
		return nil
	})
	return func() bool { synctest.Wait(); return dead.Load() }
}

// The agent is killed between any two things that it does to the host: each init container runs to its
// end once, in order, before the container; no two of them run at once.
func TestAnAgentThatIsKilledRunsNoInitContainerTwice(t *testing.T) {
	for k, more := 1, true; more; k++ {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.completes(zero)
				died := n.diesAt(k)
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), initialized))
				time.Sleep(time.Minute)
				more = died()
				n.kill()
				n.host.OnCall(nil)
				n.change = nil
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), initialized))
				time.Sleep(10 * time.Minute)
				n.wantReady()
				n.wantStarted(inOrder...)
			})
		})
	}
}

func TestAnInitContainerIsRunUntilItSucceeds(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.completes(func(name string, attempt int) int {
			if name == "one" && attempt < 3 {
				return 7
			}
			return 0
		})
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), initialized))
		n.wantCause(causes.CrashLoop, "init container one: exited with code 7, 2 times in a row; the next start waits 10s")
		n.wantStarted("one", "one") // the first time at once
		if c := n.report("one"); c.State != "Exited" || c.ExitCode == nil || *c.ExitCode != 7 || c.Cause != causes.CrashLoop {
			t.Errorf("of an init container that failed: %+v", c)
		}
		if c := n.report("db"); c.State != "Waiting" {
			t.Errorf("of the container: %+v", c)
		}
		n.kill() // the next agent goes on waiting
		n.run()
		time.Sleep(5 * time.Second)
		n.wantStarted("one", "one")
		time.Sleep(time.Minute)
		n.wantReady()
		n.wantStarted("one", "one", "one", "one", "side", "two", "db")
		if c := n.report("one"); c.Restarts != 3 || c.Cause != "" || *c.ExitCode != 0 {
			t.Errorf("of one that succeeded at last: %+v", c)
		}
	})
}

func TestAMemberWaitsWhileAnInitContainerRuns(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), initialized))
		r := n.wantCause(causes.Initializing, "init container one is running")
		if r.Ready || r.Phase != records.PhaseStarting {
			t.Errorf("got %+v", r)
		}
		n.kill() // it goes on without an agent
		n.host.Exit(ctrID("one"), runtime.Exit{})
		n.run()
		n.wantCause(causes.Initializing, "init container two is running")
		n.wantStarted("one", "side", "two")
		n.host.Exit(ctrID("two"), runtime.Exit{})
		n.wantReady()
		n.wantStarted(inOrder...)
	})
}

func TestAStopEndsAnInitContainer(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), initialized))
		n.wantCause(causes.Initializing, "one")
		n.w.Tell(with(life(5, records.GoalStop), initialized))
		time.Sleep(time.Second)
		n.wantStopped(tok(5))
		n.wantStarted("one")
	})
}

// What has passed is known from what is there, also when what was kept of it is lost.
func TestWhatComesAfterShowsThatInitContainersHavePassed(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.completes(zero)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), initialized))
		n.wantReady()
		n.kill()
		must(t, os.Remove(filepath.Join(n.dir, "run-b1", "state", "default", "db-0.json")))
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.run()
		n.wantReady()
		n.wantStarted(append(inOrder, "db")...)
	})
}

// full are files in which no state can be kept.
type full struct{ HostFiles }

func (full) SaveState(spec.Identity, *State) error { return errors.New("no space") }

// What the runtime shows of an end that counts is not removed before it is kept elsewhere.
func TestAnEndThatIsNotKeptStaysInTheRuntime(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.completes(zero)
		n.change = func(c *Config) { c.Files = full{c.Files} }
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), initialized))
		n.wantCause(causes.StartError, "no space")
		if st, err := n.host.Status(t.Context(), ctrID("one")); err != nil || st.State != runtime.Exited {
			t.Fatalf("got %+v, %v", st, err)
		}
		n.kill()
		n.change = nil
		n.run()
		n.wantReady()
		n.wantStarted(inOrder...)
	})
}
