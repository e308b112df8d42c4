package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// shared makes the class of all volumes shared on these nodes, and fencing by itself where
// that is said.
func shared(fenced bool, nodes ...spec.NodeName) func(*World) {
	return func(w *World) {
		say(w)
		for _, name := range nodes {
			f := proof.FindNode(w.Nodes, name).Facts
			f.Classes, f.SharedClasses = []string{spec.LocalClass}, []string{spec.LocalClass}
			if fenced {
				f.FencedClasses = f.SharedClasses
			}
		}
		for _, slot := range w.Slots {
			if slot.Volumes["data"] != nil {
				slot.Volumes["data"].Shared = true
			}
			if slot.Member != nil {
				slot.Member.Volumes[0].Shared, slot.Member.Volumes[0].Fenced = true, fenced
			}
		}
	}
}

func TestASharedVolumeGoesWhereItsMemberStarts(t *testing.T) {
	const lost = "ordered 2 n1 n2 n3 volumes 0:ready 1:ready@n2 replace=60 silent=n2,62"
	check(t, []rule{
		{name: "its storage fences by itself", world: lost, change: shared(true, "n1", "n2", "n3"), want: "start=1/Replace@n3 | 1:Starting"},
		{name: "a fence is needed", world: lost, change: shared(false, "n1", "n2", "n3"), want: "| 1:NodeSilent", says: "late writes may still arrive"},
		{name: "where the class is shared, too", world: lost, change: shared(true, "n1", "n2"), want: "start=1/Replace@n1 | 1:Starting"},
		{name: "a class of that name alone does not do", world: "ordered 2 n2 n3 volumes 0:ready@n2 1:over@n2 replace=60 silent=n2,9",
			change: shared(true, "n2"), want: "| 0:NodeSilent 1:WaitingForPredecessor"},
		{name: "nowhere else", world: "parallel 1 n2 n3 volumes 0:over@n2 silent=n2,9", change: shared(true, "n2"), want: "| 0:NoStorageClass", says: "node n3 does not share its storage class local"},
		{name: "one that is not shared waits for its node", world: lost, want: "| 1:NodeSilent", says: "its volumes are on node n2"},
	})
}

// TestWhatIsWrittenOfASharedVolume: the volume's node, and with the life that it is shared.
func TestWhatIsWrittenOfASharedVolume(t *testing.T) {
	w := world(t, "ordered 2 n1 n2 n3 volumes 0:ready 1:over@n2 silent=n2,9")
	shared(true, "n1", "n2", "n3")(&w)
	start := Next(w).Actions[0].(Start)
	if len(start.Moved) != 1 || start.Moved[0].Node != start.Member.Node || start.Moved[0].UID != "old-1" || w.Slots[1].Volumes["data"].Node != "n2" {
		t.Errorf("moved are %+v of a life on %s", start.Moved, start.Member.Node)
	}
	if v := start.Member.Volumes[0]; v.ID != "old-1" || !v.Shared || !v.Fenced || len(start.Volumes) != 0 {
		t.Errorf("the life has %+v, and new ones %+v", v, start.Volumes)
	}
	fresh := world(t, "ordered 1 n1 volumes")
	shared(false, "n1")(&fresh)
	start = Next(fresh).Actions[len(Next(fresh).Actions)-1].(Start)
	if !start.Volumes[0].Shared || start.Volumes[0].Node != "n1" || !start.Member.Volumes[0].Shared || start.Member.Volumes[0].Fenced || len(start.Moved) != 0 {
		t.Errorf("the first volume is %+v, of a life with %+v", start.Volumes[0], start.Member.Volumes)
	}
}

// TestAFenceIsNeededForWhatMayBeWrittenLate, and for nothing that time ends, or that stays.
func TestAFenceIsNeededForWhatMayBeWrittenLate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*World)
		want   int
	}{
		"shared without a fence of its own": {shared(false, "n1", "n2"), 1},
		"shared with one":                   {shared(true, "n1", "n2"), 0},
		"not shared":                        {say, 0},
	} {
		w := world(t, "ordered 2 n1 n2 volumes 0:ready 1:ready@n2 replace=60 silent=n2,30")
		c.change(&w)
		if got := FenceNeeded(w); len(got) != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	lost := records.Volume{Fate: records.FateLost, Shared: true}
	if proof.LostWithHost(&lost, &Node{Fenced: true}) {
		t.Error("a shared volume counts as lost with a host")
	}
}

// TestWhatIsWrittenWhereNothingMoves: a shared volume whose member begins where it is, and
// one that is not shared though its class is by now.
func TestWhatIsWrittenWhereNothingMoves(t *testing.T) {
	w := world(t, "ordered 1 n1 n2 volumes 0:over")
	shared(true, "n1", "n2")(&w)
	if start := Next(w).Actions[0].(Start); start.Member.Node != "n1" || len(start.Moved) != 0 {
		t.Errorf("on %s, moved are %+v", start.Member.Node, start.Moved)
	}
	w.Slots[0].Volumes["data"].Shared = false
	if v := Next(w).Actions[0].(Start).Member.Volumes[0]; v.Shared || v.Fenced {
		t.Errorf("the life has %+v; its volume is not shared", v)
	}
}

// TestAVolumeThatIsNotSharedIsNotMoved, also should a life be placed elsewhere.
func TestAVolumeThatIsNotSharedIsNotMoved(t *testing.T) {
	s := newStep(world(t, "ordered 1 n1 n2 volumes 0:over"))
	var a Start
	if no := s.storage(s.members[0], &records.IdentityRecord{}, s.node("n2"), &a); no != nil || len(a.Moved) != 0 {
		t.Errorf("moved are %+v; %v", a.Moved, no)
	}
}

// TestARestoredVolumeIsSharedWhereItsClassIs: as its node says, if it says anything.
func TestARestoredVolumeIsSharedWhereItsClassIs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*World)
		want   bool
	}{
		"the node shares the class": {shared(false, "n1"), true},
		"it does not":               {say, false},
		"it is not known":           {func(w *World) { w.Nodes = w.Nodes[1:] }, false},
	} {
		w := world(t, "ordered 1 volumes n1 n2 0:none")
		c.change(&w)
		asks(0, records.VerbRestore, func(_ *World, _ *Slot, q *records.VolumeRequest) { q.Volume = "old-1" }, tells(records.VolumeTrashed, ""),
			func(w *World, slot *Slot, _ *records.VolumeRequest) { slot.Said["data"].Class = spec.LocalClass })(&w)
		if got := Next(w).Actions[0].(RestoreVolume).Volume.Shared; got != c.want {
			t.Errorf("%s: shared %v", name, got)
		}
	}
}
