package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

func at(rev int64) spec.Sequence { return spec.Sequence{Epoch: 1, Rev: rev} }

// twins has two containers.
func twins(l *records.Life) {
	l.Template.Spec.Containers = append(slices.Clone(l.Template.Spec.Containers), spec.Container{Name: "log", Image: "log:1"})
}

// changeTo has a change in place ordered, which change makes of the template.
func changeTo(rev int64, change func(*spec.Container)) func(*records.Life) {
	return func(l *records.Life) {
		l.Member.Change = &inplace.ChangeOrder{ID: at(rev), Revision: spec.RevisionHash(fmt.Sprintf("r%d", rev))}
		templated(change)(l)
	}
}

// templated has another template, without an order.
func templated(change func(*spec.Container)) func(*records.Life) {
	return func(l *records.Life) {
		l.Template.Spec.Containers = slices.Clone(l.Template.Spec.Containers)
		for i := range l.Template.Spec.Containers {
			change(&l.Template.Spec.Containers[i])
		}
	}
}

// image gives all containers the tag of their images.
func image(tag string) func(*spec.Container) {
	return func(c *spec.Container) {
		name, _, _ := strings.Cut(c.Image, ":")
		c.Image = name + ":" + tag
	}
}

func memory(bytes int64) func(*spec.Container) {
	return func(c *spec.Container) {
		c.Resources.Limits = map[string]scalar.Quantity{"memory": {Milli: bytes * 1000}}
	}
}

// acts are what the host was asked to change of containers, in order.
func (n *node) acts() (since func() []string) {
	var mu sync.Mutex
	var seen []string
	n.host.OnCall(func(_ context.Context, c fakert.Call) error {
		mu.Lock()
		defer mu.Unlock()
		switch c.Op {
		case "Create", "Start", "Signal", "Remove", "Resize", "KillAll":
			seen = append(seen, strings.TrimSpace(c.Op+" "+c.Name))
		}
		return nil
	})
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		out := seen
		seen = nil
		return out
	}
}

func wantActs(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", when, got, want)
	}
}

// wantImages wants containers to run by these images, in their order, and none to have been restarted.
func (n *node) wantImages(want ...string) {
	n.t.Helper()
	r := n.last()
	var got []string
	for _, c := range r.Containers {
		made, _ := n.host.Container(ctrID(c.Name))
		got = append(got, made.Image)
		if c.Restarts != 0 || c.Image != made.Image {
			n.t.Errorf("%s is reported as %+v, and has image %s", c.Name, c, made.Image)
		}
	}
	if !slices.Equal(got, want) {
		n.t.Errorf("got images %q, want %q", got, want)
	}
}

func (n *node) wantDone(rev int64) records.Report {
	n.t.Helper()
	return n.wantLast("the change done", func(r records.Report) bool {
		return r.Change == inplace.ChangeResult{ID: at(rev), Revision: spec.RevisionHash(fmt.Sprintf("r%d", rev)), Done: true}
	})
}

func TestAnImageChangesInPlaceOneContainerAfterTheOther(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twins, func(l *records.Life) { l.MinReadySeconds = 60 }))
		time.Sleep(2 * time.Minute)
		n.wantReady()
		acts, before := n.acts(), len(n.all())
		n.w.Tell(with(life(5, records.GoalRun), twins, func(l *records.Life) { l.MinReadySeconds = 60 }, changeTo(7, image("2"))))
		wantActs(t, "a change of both", acts(),
			"Signal db", "Remove db", "Create db", "Start db", "Signal log", "Remove log", "Create log", "Start log")
		n.wantImages("img:2", "log:2")
		n.wantDone(7)
		n.wantReady()
		for _, r := range n.all()[before:] { // what is said of the health is of what runs
			if r.Change.Done && (!r.Ready || r.ReadyFor > 2*time.Minute) {
				t.Errorf("reported: %+v", r)
			}
			if r.Token != tok(5) || r.Phase != records.PhaseRunning {
				t.Errorf("another life: %+v", r)
			}
		}
		time.Sleep(2 * time.Minute)
		if r := n.wantReady(); r.ReadyFor < time.Minute || r.ReadyFor > 2*time.Minute {
			t.Errorf("it counts as ready for %s", r.ReadyFor)
		}
		n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(8, func(c *spec.Container) {
			if c.Name == "db" {
				image("3")(c)
			} else {
				image("2")(c)
			}
		})))
		wantActs(t, "a change of one", acts(), "Signal db", "Remove db", "Create db", "Start db")
		n.wantImages("img:3", "log:2")
		n.wantDone(8)
		n.host.Exit(cid, runtime.Exit{Code: 1}) // the first crash waits for nothing
		n.wantReady()
		n.wantLast("one restart", func(r records.Report) bool { return r.Containers[0].Restarts == 1 && r.Change.Done })
	})
}

func TestAnImageThatCannotBeHadLeavesTheContainerServing(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twins))
		n.wantReady()
		n.host.OnPull(func(ref, _ string) error {
			if ref == "log:2" {
				return runtime.ErrImageMissing
			}
			return nil
		})
		acts := n.acts()
		n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(7, image("2"))))
		n.wantCause(causes.ImageMissing, "image is missing")
		time.Sleep(10 * time.Minute)
		wantActs(t, "without its image", acts())
		n.wantImages("img:1", "log:1")
		n.wantLast("ready as it was, and not done", func(r records.Report) bool {
			return r.Ready && r.Change == inplace.ChangeResult{ID: at(7), Revision: "r7"}
		})
		n.w.Tell(with(life(5, records.GoalRun), twins)) // an older copy does not void it
		n.host.OnPull(nil)
		n.w.ImagesChanged()
		n.wantDone(7)
		n.wantImages("img:2", "log:2")
	})
}

// A pull that takes long goes on beside all else.
func TestALongPullForAChangeHoldsUpNothing(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		p := &tellProber{now: probe.Health{Started: true, Ready: true}}
		n.prober = p
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), probed))
		n.wantReady()
		var broken atomic.Int64
		pull := make(chan struct{})
		n.host.OnCall(func(ctx context.Context, c fakert.Call) error {
			if c.Op != "EnsureImage" {
				return nil
			}
			select {
			case <-pull:
				return nil
			case <-ctx.Done():
				broken.Add(1)
				return ctx.Err()
			}
		})
		n.w.Tell(with(life(5, records.GoalRun), probed, changeTo(7, image("2"))))
		if r := n.wantReady(); r.Cause != "" {
			t.Errorf("reported at once: %+v", r)
		}
		time.Sleep(11 * time.Second)
		n.wantCause(causes.Pulling, "container db: image img:2 is being pulled")
		n.wantReady()
		p.say(probe.Health{Started: true, Message: "readiness probe: 503"})
		n.wantLast("not ready", func(r records.Report) bool { return !r.Ready })
		p.say(probe.Health{Started: true, Ready: true})
		n.wantReady()
		n.w.Tell(with(life(5, records.GoalRun), probed, changeTo(8, image("1")))) // back
		n.wantDone(8)
		n.wantReady()
		n.wantStarts(tok(5), 1)
		if broken.Load() != 1 {
			t.Errorf("the pull was broken off %d times", broken.Load())
		}
		n.w.Tell(with(life(5, records.GoalRun), probed, changeTo(9, image("2"))))
		n.host.Exit(cid, runtime.Exit{Code: 1})
		time.Sleep(time.Minute)
		n.wantCause(causes.Pulling, "img:2") // what crashes begins again by the newest order
		n.wantStarts(tok(5), 1)
		close(pull)
		n.wantDone(9)
		n.wantStarts(tok(5), 2)
	})
}
