package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// What the containers run changes by a newer order, and by nothing else; what crashes begins again by the newest that was taken.
func TestOnlyANewerOrderChangesWhatContainersRun(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func(*records.Life)
		want string
		rev  int64 // of the order that was taken last
	}{
		{"a template without an order", templated(image("9")), "img:2", 7},
		{"the life as it began, of a restored store", func(*records.Life) {}, "img:2", 7},
		{"an older order", changeTo(6, image("9")), "img:2", 7},
		{"the same order with another template", changeTo(7, image("9")), "img:2", 7},
		{"an order of an older epoch", func(l *records.Life) {
			changeTo(9, image("9"))(l)
			l.Member.Change.ID.Epoch = 0
		}, "img:2", 7},
		{"a newer order", changeTo(8, image("9")), "img:9", 8},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, agent restarted %v", c.name, restart), func(t *testing.T) {
				scenario(t, func(t *testing.T, n *node) {
					n.run()
					n.w.Tell(life(5, records.GoalRun))
					n.wantReady()
					n.w.Tell(with(life(5, records.GoalRun), changeTo(7, image("2"))))
					n.wantDone(7)
					if restart {
						n.kill()
						n.run()
						n.wantDone(7)
					}
					n.w.Tell(with(life(5, records.GoalRun), c.tell))
					n.wantDone(c.rev)
					n.wantImages(c.want)
					starts := n.host.StartsOf(cid, tok(5))
					n.host.Exit(cid, runtime.Exit{Code: 1})
					n.wantStarts(tok(5), starts+1)
					n.wantReady()
					n.wantDone(c.rev)
					if made, _ := n.host.Container(cid); made.Image != c.want {
						t.Errorf("after a crash it runs %s, want %s", made.Image, c.want)
					}
				})
			})
		}
	}
}

// Without an order nothing of a life changes, whatever template is sent with it; but metadata does.
func TestATemplateWithoutAnOrderChangesNoContainer(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(life(5, records.GoalRun))
		n.wantReady()
		acts := n.acts()
		n.w.Tell(with(life(5, records.GoalRun), templated(image("2")), templated(memory(1<<30)), func(l *records.Life) {
			l.Template.Metadata.Labels = map[string]string{"tier": "gold"}
		}))
		n.w.Repair()
		wantActs(t, "told", acts())
		if got := n.steadFile(files.MemberFile); !strings.Contains(got, `"tier":"gold"`) {
			t.Errorf("the member reads %s", got)
		}
		n.host.Exit(cid, runtime.Exit{Code: 1})
		wantActs(t, "after a crash", acts(), "Remove db", "Create db", "Start db")
		if made, _ := n.host.Container(cid); made.Image != "img:1" || made.MemoryBytes != 0 {
			t.Errorf("it begins again as %+v", made)
		}
		n.wantLast("no change", func(r records.Report) bool { return r.Ready && r.Change == inplace.ChangeResult{} })
	})
}

func TestResourcesChangeWhileTheContainerRuns(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twins, func(l *records.Life) { l.MinReadySeconds = 1 }))
		time.Sleep(time.Minute)
		n.wantReady()
		acts, before := n.acts(), len(n.all())
		larger := changeTo(7, func(c *spec.Container) {
			if c.Name == "db" {
				c.Resources.Limits = map[string]scalar.Quantity{"cpu": {Milli: 1500}, "memory": {Milli: 1 << 40}}
				c.Resources.Requests = map[string]scalar.Quantity{"cpu": {Milli: 500}}
			}
		})
		n.w.Tell(with(life(5, records.GoalRun), twins, larger))
		wantActs(t, "told", acts(), "Resize db")
		n.wantDone(7)
		want := runtime.Resources{CPUMillis: 1500, CPURequestMillis: 500, MemoryBytes: 1<<40/1000 + 1}
		has := func(when string) {
			t.Helper()
			if made, _ := n.host.Container(cid); made.Resources != want {
				t.Errorf("%s it has %+v, want %+v", when, made.Resources, want)
			}
		}
		has("told")
		for _, r := range n.all()[before:] {
			if !r.Ready {
				t.Errorf("it runs on: %+v", r)
			}
		}
		n.kill()
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twins, larger))
		wantActs(t, "under another agent", acts())
		n.wantDone(7)
		n.host.Exit(cid, runtime.Exit{Code: 1})
		n.wantReady()
		has("after a crash")
		wantActs(t, "after a crash", acts(), "Remove db", "Create db", "Start db")
	})
}

func TestARefusalIsFinalForItsOrderAndWhatMayHealIsNone(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twins))
		n.wantReady()
		acts := n.acts()
		n.host.Use(ctrID("log"), runtime.Used{MemoryBytes: 1 << 30})
		both := func(c *spec.Container) { memory(1 << 20)(c); image("2")(c) }
		n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(7, memory(1<<20))))
		wantActs(t, "told", acts(), "Resize db", "Resize log")
		refused := n.wantLast("a refusal", func(r records.Report) bool {
			return r.Ready && !r.Change.Done && r.Change.ID == at(7) && strings.Contains(r.Change.Refused, "container log: ") && strings.Contains(r.Change.Refused, "it uses more than")
		})
		n.kill()
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(7, memory(1<<20))))
		n.host.Use(ctrID("log"), runtime.Used{})
		time.Sleep(time.Hour)
		wantActs(t, "for an hour", acts())
		if r := n.last(); r.Change != refused.Change {
			t.Errorf("reported: %+v, want %+v", r.Change, refused.Change)
		}
		n.host.Down(true)
		n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(8, memory(1<<21))))
		n.wantLast("no refusal", func(r records.Report) bool { return r.Change.ID == at(8) && r.Change.Refused == "" && !r.Change.Done })
		n.host.Down(false)
		time.Sleep(time.Minute)
		n.wantDone(8)
		n.host.Use(ctrID("log"), runtime.Used{MemoryBytes: 1 << 30})
		acts()
		n.w.Tell(with(life(5, records.GoalRun), twins, changeTo(9, func(c *spec.Container) {
			if c.Name == "db" {
				both(c)
			} else {
				memory(1 << 20)(c)
			}
		})))
		wantActs(t, "before any is ended", acts(), "Resize log")
		n.wantStarts(tok(5), 1)
	})
}

// An agent of the version before keeps no bounds with its containers.
func TestAContainerWhoseBoundsAreNotKnownGetsThem(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		n.change = func(c *Config) { c.Runtime = unsized{c.Runtime, new(bool)} }
		n.run()
		n.w.Tell(with(life(5, records.GoalRun)))
		n.wantReady()
		acts := n.acts()
		n.w.Repair()
		wantActs(t, "without an order", acts())
		n.w.Tell(with(life(5, records.GoalRun), changeTo(7, image("1"))))
		wantActs(t, "told", acts(), "Resize db")
		n.wantDone(7)
	})
}

// unsized does not tell the bounds of containers that were not resized.
type unsized struct {
	runtime.Runtime
	resized *bool
}

func (u unsized) Status(ctx context.Context, id runtime.ContainerID) (runtime.Status, error) {
	s, err := u.Runtime.Status(ctx, id)
	if !*u.resized {
		s.Resources = nil
	}
	return s, err
}

func (u unsized) Resize(ctx context.Context, id runtime.ContainerID, r runtime.Resources) error {
	*u.resized = true
	return u.Runtime.Resize(ctx, id, r)
}
