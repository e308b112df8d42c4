package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/changes"
	"github.com/stead-project/stead/spec/scalar"
)

// inPlaceWorld is a world in which revision hN has the image db:N, and all nodes change lives in place.
func inPlaceWorld(t *testing.T, line string) World {
	w := world(t, line)
	w.Set.Spec.UpdateStrategy.InPlace = []changes.Kind{changes.Image, changes.Resources}
	for i, r := range w.Revisions {
		next := *r
		next.Template.Spec.Containers = []spec.Container{{Name: "db", Image: "db:" + strings.TrimPrefix(string(r.Hash), "h")}}
		w.Revisions[i] = &next
		if next.Hash == w.TemplateHash {
			w.Set.Spec.Template = next.Template
		}
	}
	w.Nodes = slices.Clone(w.Nodes)
	for i := range w.Nodes {
		w.Nodes[i].Facts = &records.NodeFacts{Name: w.Nodes[i].Node.Name, Level: spec.Level}
	}
	return w
}

// container is that of a revision.
func container(w *World, h spec.RevisionHash) *spec.Container {
	i := slices.IndexFunc(w.Revisions, func(r *records.Revision) bool { return r.Hash == h })
	return &w.Revisions[i].Template.Spec.Containers[0]
}

// ordered has member 2 be changed in place to a revision, which its node said that, or did not (nil).
func ordered(to spec.RevisionHash, said *inplace.ChangeResult) func(*World) {
	return func(w *World) {
		slot := slotOf(w, spec.Identity{Namespace: "default", Set: "db", Ordinal: 2})
		m := *slot.Member
		m.Change = &inplace.ChangeOrder{ID: spec.Sequence{Epoch: 1, Rev: 50}, Revision: to}
		slot.Member = &m
		if said != nil {
			r := *slot.Report
			r.Change = *said
			slot.Report = &r
		}
	}
}

// told is what the node of member 2 says of a change.
func told(epoch, rev int64, to spec.RevisionHash, done bool, refused string) *inplace.ChangeResult {
	return &inplace.ChangeResult{ID: spec.Sequence{Epoch: epoch, Rev: rev}, Revision: to, Done: done, Refused: refused}
}

// reported is what the node of member 2 says without an order that is known.
func reportedChange(said *inplace.ChangeResult) func(*World) {
	return func(w *World) {
		slot := slotOf(w, spec.Identity{Namespace: "default", Set: "db", Ordinal: 2})
		r := *slot.Report
		r.Change = *said
		slot.Report = &r
	}
}

// inWords are the actions that concern changes, in words.
func inWords(p Plan) string {
	var words []string
	for _, a := range p.Actions {
		switch a := a.(type) {
		case ChangeInPlace:
			words = append(words, fmt.Sprintf("change %d to %s", a.ID.Ordinal, a.Change.Revision))
		case Promote:
			words = append(words, fmt.Sprintf("reach %d on %s", a.ID.Ordinal, a.Revision))
		case Stop:
			words = append(words, fmt.Sprintf("stop %d", a.ID.Ordinal))
		case Start:
			words = append(words, fmt.Sprintf("start %d on %s", a.Member.ID.Ordinal, a.Member.Revision))
		case OrderJob:
			words = append(words, fmt.Sprintf("job in %d", a.ID.Ordinal))
		}
	}
	return strings.Join(words, ", ")
}

func TestAMemberIsChangedInPlaceInItsTurn(t *testing.T) {
	const all = " update=h2 current=h1 0:ready 1:ready 2:ready"
	for _, tc := range []struct {
		name, world string
		change      func(*World)
		want        string // what is done
		says        string // part of what is said of it
	}{
		{"the highest first", "ordered 3 n1" + all, nil, "change 2 to h2", ""},
		{"as many as the budget allows", "ordered 3 n1 max=2" + all, nil, "change 2 to h2, change 1 to h2", ""},
		{"the leader last", "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2L:ready", func(w *World) {
			w.Set.Spec.UpdateStrategy.RollingUpdate = &spec.RollingUpdate{Order: spec.OrderLeaderLast}
		}, "change 1 to h2", ""},
		{"none while one is changed", "parallel 3 n1" + all, ordered("h2", nil), "", ""},
		{"none while one is changed, though it is ready", "ordered 3 n1" + all, ordered("h2", told(1, 50, "h2", false, "")), "", ""},
		{"none above the floor", "ordered 3 n1" + all, func(w *World) {
			w.Set.Spec.Disruption = &spec.Disruption{MinAvailable: &scalar.IntOrPercent{Number: 3}}
		}, "", ""},
		{"none below the partition", "ordered 3 n1 partition=3" + all, nil, "", ""},
		{"none while it is paused", "ordered 3 n1 paused" + all, nil, "", ""},
		{"none while it is busy", "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2B:ready", nil, "", ""},
		{"none under OnDelete", "ordered 3 n1 OnDelete" + all, nil, "", ""},
		{"none before nodes have the images", "ordered 3 n1" + all, func(w *World) { w.Nodes[0].Facts.Prepares = true }, "", ""},
		{"not one that is not available", "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:loop", nil, "stop 2", ""},

		{"not without the field", "ordered 3 n1" + all, func(w *World) { w.Set.Spec.UpdateStrategy.InPlace = nil }, "stop 2", "the update from revision h1 to h2"},
		{"not what it does not list", "ordered 3 n1" + all, func(w *World) { w.Set.Spec.UpdateStrategy.InPlace = w.Set.Spec.UpdateStrategy.InPlace[1:] }, "stop 2", "does not have Image"},
		{"not what differs otherwise", "ordered 3 n1" + all, func(w *World) { container(w, "h2").Args = []string{"x"} }, "stop 2", "template.spec.containers[0].args[0] differs"},
		{"not with an agent that does not know it", "ordered 3 n1" + all, func(w *World) { w.Nodes[0].Facts.Level = 2 }, "stop 2", "the agent of node n1 is too old"},
		{"not with an agent of which nothing is known", "ordered 3 n1" + all, func(w *World) { w.Nodes[0].Facts = nil }, "stop 2", "the agent of node n1 is too old"},
		{"not when its service is renamed", "ordered 3 n1" + all, func(w *World) { w.Set.Spec.ServiceName = "other" }, "stop 2", "its service is renamed"},
		{"not one that leads, and steps down", "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2L:ready", func(w *World) {
			container(w, "h1").StepDown, container(w, "h2").StepDown = &spec.Hook{}, &spec.Hook{}
		}, "stop 2", "is to step down first"},
		{"but one that does not lead", "ordered 3 n1 update=h2 current=h1 0:ready 1L:ready 2:ready", func(w *World) {
			container(w, "h1").StepDown, container(w, "h2").StepDown = &spec.Hook{}, &spec.Hook{}
		}, "change 2 to h2", ""},
		{"not with too little room", "ordered 3 n1" + all, func(w *World) {
			container(w, "h2").Resources = memoryOf(300)
			container(w, "h1").Resources = memoryOf(100)
			w.Nodes[0].Facts.MemoryBytes, w.Nodes[0].MemoryBytes = 499<<20, 300<<20
		}, "stop 2", "node n1 has 199Mi of 499Mi memory left, 200Mi more requested"},
		{"with room for what it asks for more", "ordered 3 n1 max=3" + all, func(w *World) {
			container(w, "h2").Resources = memoryOf(200)
			container(w, "h1").Resources = memoryOf(100)
			w.Nodes[0].Facts.MemoryBytes, w.Nodes[0].MemoryBytes = 500<<20, 300<<20
		}, "change 2 to h2, change 1 to h2, stop 0", ""},
		{"with less on a node that has promised too much", "ordered 3 n1" + all, func(w *World) {
			container(w, "h2").Resources = memoryOf(50)
			container(w, "h1").Resources = memoryOf(100)
			w.Nodes[0].Facts.MemoryBytes, w.Nodes[0].MemoryBytes = 200<<20, 300<<20
		}, "change 2 to h2", ""},

		{"one that is done counts as of its revision", "ordered 3 n1" + all, ordered("h2", told(1, 50, "h2", true, "")), "reach 2 on h2, change 1 to h2", ""},
		{"also while it is paused", "ordered 3 n1 paused" + all, ordered("h2", told(1, 50, "h2", true, "")), "reach 2 on h2", ""},
		{"also when it is not ready any more", "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:running", ordered("h2", told(1, 50, "h2", true, "")), "reach 2 on h2", ""},
		{"not by what an earlier order came to", "ordered 3 n1" + all, ordered("h2", told(1, 49, "h2", true, "")), "", ""},
		{"not by what is said of another revision", "ordered 3 n1" + all, ordered("h2", told(1, 50, "h1", true, "")), "", ""},
		{"a surplus one as well", "ordered 2 n1" + all, ordered("h2", told(1, 50, "h2", true, "")), "reach 2 on h2, stop 2", ""},

		{"one that was refused gets a new life", "ordered 3 n1" + all, ordered("h2", told(1, 50, "h2", false, "no")), "stop 2", "node n1 refused that: no"},
		{"but only in its turn", "ordered 3 n1 paused" + all, ordered("h2", told(1, 50, "h2", false, "no")), "", ""},
		{"within the budget", "parallel 3 n1 update=h2 current=h1 0:ready 1:running 2:ready", ordered("h2", told(1, 50, "h2", false, "no")), "", ""},
		{"what was refused, and is to go back, is another order", "ordered 3 n1 update=h1 current=h1 0:ready 1:ready 2:ready", ordered("h2", told(1, 50, "h2", false, "no")), "change 2 to h1", ""},
		{"one with an agent that does not know it any more", "ordered 3 n1" + all, func(w *World) {
			ordered("h2", nil)(w)
			w.Nodes[0].Facts.Level = 2
		}, "stop 2", "too old for that now"},

		{"another target is another order", "ordered 3 n1 update=h3 current=h1 0:ready 1:ready 2:ready", ordered("h2", nil), "change 2 to h3", ""},
		{"also back", "ordered 3 n1 update=h1 current=h1 0:ready 1:ready 2:ready", ordered("h2", nil), "change 2 to h1", ""},
		{"but not while that is paused", "ordered 3 n1 paused update=h3 current=h1 0:ready 1:ready 2:ready", ordered("h2", nil), "", ""},
		{"a new life where what was begun may not be taken back", "ordered 3 n1 update=h1 current=h1 0:ready 1:ready 2:ready", func(w *World) {
			ordered("h2", nil)(w)
			w.Set.Spec.UpdateStrategy.InPlace = nil
		}, "stop 2", "it has no updateStrategy.inPlace"},
		{"one that is not ready is not told another", "ordered 3 n1 update=h3 current=h1 0:ready 1:ready 2:loop", ordered("h2", nil), "stop 2", ""},

		{"a restore: what the node says, and the set has", "ordered 3 n1" + all, reportedChange(told(1, 190, "h2", true, "")), "reach 2 on h2, change 1 to h2", ""},
		{"a restore: an order is known, and a later one was done", "ordered 3 n1 update=h2 current=h2 0:ready/h2 1:ready/h2 2:ready/h2", func(w *World) {
			ordered("h2", told(1, 190, "h1", true, ""))(w)
		}, "reach 2 on h1, change 2 to h2", ""},
		{"a restore: what the set does not have is updated in its turn", "ordered 3 n1 update=h2 current=h2 0:ready/h2 1:ready/h2 2:ready/h2", reportedChange(told(1, 190, "h9", true, "")), "change 2 to h2", ""},
		{"a restore: what was under way, too", "ordered 3 n1 update=h2 current=h2 0:ready/h2 1:ready/h2 2:ready/h2", reportedChange(told(1, 190, "h2", false, "")), "change 2 to h2", ""},
		{"a restore: but not while it is paused", "ordered 3 n1 paused update=h2 current=h1 0:ready 1:ready 2:ready", reportedChange(told(1, 190, "h9", true, "")), "", ""},
		{"what is known to be done is not taken for another", "ordered 3 n1 update=h2 current=h2 0:ready/h2 1:ready/h2 2:ready/h2", func(w *World) {
			reportedChange(told(1, 50, "h1", true, ""))(w)
			m := *w.Slots[2].Member
			m.Changed = spec.Sequence{Epoch: 1, Rev: 50}
			w.Slots[2].Member = &m
		}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := inPlaceWorld(t, tc.world)
			for _, h := range []spec.RevisionHash{"h1", "h2", "h3"} { // those that the world does not name
				if !slices.ContainsFunc(w.Revisions, func(r *records.Revision) bool { return r.Hash == h }) {
					w.Revisions = slices.Insert(w.Revisions, 0, &records.Revision{Ref: w.Set.Ref, Hash: h, Template: spec.Template{Spec: spec.MemberSpec{
						Containers: []spec.Container{{Name: "db", Image: "db:" + strings.TrimPrefix(string(h), "h")}}}}})
				}
			}
			if tc.change != nil {
				tc.change(&w)
			}
			p := Next(w)
			if got := inWords(p); got != tc.want {
				t.Errorf("it does %q, want %q: %s", got, tc.want, brief(p))
			}
			for _, a := range p.Actions {
				if stop, is := a.(Stop); is && !strings.Contains(stop.Text, tc.says) {
					t.Errorf("it says %q, want %q", stop.Text, tc.says)
				}
				if c, is := a.(ChangeInPlace); is && !slices.ContainsFunc(p.Blocked, func(b Blocked) bool { return b.ID == c.ID && b.Reason == causes.BlockedChanging }) {
					t.Errorf("%s is not said to change: %s", c.ID.MemberName(), brief(p))
				}
				if c, is := a.(ChangeInPlace); is && (c.ID.Ordinal == 2 && c.Change.ID.Compare(spec.Sequence{Epoch: 1, Rev: 190}) <= 0 && w.Slots[2].Report.Change.ID.Rev == 190 || c.Identity.Due != c.Change.Revision) {
					t.Errorf("it orders %+v with what is due %s", c.Change, c.Identity.Due)
				}
			}
			n := 0
			for _, a := range p.Batch() {
				if _, is := a.(Promote); !is {
					n++
				}
			}
			if strings.HasPrefix(tc.want, "reach") && n > 0 {
				t.Errorf("what is reached is written with %d other actions", n)
			}
		})
	}
}

func memoryOf(memory int64) spec.ResourceRequirements {
	return spec.ResourceRequirements{Requests: map[string]scalar.Quantity{"memory": {Milli: memory << 20 * 1000}}}
}

func TestWhatAnOrderAndAStopMakeOfTheRecord(t *testing.T) {
	order := inplace.ChangeOrder{ID: spec.Sequence{Epoch: 1, Rev: 5}, Revision: "h2"}
	m := (&ChangeInPlace{Change: order}).Record(records.Member{Revision: "h1"})
	if m.Revision != "h1" || m.Runs() != "h2" || *m.Change != order {
		t.Errorf("ordered: %+v", m)
	}
	done := (&Promote{Revision: "h2", Changed: order.ID}).Record(m)
	if done.Revision != "h2" || done.Began != "h1" || done.Change != nil || done.Changed != order.ID {
		t.Errorf("done: %+v", done)
	}
	if back := (&Promote{Revision: "h1", Changed: order.ID}).Record(done); back.Revision != "h1" || back.Began != "" {
		t.Errorf("back: %+v", back)
	}
	if ends := (&Stop{Reason: records.ReasonUpdate}).Record(m); ends.Change != nil || ends.Runs() != "h1" {
		t.Errorf("stopped: %+v", ends)
	}
}

// The job would be ended with its container, and nobody knew what came of it.
func TestNoJobIsOrderedWhileAMemberChanges(t *testing.T) {
	w := inPlaceWorld(t, "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:ready")
	w.Set.Spec.Jobs = []spec.Job{{Name: "balance", After: hooks.AfterGrown}}
	w.Jobs = &hooks.Jobs{Ref: w.Set.Ref, Epoch: 1, Complete: true, Ordinals: []int{0, 1}}
	w.Bootstrapped, w.Set.InitialReplicas = true, 3
	w.Nodes[0].Facts.Jobs = true
	without := w
	without.Slots = slices.Clone(w.Slots)
	ordered("h2", nil)(&w)
	if got := inWords(Next(without)); !strings.Contains(got, "job") {
		t.Fatalf("no job is ordered at all: %s", brief(Next(without)))
	}
	if got := inWords(Next(w)); strings.Contains(got, "job") {
		t.Errorf("%s", got)
	}
}

func TestAPreviewTellsOfChangesInPlace(t *testing.T) {
	w := inPlaceWorld(t, "ordered 3 n1 max=2 update=h2 current=h1 0:ready 1:ready 2:ready")
	container(&w, "h2").Args = nil
	for _, r := range w.Revisions {
		r.Template.Spec.Containers[0].Resources = memoryOf(100)
	}
	w.Nodes[0].Facts.MemoryBytes, w.Nodes[0].MemoryBytes = 1<<30, 300<<20
	container(&w, "h2").Resources = memoryOf(150)
	f := Preview(w)
	var got []string
	for _, s := range f.Steps {
		got = append(got, fmt.Sprintf("%s, %d down", inWords(Plan{Actions: []Action{s.Action}}), s.Down))
	}
	if want := []string{"change 2 to h2, 2 down", "change 1 to h2, 2 down", "change 0 to h2, 1 down"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(f.Never)+len(f.Kept) > 0 || f.After.Nodes[0].MemoryBytes != 450<<20 {
		t.Errorf("in the end %v wait, %v are kept, and the node has promised %d", f.Never, f.Kept, f.After.Nodes[0].MemoryBytes>>20)
	}
	ordered("h2", nil)(&w) // one is under way
	if f := Preview(w); len(f.Steps) != 2 || len(f.Never) > 0 {
		t.Errorf("with one under way %+v, never %v", f.Steps, f.Never)
	}
}
