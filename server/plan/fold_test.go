package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// folder has the fold of a set along the worlds that it is shown, and checks each.
type folder struct {
	fold   Fold
	before World
	set    records.Set
	out    struct{ up, queued, vacant, surplus, unfolded int } // members left out, and worlds not planned folded
}

// check fails unless a folded world is planned as the whole one, by a fold that was moved here by what
// differs from the world before.
func (f *folder) check(t *testing.T, w World) {
	t.Helper()
	w.Table = false
	w.VolumeID = func() records.VolumeID { return "v" }
	bare := w
	bare.Slots = nil
	if !Foldable(bare) {
		return
	}
	slot := func(ordinal int) Slot {
		if i, known := w.find(ordinal); known {
			return w.Slots[i]
		}
		return Slot{ID: spec.Identity{Namespace: w.Set.Ref.Namespace, Set: w.Set.Ref.Name, Ordinal: ordinal}}
	}
	if f.fold.members == nil || !f.fold.Fits(bare) || !reflect.DeepEqual(f.set, *w.Set) {
		f.fold.Build(w)
	} else {
		f.fold.Move(bare, f.moved(w), slot)
	}
	f.before, f.set = w, *w.Set
	f.before.Slots = slices.Clone(w.Slots)
	now := f.fold.World(bare, slot)
	var fresh Fold
	fresh.Build(w)
	want := fresh.World(bare, slot)
	want.Folded.newest = now.Folded.newest // one that was the newest stays it
	if !reflect.DeepEqual(now.Slots, want.Slots) || !reflect.DeepEqual(now.Folded, want.Folded) {
		t.Fatalf("moved: %+v\nbuilt: %+v", now.Folded, want.Folded)
	}
	if !plannedAlike(t, w, now) {
		f.out.unfolded++
		return
	}
	f.out.up += total(now.Folded.up)
	f.out.queued += now.Folded.queued
	f.out.vacant += total(now.Folded.vacant)
	f.out.surplus += total(now.Folded.surplus)
}

// moved are the ordinals of which a record, or their node, is another than before.
func (f *folder) moved(w World) (ordinals []int) {
	for _, slots := range [][2][]Slot{{f.before.Slots, w.Slots}, {w.Slots, f.before.Slots}} {
		for _, s := range slots[0] {
			i := slices.IndexFunc(slots[1], func(o Slot) bool { return o.ID == s.ID })
			if i < 0 || !reflect.DeepEqual(slots[1][i], s) {
				ordinals = append(ordinals, s.ID.Ordinal)
			}
		}
	}
	for i := range w.Nodes {
		if i >= len(f.before.Nodes) || !reflect.DeepEqual(w.Nodes[i].Session, f.before.Nodes[i].Session) || w.Nodes[i].Node != f.before.Nodes[i].Node ||
			w.Nodes[i].Facts != f.before.Nodes[i].Facts {
			ordinals = append(ordinals, f.fold.On(w.Nodes[i].Node.Name)...)
		}
	}
	slices.Sort(ordinals)
	return slices.Compact(ordinals)
}

// plannedAlike compares the plans of a world and of the same folded; false: the latter is not enough.
func plannedAlike(t *testing.T, whole, folded World) bool {
	t.Helper()
	want, got := Next(whole), Next(folded)
	if got.Unfold {
		return false
	}
	others := map[int]int{}
	for i := range got.Blocked {
		others[got.Blocked[i].ID.Ordinal] = got.Blocked[i].Others
		got.Blocked[i].Others = 0
	}
	kinds := map[Blocked]int{} // what each waits for that is left out, without its name
	want.Blocked = slices.DeleteFunc(want.Blocked, func(b Blocked) bool {
		_, there := folded.find(b.ID.Ordinal)
		b.ID = spec.Identity{}
		if !there {
			kinds[b]++
		}
		return !there
	})
	for i := range got.Blocked {
		b := got.Blocked[i]
		n := others[b.ID.Ordinal]
		b.ID = spec.Identity{}
		if n > 0 {
			kinds[b] -= n
		}
	}
	for b, n := range kinds {
		if n != 0 {
			t.Fatalf("%d members more or fewer wait for %+v\nfolded: %+v", n, b, folded.Folded)
		}
	}
	if len(want.Blocked) == 0 {
		want.Blocked = got.Blocked[:0]
	}
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("a folded world is planned otherwise\nwhole:  %s %s\nfolded: %s %s\nfolded: %+v", brief(want), written(want), brief(got), written(got), folded.Folded)
	}
	return true
}

func TestAFoldedWorldIsPlannedAsTheWholeOne(t *testing.T) {
	var out [5]int
	for seed := range uint64(400) {
		f := walk(t, rand.New(rand.NewPCG(seed, 11)))
		for i, n := range []int{f.out.up, f.out.queued, f.out.vacant, f.out.surplus, f.out.unfolded} {
			out[i] += n
		}
	}
	if slices.Min(out[:]) < 100 {
		t.Errorf("left out: up, queued, vacant, surplus; planned whole: %v; too little happened", out)
	}
}

// preparing has nodes pull the image of h2 ahead, which only these have not yet.
func preparing(nodes ...spec.NodeName) func(*World) {
	return func(w *World) {
		w.Revisions[1].Template.Spec.Containers = []spec.Container{{Name: "main", Image: "db:2"}}
		for i := range w.Nodes {
			name := w.Nodes[i].Node.Name
			w.Nodes[i].Facts = &records.NodeFacts{Name: name, Prepares: true}
			if !slices.Contains(nodes, name) {
				w.Nodes[i].Facts.Prepared = []records.Prepared{{Ref: w.Set.Ref, Revision: "h2", Done: true}}
			}
		}
	}
}

// What takes a walk too long to come to.
func TestAFoldedWorldLeavesNothingOut(t *testing.T) {
	asked := func(w *World) {
		w.Slots[0].Request = &records.Request{ID: w.Slots[0].ID, Token: w.Slots[0].Member.Token}
	}
	for _, c := range []struct {
		line   string
		change func(*World)
	}{
		{"ordered 12 n1 max=5 0:ready 1:ready", asked},
		{"ordered 12 n1 max=5 update=h2 current=h1 0:ready 1:ready", asked},
		{"ordered 9 n1 volumes fresh uid=u2 8:volume", nil},
		{"ordered 9 n1 volumes 0:starting 7:volume=Reclaiming+Trashed", nil},
		{"ordered 9 n1 volumes 0:starting 7:volume=Lost+Absent", nil},
		{"ordered 8 n1 update=h3 current=h2 history=0 0:ready/h1 1:ready/h1 2:ready/h1 3:ready/h2 4:ready/h2 5:ready/h2 6:ready/h2 7:ready/h2", nil},
		{"ordered 3 n1 update=h3 current=h2 history=0 0:starting/h3 1:ready/h2 2:ready/h2 3:ready/h1 4:ready/h1 5:ready/h2 6:ready/h2", nil},
		{"ordered 6 n1 update=h2 current=h1 OnDelete 0:ready 1:ready 2:ready 3:ready 4:ready 5:ready", nil},
		{"parallel 9 n1 n2 update=h2 current=h1 0:ready 1:ready 2:ready 3:ready 4:ready 5:ready 6:ready 7:ready 8:ready", preparing("n1")},
		{"parallel 9 n1 n2 update=h2 current=h1 0:ready 1:ready 2:ready 3:ready 4:ready 5:ready 6:ready@n2/h2 7:ready@n2/h2 8:ready@n2/h2", preparing("n2")},
		{"ordered 9 last n1 update=h2 current=h1 0:ready 1:ready 2:ready 3L:ready 4:ready 5:ready 6:ready 7:ready 8:ready", nil},
		{"ordered 9 n1 update=h2 current=h1 0:ready 1:ready 2:ready 3B:ready 4:ready 5:ready 6:ready 7:ready 8:ready", nil},
		{"ordered 6 n1 was volumes 1:volume 2:volume 3:volume 4:volume", nil},
	} {
		w := world(t, c.line)
		if c.change != nil {
			c.change(&w)
		}
		new(folder).check(t, w)
	}
}

// walk plans a set of a dozen members from anywhere, while its hosts obey and a little goes wrong.
func walk(t *testing.T, r *rand.Rand) *folder {
	w, f := world(t, anyLine(r)), &folder{}
	for range 40 {
		f.check(t, w)
		p := Next(w)
		w = apply(w, p)
		w.Rev++
		w.Reached = p.Reached
		w.Slots = slices.Clone(w.Slots)
		for i := range w.Slots {
			if s := &w.Slots[i]; s.Member != nil && r.IntN(3) > 0 {
				obey(s)
			}
		}
		if w.Set == nil || len(w.Slots) == 0 {
			break
		}
		change(&w, r)
	}
	return f
}

// change does one thing to the set or to a node, or none.
func change(w *World, r *rand.Rand) {
	set := *w.Set
	edit := func() { w.Set = &set }
	switch r.IntN(40) {
	case 0, 1, 2, 3:
		harm(&w.Slots[r.IntN(len(w.Slots))], r)
	case 4, 5, 6:
		n := int32(r.IntN(14))
		set.Spec.Replicas = &n
		edit()
	case 7, 8:
		w.TemplateHash = spec.RevisionHash(fmt.Sprint("h", 1+r.IntN(3)))
	case 9, 10:
		w.Nodes = slices.Clone(w.Nodes)
		silent := w.Nodes[1].Session == nil
		w.Nodes[1].Session = nil
		if silent {
			w.Nodes[1].Session = &records.Session{Node: "n2", UID: "uid-n2", Boot: "boot1", ID: 5}
		}
	case 11:
		w.Nodes = slices.Clone(w.Nodes)
		w.Nodes[1].Unread = !w.Nodes[1].Unread
	case 12:
		set.Paused = !set.Paused
		edit()
	case 13:
		set.Orphaned = !set.Orphaned
		edit()
	case 14:
		set.Deleting = !set.Deleting
		edit()
	case 15:
		set.Spec.UpdateStrategy.Type = []string{spec.OnDeleteStrategy, spec.RecreateStrategy, ""}[r.IntN(3)]
		edit()
	case 16:
		p := int32(r.IntN(5))
		set.Spec.UpdateStrategy.RollingUpdate = &spec.RollingUpdate{Partition: &p}
		edit()
	case 17:
		set.Spec.ServiceName, w.TemplateHash = fmt.Sprint("s", r.IntN(3)), "h3"
		edit()
	case 18:
		w.Bootstrapped, w.WasBootstrapped = !w.Bootstrapped, w.Bootstrapped && r.IntN(2) == 0
	case 19:
		w.Awaited, w.AwaitFor = nil, 0
		if r.IntN(2) == 0 {
			w.Awaited, w.AwaitFor = []spec.NodeName{"n1"}, time.Second
		}
	}
}

// anyLine is a set of up to a dozen members in the middle of something, as kit_test.go writes it.
func anyLine(r *rand.Rand) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	line := fmt.Sprintf("%s %d n1 n2 n3 %s %s %s update=h%d current=h1", pick("ordered", "ordered", "parallel"), 4+r.IntN(9),
		pick("", "volumes"), pick("", "", "fresh"), pick("", "", "last", "max=2", "max=5", "floor=50%", "floor=100%", "whenScaled=Delete", "history=0", "min=5"), 1+r.IntN(3))
	at, missing := r.IntN(13), 3+r.IntN(10)
	for ordinal := range r.IntN(14) {
		state := pick("ready", "ready", "ready", "ready", "ready", "ready", "ready", "ready", "running", "starting", "over", "stopping", "never", "none", "stray", "loop", "young")
		if ordinal >= missing {
			state = pick("none", "none", "none", "ready")
		}
		revision := "h1"
		if ordinal >= at {
			revision = "h2"
		}
		line += fmt.Sprintf(" %d:%s@n%d/%s", ordinal, state, 1+ordinal%3, revision)
	}
	return line
}

// obey has the node of a life do what is wanted, and say so.
func obey(s *Slot) {
	r := records.Report{ID: s.ID, Token: s.Member.Token, Node: s.Member.Node, Session: 5, Phase: records.PhaseRunning, Ready: true, ReadyFor: time.Hour}
	if s.Member.Goal == records.GoalStop {
		r.Phase, r.Ready = records.PhaseStopped, false
	}
	if s.Report != nil {
		r.Claim = s.Report.Claim
	}
	s.Report = &r
}

// harm does something to a member.
func harm(s *Slot, r *rand.Rand) {
	switch report := s.Report; r.IntN(8) {
	case 6:
		if report != nil {
			now := *report
			now.Claim.Leads, now.Claim.Term = !now.Claim.Leads, uint64(r.IntN(2))
			now.Claim.Busy = []string{"", "", "a backup"}[r.IntN(3)]
			s.Report = &now
		}
	case 3:
		for claim, v := range s.Volumes {
			now := *v
			now.Fate = []records.VolumeFate{records.FateKeep, records.FateDelete, records.FateReclaiming, records.FateLost}[r.IntN(4)]
			s.Volumes = with(s.Volumes, claim, &now)
		}
	case 4:
		if s.Identity != nil {
			rec := *s.Identity
			rec.LastToken.Epoch = 2
			s.Identity = &rec
		}
	case 5:
		for claim, v := range s.Volumes {
			s.Asked = with(s.Asked, claim, &records.VolumeRequest{ID: s.ID, Claim: claim, Volume: v.UID, Verb: records.VerbReclaim})
		}
	case 0:
		s.Strays = []NodeStray{{Node: "n3", Stray: spec.LifeID{ID: s.ID, Token: spec.Token{Epoch: 1, Number: 1}}}}
	case 1:
		s.Strays = nil
	case 2:
		if s.Member != nil {
			s.Request = &records.Request{ID: s.ID, Token: s.Member.Token}
		}
	default:
		if report != nil {
			now := *report
			now.Ready = false
			s.Report = &now
		}
	}
}

func written(p Plan) string {
	doc, err := json.Marshal(p)
	return fmt.Sprint(string(doc), err)
}

// A drain with --move moves the volume of a member whose life, which does not have it, is elsewhere.
func TestAFoldKnowsWhereVolumesAreWithoutTheirLife(t *testing.T) {
	w := world(t, "parallel 1 volumes n1 n2 0:ready@n1")
	id := w.Slots[0].ID
	v := *w.Slots[0].Volumes["data"]
	v.Node = "n2"
	slotOf(&w, id).Volumes = with(slotOf(&w, id).Volumes, "data", &v)
	var f Fold
	f.Build(w)
	if got := f.On("n2"); len(got) != 1 || len(f.listed) > 0 {
		t.Errorf("on n2 are %v; listed are %v", got, f.listed)
	}
	node := *proof.FindNode(w.Nodes, "n2").Node
	node.Drain = &records.Drain{Move: true}
	proof.FindNode(w.Nodes, "n2").Node = &node
	f.Move(w, f.On("n2"), func(int) Slot { return w.Slots[0] })
	if len(f.listed) != 1 {
		t.Errorf("listed are %v; the drain is to move the volume of the member", f.listed)
	}
}
