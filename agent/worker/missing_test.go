package worker

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestNothingIsMadeForAMemberWhoseVariablesAreMissing(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		var made []string
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if slices.Contains([]string{"EnsureImage", "Ensure", "EnsureSandbox", "Attach", "Create"}, c.Op) {
				made = append(made, c.Op)
			}
			return nil
		})
		n.apply("")
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) {
			l.Template.Spec.Containers[0].EnvFrom = []spec.EnvFromSource{{ConfigMapRef: &spec.NameRef{Name: "etc"}}}
		}))
		time.Sleep(time.Minute)
		n.wantLast("what is missing", func(r records.Report) bool { return r.Cause == "ConfigMissing" })
		if len(made) > 0 {
			t.Errorf("made: %q", made)
		}
	})
}

func TestAConfigMapThatGoesWhileItsMemberIsMadeIsWaitedFor(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		goes := true
		n.pictures = func(c *files.SetFilesConfig) {
			c.History = func(spec.SetRef) []records.Change { // is asked for while the files are written
				if goes {
					n.apply("")
				}
				return nil
			}
		}
		n.apply("nats-server")
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), configured))
		time.Sleep(time.Minute)
		n.wantLast("what is missing", func(r records.Report) bool { return r.Cause == "ConfigMissing" })
		n.wantStarts(tok(5), 0)
		goes = false
		n.apply("nats-server")
		time.Sleep(time.Minute)
		n.wantReady()
		n.wantScript("nats-server")
	})
}

// wantScript looks what the member sees of the ConfigMap etc.
func (n *node) wantScript(want string) {
	n.t.Helper()
	got, err := os.ReadFile(filepath.Join(files.At(n.w.c.RunDir, db0).Media, "etc", "run.sh"))
	must(n.t, err)
	if string(got) != want {
		n.t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheFilesOfARunningMemberAreNotWrittenTooOften(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.tuning.Renew = time.Minute
		n.apply("one")
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), configured))
		n.wantReady()
		n.apply("two")
		time.Sleep(59 * time.Second)
		n.wantScript("one")
		time.Sleep(2 * time.Second)
		n.wantScript("two")
		n.wantStarts(tok(5), 1)
	})
}

// Each of these comes to a container that has an hour of back-off ahead of it.
func TestWhatEndsABackOff(t *testing.T) {
	for _, c := range []struct {
		name   string
		begin  string // what the ConfigMap holds when the container is made for the last time
		then   func(*node)
		starts int
	}{
		{"nothing new does not", "one", func(n *node) { n.apply("one") }, 2},
		{"a ConfigMap that goes does not", "one", func(n *node) { n.apply("") }, 2},
		{"another one does", "one", func(n *node) { n.apply("two") }, 3},
		{"one that comes back does", "", func(n *node) { n.apply("two") }, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.tuning.CrashFirst = time.Hour
				n.apply("first")
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), configured))
				n.wantReady()
				n.apply(c.begin)
				time.Sleep(time.Minute)
				for range 2 {
					n.host.Exit(cid, runtime.Exit{Code: 1})
					n.last()
				}
				n.wantStarts(tok(5), 2)
				c.then(n)
				time.Sleep(time.Minute)
				n.wantStarts(tok(5), c.starts)
			})
		})
	}
}

func TestARepairThatComesWhileAStartFailsEndsTheBackOff(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.tuning.CrashFirst = time.Hour
		n.host.OnStart(func(made runtime.Container) fakert.Behaviour {
			return fakert.Behaviour{StartErr: map[bool]error{true: runtime.ErrBadSpec}[made.Attempt < 2]}
		})
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if made, _ := n.host.Container(cid); c.Op == "Start" && made.Attempt == 1 {
				n.apply("two")
			}
			return nil
		})
		n.apply("one")
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), configured))
		time.Sleep(time.Minute)
		n.wantReady()
	})
}
