package worker

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// nudges wakes the worker in all ways but those that are about a life.
func (n *node) nudges() {
	n.w.FilesChanged()
	n.w.ImagesChanged()
	n.w.Repair()
	n.w.Confirmed()
	n.sets.Changed(anySet)
	n.sets.ConfirmedMoved()
	synctest.Wait()
}

func TestAnIdentityWithoutALifeCostsItsHostNothing(t *testing.T) {
	cases := []struct {
		name  string
		begin func(*node)
	}{
		{"nothing was ever told of it", func(n *node) { n.run() }},
		{"its life was ended", func(n *node) {
			n.run()
			n.w.Tell(life(5, records.GoalRun))
			n.wantReady()
			n.w.Tell(life(5, records.GoalStop))
			n.wantStopped(tok(5))
		}},
		{"an old token was asked for", func(n *node) {
			n.run()
			must(n.t, n.ledger.CloseToken(db0, tok(9), causes.Stopped))
			must(n.t, n.ledger.Stored(db0, tok(9)))
			n.w.Tell(life(4, records.GoalRun))
			n.wantStopped(tok(4))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				c.begin(n)
				told, calls := len(n.all()), n.count(nil)
				for range 3 {
					n.nudges()
					time.Sleep(time.Hour)
				}
				if got := calls.of(); got != 0 {
					t.Errorf("the host was called: %v", calls.calls)
				}
				reports := n.all()
				if len(reports) != told {
					t.Errorf("told again: %+v", reports[told:])
				}
				for _, r := range reports {
					if r.Token.IsZero() {
						t.Errorf("told of no life: %+v", r)
					}
				}
				if left := n.kept(); len(left) > 0 {
					t.Errorf("left below the run directory: %v", left)
				}
			})
		})
	}
}

// kept are the files and directories that are kept or shown of the identity.
func (n *node) kept() (paths []string) {
	for _, name := range []string{"db-0", "db-0.json"} {
		found, err := filepath.Glob(filepath.Join(n.dir, "run-"+string(n.boot), "*", "default", name))
		must(n.t, err)
		paths = append(paths, found...)
	}
	return paths
}

func TestAFailureAtAnyStepOfAnEndIsToldAndNothingIsOverBeforeItIsMended(t *testing.T) {
	broken := errors.New("no such luck")
	failing := func(op string) func(*node) (func() int, func()) {
		return func(n *node) (func() int, func()) {
			calls := n.count(func(c fakert.Call) error {
				if c.Op == op {
					return broken
				}
				return nil
			})
			return func() int { return calls.of(op) }, func() { n.host.OnCall(nil) }
		}
	}
	// inTheWay puts a directory that is not empty where a file is to be.
	inTheWay := func(path ...string) func(*node) (func() int, func()) {
		return func(n *node) (func() int, func()) {
			place := filepath.Join(append([]string{n.dir, "run-b1"}, path...)...)
			must(n.t, os.RemoveAll(place))
			must(n.t, os.MkdirAll(filepath.Join(place, "x"), 0o755))
			return nil, func() { must(n.t, os.RemoveAll(place)) }
		}
	}
	// unsure has the host answer this when it is asked whether processes are left.
	unsure := func(n *node, empty bool, err error) (func() int, func()) {
		b, calls := n.w.c.Runtime.(*bent), n.count(nil)
		b.say(answers{empty: func() (bool, error) { return empty, err }})
		return func() int { return calls.of("KillAll") }, func() { b.say(answers{}) }
	}
	stubborn := func(n *node) {
		n.host.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{IgnoreTerm: true} })
	}
	cases := []struct {
		name    string
		before  func(*node)
		fails   func(*node) (tries func() int, mend func())
		message string // "": no report tells it, for the token is closed
	}{
		{"the reason cannot be written", nil, inTheWay("members", "default", "db-0", "termination-reason"), "termination-reason"},
		{"the signal fails", nil, failing("Signal"), broken.Error()},
		{"the kill fails", stubborn, failing("KillAll"), broken.Error()},
		{"what was killed is not gone", stubborn, func(n *node) (func() int, func()) {
			return unsure(n, false, nil)
		}, errStillThere.Error()},
		{"whether it is gone cannot be seen", stubborn, func(n *node) (func() int, func()) {
			return unsure(n, true, broken)
		}, broken.Error()},
		{"a container cannot be removed", nil, failing("Remove"), broken.Error()},
		{"the link cannot be removed", nil, failing("Detach"), broken.Error()},
		{"scratch cannot be removed", nil, failing("RemoveScratch"), broken.Error()},
		{"the sandbox cannot be removed", nil, failing("RemoveSandbox"), broken.Error()},
		{"its description cannot be removed", nil, inTheWay("state", "default", "db-0.json"), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.bend(answers{})
				if c.before != nil {
					c.before(n)
				}
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				n.wantReady()
				tries, mend := c.fails(n)
				n.w.Tell(life(5, records.GoalStop))
				time.Sleep(10 * time.Minute)
				for _, r := range n.all() {
					if r.Phase.Over() {
						t.Fatalf("told over: %+v", r)
					}
				}
				if c.message != "" {
					n.wantCause(causes.StopError, c.message)
				}
				if tries != nil && (tries() < 5 || tries() > 30) {
					t.Errorf("tried %d times in ten minutes", tries())
				}
				mend()
				time.Sleep(2 * time.Minute)
				n.wantStopped(tok(5))
			})
		})
	}
}
