package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// What cannot be kept is lost with the agent, and no sooner.
func TestAStateThatCannotBeKeptIsLoggedAndStopsNothing(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		var log bytes.Buffer
		n.change = func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
		must(t, os.MkdirAll(filepath.Join(n.dir, "run-b1"), 0o755))
		must(t, os.WriteFile(filepath.Join(n.dir, "run-b1", "state"), nil, 0o600)) // where its directory should be
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		if r := n.wantReady(); r.Containers[0].Restarts != 1 {
			t.Errorf("got %+v", r)
		}
		n.kill()
		if !strings.Contains(log.String(), "state not kept") {
			t.Errorf("the log does not say so:\n%s", &log)
		}
	})
}

// A description is of one life, and whole, or there is none: what runs is left alone until
// the server says what it is.
func TestADescriptionThatIsNotOfTheOpenLifeIsNotUsed(t *testing.T) {
	ofAnother, err := json.Marshal(life(4, records.GoalRun))
	must(t, err)
	newer, err := json.Marshal(map[string]any{"member": life(5, records.GoalRun).Member, "template": "of another form"})
	must(t, err)
	for name, doc := range map[string][]byte{
		"of another life": ofAnother,
		"of another form": newer,
		"cut off":         ofAnother[:len(ofAnother)/2],
		"lost":            nil,
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.apply("one")
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), configured))
				n.wantReady()
				n.host.Exit(cid, runtime.Exit{Code: 1})
				n.wantReady()
				n.host.Exit(cid, runtime.Exit{Code: 1}) // the next start waits
				n.wantLast("its back-off", func(r records.Report) bool { return r.Cause == "CrashLoop" })
				n.kill()
				path := filepath.Join(n.dir, "run-b1", "lives", "default", "db-0.json")
				must(t, os.Remove(path))
				if doc != nil {
					must(t, os.WriteFile(path, doc, 0o600))
				}
				n.found = Found{Containers: []string{cid.Name}}
				n.run()
				n.apply("two")
				time.Sleep(time.Hour)
				n.wantLast("not ready", func(r records.Report) bool { return !r.Ready && len(r.Containers) == 0 })
				n.wantStarts(tok(5), 2)
				n.w.Tell(with(life(5, records.GoalRun), configured))
				time.Sleep(time.Minute)
				n.wantReady()
				n.wantStarts(tok(5), 3)
			})
		})
	}
}

// The agent may die at any moment between opening a life and its first container.
func TestWhatALifeLeftIsClearedAlthoughNothingWasFoundOfIt(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
			if c.Op == "EnsureSandbox" {
				<-ctx.Done() // the agent dies
				return ctx.Err()
			}
			return nil
		})
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) {
			l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "tmp", EmptyDir: &spec.EmptyDir{Medium: "Memory"}}}
		}))
		clean := func() bool {
			n.last()
			clean, err := n.host.Clean(t.Context(), db0)
			must(t, err)
			return clean
		}
		if clean() {
			t.Fatal("no scratch was made; the test shows nothing")
		}
		n.kill()
		removed := map[string]bool{}
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			removed[c.Op] = true
			return nil
		})
		n.found = Found{Clean: true} // what is half made is in no list
		n.run()
		n.w.Tell(life(5, records.GoalStop))
		n.wantStopped(tok(5))
		if !clean() || !removed["Remove"] || !removed["Detach"] || !removed["RemoveSandbox"] {
			t.Errorf("stopped is told; scratch is gone: %v; done: %v", clean(), removed)
		}
	})
}

func TestWhatStandsOfAnUnknownLifeIsClearedBeforeTheFirst(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		_, err := n.host.EnsureSandbox(t.Context(), runtime.Sandbox{ID: db0, Token: tok(3), Hostname: "db-0"})
		must(t, err)
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		boxes, err := n.host.Sandboxes(t.Context())
		must(t, err)
		if len(boxes) != 1 || boxes[0].Token != tok(5) {
			t.Errorf("got %+v", boxes)
		}
	})
}
