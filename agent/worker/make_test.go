package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// After most errors of a start only a look tells what came of it.
func TestAStartOfWhichNothingIsKnownIsNoCrash(t *testing.T) {
	for name, start := range map[string]func(context.Context) error{
		"the runtime went away": func(context.Context) error { return runtime.ErrUnavailable },
		"it took longer than it may": func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("start: %w", ctx.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				tries := 0
				n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
					if c.Op == "Start" {
						tries++
						if tries < 3 {
							return start(ctx)
						}
					}
					return nil
				})
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				time.Sleep(10 * time.Minute)
				if r := n.wantReady(); r.Containers[0].Restarts != 0 || tries != 3 {
					t.Errorf("after %d tries: %+v", tries, r.Containers[0])
				}
			})
		})
	}
}

// asked is a host that keeps what it was asked for.
type asked struct {
	*fakert.Host
	fresh   []bool
	scratch []string
}

func (a *asked) Ensure(ctx context.Context, id spec.Identity, v records.MemberVolume, fresh bool, group *runtime.Group) (string, error) {
	a.fresh = append(a.fresh, fresh)
	return a.Host.Ensure(ctx, id, v, fresh, group)
}

func (a *asked) Scratch(ctx context.Context, s runtime.Scratch) (string, error) {
	a.scratch = append(a.scratch, fmt.Sprintf("%s memory=%v size=%d", s.Name, s.Memory, s.SizeBytes))
	return a.Host.Scratch(ctx, s)
}

func (a *asked) HostPath(ctx context.Context, p runtime.HostPath) (string, error) {
	a.scratch = append(a.scratch, fmt.Sprintf("%s is %s %s", p.Name, p.Type, p.Path))
	return a.Host.HostPath(ctx, p)
}

// SAFETY S11: what was used once and is not there is never made anew.
func TestAVolumeIsMadeOnlyWhereTheServerKnowsItAsNewAndNoLifeWasReadyOnIt(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		host := &asked{Host: n.host}
		n.change = func(c *Config) { c.Volumes = host }
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.kill()
		n.run() // with a description from before it was ready
		n.host.Exit(cid, runtime.Exit{})
		n.wantReady()
		if want := []bool{true, false}; !slices.Equal(host.fresh, want) {
			t.Errorf("asked for a new volume: %v, want %v", host.fresh, want)
		}
	})
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.FreshVolumes = nil }))
		time.Sleep(time.Minute)
		n.wantLast("it is missing", func(r records.Report) bool { return r.Cause == causes.VolumeMissing })
		if got := n.host.Volumes(); len(got) != 0 {
			t.Errorf("made %v", got)
		}
		n.wantStarts(tok(5), 0)
	})
}

func TestAnEmptyDirIsMadeAsItIsDescribedAndAClaimGoesBeforeIt(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		host := &asked{Host: n.host}
		n.change = func(c *Config) { c.Volumes = host }
		kind := "Directory"
		limit, err := scalar.ParseQuantity("1Mi")
		must(t, err)
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) {
			l.Template.Spec.Volumes = []spec.VolumeMedia{
				{Name: "shm", EmptyDir: &spec.EmptyDir{Medium: "Memory", SizeLimit: &limit}},
				{Name: "tmp", EmptyDir: &spec.EmptyDir{}},
				{Name: "data", EmptyDir: &spec.EmptyDir{}},
				{Name: "logs", HostPath: &spec.HostPathVolume{Path: "/var/log", Type: &kind}},
			}
		}))
		n.wantReady()
		if want := []string{"shm memory=true size=1048576", "tmp memory=false size=0", "logs is Directory /var/log"}; !slices.Equal(host.scratch, want) {
			t.Errorf("made %q, want %q", host.scratch, want)
		}
		made, _ := n.host.Container(cid)
		want := runtime.Mount{Source: "/fake/volumes/default/db/data-0", Target: "/data"}
		if !slices.Contains(made.Mounts, want) {
			t.Errorf("mounts %+v, want %+v among them", made.Mounts, want)
		}
	})
}

func TestAContainerKeepsVolumeNewAsItFoundIt(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.noSide()
		n.prober = &tellProber{now: probe.Health{Started: true}}
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed, withSide))
		n.wantStarts(tok(5), 1)
		n.w.Tell(with(life(5, records.GoalRun), probed, withSide, func(l *records.Life) { l.FreshVolumes = nil }))
		n.w.FilesChanged()
		time.Sleep(time.Minute) // until all else was written again
		n.host.AddImage("img:2")
		n.w.ImagesChanged()
		n.wantLast("both run", func(r records.Report) bool { return r.Phase == records.PhaseRunning && !r.Ready })
		if got := n.steadFile(files.VolumeNewFile); got != "data first\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestVolumeNewIsGoneForWhatTheNextAgentStartsAfterReady(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		n.kill()
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.run()
		n.wantReady()
		n.wantStarts(tok(5), 2)
		if got := n.steadFile(files.VolumeNewFile); got != "" {
			t.Errorf("got %q", got)
		}
	})
}

func TestTheMemberIsToldThatItsSetIsBootstrapped(t *testing.T) {
	for _, c := range []struct {
		name          string
		picture, life bool
		want          string
	}{
		{"neither says so", false, false, ""},
		{"the picture does", true, false, "1\n"},
		{"what began the life does, whose picture is older", false, true, "1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.pictured(func(p *records.Snapshot) { p.Bootstrapped = c.picture })
				n.run()
				n.w.Tell(with(life(5, records.GoalRun), func(l *records.Life) { l.Bootstrapped = c.life }))
				n.wantReady()
				if got := n.steadFile(files.BootstrappedFile); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// pictured changes the pictures that the node is told.
func (n *node) pictured(change func(*records.Snapshot)) {
	n.pictures = func(c *files.SetFilesConfig) {
		told := c.Snapshot
		c.Snapshot = func(ref spec.SetRef) (records.Snapshot, bool) {
			p, ok := told(ref)
			change(&p)
			return p, ok
		}
	}
}

// Who reads set.json takes up the file events after the event that set.json names: it must
// not be one that is not in that file.
func TestThePictureNamesNoEventThatTheNodeHasNotHeardOf(t *testing.T) {
	event := func(number int64) records.Change { return records.Change{Epoch: 1, Number: number} }
	for _, c := range []struct {
		name        string
		heard, told int64
		want        int64
	}{
		{"the history is behind the picture", 4, 7, 4},
		{"it is as far", 7, 7, 7},
		{"it is before it", 9, 7, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				heard, told := event(c.heard), event(c.told)
				n.pictured(func(p *records.Snapshot) { p.Told = told.ID() })
				picture := n.pictures
				n.pictures = func(w *files.SetFilesConfig) {
					picture(w)
					w.History = func(spec.SetRef) []records.Change { return []records.Change{event(1), heard} }
					w.Confirmed = func() time.Duration { return 90 * time.Second }
				}
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				n.wantReady()
				var set struct{ Event records.ChangeID }
				must(t, json.Unmarshal([]byte(n.steadFile(files.SetFile)), &set))
				if set.Event.Number != c.want {
					t.Errorf("got %+v, want %d", set.Event, c.want)
				}
				if got := n.steadFile(files.ConfirmedFile); got != "90.00\n" {
					t.Errorf("confirmed: %q", got)
				}
			})
		})
	}
}

// What the member cannot be told keeps it from starting.
func TestFilesThatCannotBeWrittenAreTold(t *testing.T) {
	for name, cause := range map[string]causes.Cause{
		files.MemberFile: causes.FilesError, files.EventsFile: causes.FilesError, files.SetFile: causes.FilesError, files.ConfirmedFile: causes.FilesError,
		files.VolumeNewFile: causes.StartError, // written at each start
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(t *testing.T, n *node) {
				n.pictures = func(c *files.SetFilesConfig) {
					c.History = func(spec.SetRef) []records.Change { return []records.Change{{Epoch: 1, Number: 1}} }
					c.Confirmed = func() time.Duration { return time.Second }
				}
				inWay := filepath.Join(files.At(filepath.Join(n.dir, "run-b1"), db0).Stead, name)
				must(t, os.MkdirAll(filepath.Join(inWay, "x"), 0o755))
				n.run()
				n.w.Tell(life(5, records.GoalRun))
				time.Sleep(time.Minute)
				n.wantLast("the cause", func(r records.Report) bool { return r.Cause == cause && strings.Contains(r.Message, name) })
				n.wantStarts(tok(5), 0)
				must(t, os.RemoveAll(inWay))
				time.Sleep(time.Minute)
				n.wantReady()
			})
		})
	}
}

// While its first container crashes its peers may have formed the cluster: it must not form
// another one.
func TestAContainerThatStartsAgainReadsWhatItsVolumeIsByThen(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		var seen []string
		n.host.OnCall(func(_ context.Context, c fakert.Call) error {
			if c.Op == "Start" {
				seen = append(seen, n.steadFile(files.VolumeNewFile))
			}
			return nil
		})
		n.prober = &tellProber{now: probe.Health{Started: true}}
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		n.wantStarts(tok(5), 1)
		n.w.Tell(with(life(5, records.GoalRun), probed, func(l *records.Life) {
			l.FreshVolumes = map[spec.ClaimName]string{"data": records.VolumeReplaced}
		}))
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantStarts(tok(5), 2)
		if want := []string{"data first\n", "data replaced\n"}; !slices.Equal(seen, want) {
			t.Errorf("the containers found %q, want %q", seen, want)
		}
	})
}
