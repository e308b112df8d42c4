package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

func inPart(l *records.Life) {
	l.Template.Spec.Containers[0].VolumeMounts[0].SubPath = "sub"
}

func TestASubPathIsResolvedAnewAtEveryCreationAndUnmountedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		var calls []string
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "SubPath" || c.Op == "Create" {
				calls = append(calls, c.Op)
			}
			return nil
		})
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), inPart))
		n.wantReady()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantStarts(tok(5), 2)
		n.kill() // the next agent knows nothing of what was mounted
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), inPart))
		n.wantReady()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		time.Sleep(time.Minute) // more than the back-off, on the bubble's clock
		n.wantStarts(tok(5), 3)
		if want := slices.Repeat([]string{"SubPath", "Create"}, 3); !slices.Equal(calls, want) {
			t.Errorf("got %q, want %q", calls, want)
		}
		made, _ := n.host.Container(cid)
		if i := slices.IndexFunc(made.Mounts, func(m runtime.Mount) bool { return m.Target == "/data" }); i < 0 || made.Mounts[i].Source != "/fake/default/db-0/subpath/db/0" {
			t.Errorf("mounts %+v", made.Mounts)
		}
		n.w.Tell(with(life(5, records.GoalStop), inPart))
		n.wantStopped(tok(5))
		if clean, err := n.host.Clean(t.Context(), db0); err != nil || !clean {
			t.Errorf("stopped is told while a sub-path is mounted: %v, %v", clean, err)
		}
	})
}

func TestASubPathThatIsRefusedStartsNothingAndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "SubPath" {
				return errors.New("it leads out of the volume")
			}
			return nil
		})
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), inPart))
		n.wantLast("the refusal", func(r records.Report) bool {
			return r.Cause == causes.StartError && strings.Contains(r.Message, "it leads out of the volume")
		})
		n.wantStarts(tok(5), 0)
	})
}

func TestWhatACrashLeftBetweenMountAndCreationIsUnmounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
			if c.Op == "Create" {
				<-ctx.Done() // the agent dies
				return ctx.Err()
			}
			return nil
		})
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), inPart))
		synctest.Wait()
		if clean, err := n.host.Clean(t.Context(), db0); err != nil || clean {
			t.Fatalf("nothing is mounted yet: %v, %v", clean, err)
		}
		n.kill()
		n.host.OnCall(nil)
		n.run()
		n.w.Tell(with(life(5, records.GoalStop), inPart))
		n.wantStopped(tok(5))
		if clean, err := n.host.Clean(t.Context(), db0); err != nil || !clean {
			t.Errorf("stopped is told while a sub-path is mounted: %v, %v", clean, err)
		}
	})
}

// As in Kubernetes: a variable of the path that has no value keeps the container from being
// started, until it has one.
func TestASubPathExprWaitsForItsVariables(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		expr := func(l *records.Life) {
			c := &l.Template.Spec.Containers[0]
			c.EnvFrom = []spec.EnvFromSource{{ConfigMapRef: &spec.NameRef{Name: "etc"}}}
			c.VolumeMounts[0].SubPath, c.VolumeMounts[0].SubPathExpr = "", "$(STEAD_MEMBER)/$(run.sh)"
		}
		n.apply("../x")
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), expr))
		time.Sleep(time.Minute)
		n.wantCause(causes.ConfigMissing, `becomes "db-0/../x", which is outside the volume`)
		n.wantStarts(tok(5), 0)
		n.apply("x")
		time.Sleep(time.Minute)
		n.wantReady()
	})
}
