package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func TestFateIsRecordedBeforeTheFirstStop(t *testing.T) {
	check(t, []rule{
		{name: "scaled, Retain: it stays", world: "ordered 1 volumes n1 0:ready 1:ready",
			want: "stop=1/ScaleDown | 1:Stopping"},
		{name: "scaled, Delete: with the stop", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:ready",
			want: "stop=1/ScaleDown+1/Delete | 1:Stopping"},
		{name: "of all that go, with the first stop", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:ready 2:ready",
			want: "stop=2/ScaleDown+2/Delete,1/Delete | 2:Stopping 1:WaitingForSuccessor"},
		{name: "in parallel, each with its own", world: "parallel 1 volumes whenScaled=Delete n1 0:ready 1:ready 2:ready",
			want: "stop=2/ScaleDown+2/Delete stop=1/ScaleDown+1/Delete | 2:Stopping 1:Stopping"},
		{name: "whenDeleted says nothing of a scale down", world: "ordered 1 volumes whenDeleted=Delete n1 0:ready 1:ready",
			want: "stop=1/ScaleDown | 1:Stopping"},
		{name: "a policy changed to Delete while it stops", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:stopping",
			want: "set=1/Delete | 1:Stopping"},
		{name: "a policy changed to Retain while it stops", world: "ordered 1 volumes n1 0:ready 1:stopping=Delete",
			want: "set=1/Keep | 1:Stopping"},
		{name: "a policy changed to Retain before it stops", world: "ordered 1 volumes n1 0:ready 1:ready=Delete 2:stopping=Delete",
			want: "set=2/Keep,1/Keep | 2:Stopping 1:WaitingForSuccessor"},
		{name: "a trash period that is changed while it stops", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:stopping=Delete", change: trashed,
			want: "set=1/Delete | 1:Stopping"},
		{name: "that of a volume which is being given up stays", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:stopping=Reclaiming", change: trashed,
			want: "| 1:Stopping"},
		{name: "a claim that the set does not have keeps its fate", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:ready", change: unclaimed(1),
			want: "stop=1/ScaleDown+1/Delete | 1:Stopping"},
		{name: "and its size", world: "ordered 1 volumes n1 0:ready", change: unclaimed(0), want: "|"},
		{name: "of one that is over and not wanted, before it is forgotten", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:over",
			want: "set=1/Delete |"},
		{name: "of one that is over, by the policy of this moment", world: "parallel 1 volumes n1 0:ready 1:stopped=Delete",
			want: "set=1/Keep |"},
		{name: "a volume that is kept of an earlier scale down stays", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:volume",
			want: "|"},

		{name: "deleted, Retain", world: "ordered 1 volumes deleting n1 0:ready",
			want: "stop=0/Delete | 0:Stopping"},
		{name: "deleted, Delete", world: "ordered 1 volumes deleting whenDeleted=Delete n1 0:ready 1:ready",
			want: "stop=1/Delete+1/Delete,0/Delete | 1:Stopping 0:WaitingForSuccessor"},
		{name: "deleted, Delete: those of an earlier scale down go, too", world: "ordered 1 volumes deleting whenDeleted=Delete n1 0:ready 1:volume",
			want: "set=1/Reclaiming stop=0/Delete+0/Delete | 0:Stopping"},
		{name: "whenScaled says nothing of a deletion", world: "ordered 1 volumes deleting whenScaled=Delete n1 0:ready",
			want: "stop=0/Delete | 0:Stopping"},
		{name: "what a scale down decided stands when the set is deleted", world: "ordered 1 volumes deleting whenScaled=Delete n1 0:ready 1:stopping=Delete",
			want: "| 1:Stopping 0:WaitingForSuccessor"},
	})
}

// trashed changes the claim's trash period.
func trashed(w *World) {
	w.Set.Spec.VolumeClaimTemplates[0].Reclaim = &spec.Reclaim{After: &scalar.Duration{Duration: time.Minute}}
}

// unclaimed gives a member a volume of a claim that the set does not have any more.
func unclaimed(slot int) func(*World) {
	return func(w *World) {
		v := *w.Slots[slot].Volumes["data"]
		v.Claim, v.SizeBytes = "old", 1
		w.Slots[slot].Volumes["old"] = &v
	}
}

func TestMoreFatesThanOneTransactionHoldsAreRecordedFirst(t *testing.T) {
	line := "ordered 0 volumes whenScaled=Delete n1"
	for i := range maxFates + 1 {
		line += fmt.Sprintf(" %d:ready", i)
	}
	p := Next(world(t, line))
	if len(p.Actions) != 2 || len(p.Actions[0].(SetVolumes).Volumes) != maxFates || len(p.Actions[1].(SetVolumes).Volumes) != 1 {
		t.Fatalf("got %s; want two actions that record fates and no stop", brief(p))
	}
	fits := strings.TrimSuffix(line, fmt.Sprintf(" %d:ready", maxFates))
	if stop, ok := Next(world(t, fits)).Actions[0].(Stop); !ok || len(stop.Volumes) != maxFates {
		t.Errorf("got %s; want the first stop with all that one transaction holds", brief(Next(world(t, fits))))
	}
	line = strings.ReplaceAll(line, ":ready", ":ready=Delete")
	if got := brief(Next(world(t, line))); !strings.HasPrefix(got, fmt.Sprintf("stop=%d/ScaleToZero |", maxFates)) {
		t.Errorf("got %s; want the highest to stop once all is recorded", got)
	}
}

func TestAVolumeGoesOnlyWhenNoLifeCanUseIt(t *testing.T) {
	check(t, []rule{
		{name: "what is being given up is not decided again", world: "ordered 1 volumes n1 0:ready 1:stopping=Reclaiming",
			want: "| 1:Stopping"},
		{name: "the address goes with the last volume", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming+Trashed",
			change: func(w *World) {
				log := *w.Slots[1].Volumes["data"]
				log.Claim, log.Fate = "log", records.FateKeep
				w.Slots[1].Volumes["log"] = &log
			}, want: "drop=1 | 1:VolumeReclaiming"},
		{name: "while its member stops it stays", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:stopping=Delete",
			want: "| 1:Stopping"},
		{name: "silence is no proof", world: "ordered 1 volumes whenScaled=Delete n1 n2~ 0:ready 1:stopping@n2=Delete",
			want: "| 1:NodeSilent"},
		{name: "the life is forgotten first", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:stopped=Delete",
			want: "forget=1 |"},
		{name: "then it is reclaimed", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:volume=Delete",
			want: "set=1/Reclaiming |"},
		{name: "a life that the store does not know may use it", world: "ordered 1 volumes whenScaled=Delete n1 0:ready 1:volume=Delete",
			change: func(w *World) { w.Slots[1].Strays = []NodeStray{{Node: "n1", Stray: spec.LifeID{ID: w.Slots[1].ID}}} },
			want:   "| 1:Stray"},
		{name: "it is waited for", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming",
			want: "| 1:VolumeReclaiming"},
		{name: "a silent node is waited for", world: "ordered 1 volumes n1 n2~ 0:ready 1:volume@n2=Reclaiming",
			want: "| 1:NodeSilent"},
		{name: "a node that refuses says why", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming+Refused",
			want: "| 1:VolumeForeign"},
		{name: "gone from its place, it is forgotten with the address", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming+Trashed",
			want: "drop=1+address | 1:VolumeReclaiming"},
		{name: "without the address while the node runs a life of it", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming+Trashed",
			change: func(w *World) { w.Slots[1].Strays = []NodeStray{{Node: "n1", Stray: spec.LifeID{ID: w.Slots[1].ID}}} },
			want:   "drop=1 | 1:VolumeReclaiming"},
		{name: "or while its life is not over", world: "ordered 1 volumes n1 0:ready 1:stopping=Reclaiming+Trashed",
			want: "drop=1 | 1:Stopping"},
		{name: "or is forgotten in the same step", world: "ordered 1 volumes n1 0:ready 1:stopped=Reclaiming+Trashed",
			want: "forget=1 drop=1 | 1:VolumeReclaiming"},
		{name: "or if it has none", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming+Trashed",
			change: func(w *World) { w.Slots[1].Identity = nil }, want: "drop=1 | 1:VolumeReclaiming"},
		{name: "a node that is not known is silent", world: "ordered 1 volumes n1 0:ready 1:volume@n9=Reclaiming",
			want: "| 1:NodeSilent"},
		{name: "so is another machine under its name", world: "ordered 1 volumes n1 n2 0:ready 1:volume@n2=Reclaiming",
			change: func(w *World) { w.Nodes[1].Session.UID = "other" }, want: "| 1:NodeSilent"},
		{name: "a refusal of another volume says nothing", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming+Refused",
			change: func(w *World) { w.Slots[1].Said["data"].Volume = "other" }, want: "| 1:VolumeReclaiming"},
		{name: "one that was never made, too", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming+Absent",
			want: "drop=1+address | 1:VolumeReclaiming"},
		{name: "what was said of another volume proves nothing", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming+Trashed",
			change: func(w *World) { w.Slots[1].Said["data"].Volume = "other" }, want: "| 1:VolumeReclaiming"},
		{name: "one that is kept is not forgotten, whatever is said", world: "ordered 1 volumes n1 0:ready 1:volume=Keep+Trashed",
			want: "|"},
		{name: "one that is yet to go is not forgotten, whatever is said", world: "ordered 1 volumes n1 0:ready 1:stopping=Delete+Trashed whenScaled=Delete",
			want: "| 1:Stopping"},

		{name: "after a restore nothing goes before every node has said what it runs", world: "ordered 1 volumes n1 0:ready 1:volume=Delete",
			change: func(w *World) { w.Epoch = 2 }, want: "| 1:Restored"},
		{name: "nor is it forgotten", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming+Trashed",
			change: func(w *World) { w.Epoch = 2 }, want: "| 1:Restored"},
		{name: "deleting: fates first, the set last", world: "ordered 1 volumes deleting whenDeleted=Delete n1 0:volume=Delete",
			want: "set=0/Reclaiming |"},
		{name: "deleting: no life, and nothing was recorded yet", world: "ordered 1 volumes deleting whenDeleted=Delete n1 0:volume 1:volume",
			want: "set=0/Reclaiming set=1/Reclaiming |"},
		{name: "deleting: with a stray it is recorded all the same", world: "ordered 1 volumes deleting whenDeleted=Delete n1 0:volume",
			change: func(w *World) { w.Slots[0].Strays = []NodeStray{{Node: "n1", Stray: spec.LifeID{ID: w.Slots[0].ID}}} },
			want:   "set=0/Delete |"},
		{name: "deleting: of several the last is not all", world: "ordered 1 volumes deleting whenDeleted=Delete n1 0:volume=Delete 1:volume=Reclaiming",
			want: "set=0/Reclaiming | 1:VolumeReclaiming"},
		{name: "deleting: then the set goes", world: "ordered 1 volumes deleting whenDeleted=Delete n1 0:volume=Reclaiming",
			want: "remove | 0:VolumeReclaiming"},
		{name: "without its set it goes on", world: "gone volumes n1 0:volume=Delete 1:volume",
			want: "set=0/Reclaiming |"},
		{name: "without its set it is forgotten", world: "gone volumes n1 0:volume=Reclaiming+Trashed",
			want: "drop=0+address | 0:VolumeReclaiming"},
		{name: "without its set, with a life, nothing goes", world: "gone volumes n1 0:ready=Delete 1:ready=Reclaiming",
			want: "|"},
		{name: "a record that cannot be read keeps all", world: "gone volumes n1 0:volume=Delete",
			change: func(w *World) { w.Broken = []string{"sets/default/db"} }, want: "|"},
	})
}

// A size that a claim asks for is recorded for the volumes that exist, marked for their nodes, and restarts nobody.
func TestAVolumeGrowsWithItsClaim(t *testing.T) {
	w := world(t, "ordered 2 volumes n1 0:ready 1:ready")
	was := w.Slots[0].Volumes["data"].SizeBytes
	size, err := scalar.ParseQuantity("7Gi")
	if err != nil {
		t.Fatal(err)
	}
	w.Set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = map[string]scalar.Quantity{"storage": size}
	p := Next(w)
	grown := 0
	for _, a := range p.Actions {
		set, is := a.(SetVolumes)
		if !is {
			t.Errorf("it does %+v", a)
			continue
		}
		for _, v := range set.Volumes {
			grown++
			if v.SizeBytes != 7<<30 || !v.Grown || v.Fate != records.FateKeep || !v.Ordered() {
				t.Errorf("recorded %+v; it had %d bytes", v, was)
			}
		}
	}
	if grown != 2 {
		t.Errorf("%d volumes grow, want both", grown)
	}
}

func TestAMemberThatIsWantedAgainKeepsItsVolumeOrWaits(t *testing.T) {
	check(t, []rule{
		{name: "before it was stopped", world: "ordered 2 volumes whenScaled=Delete n1 0:ready 1:ready=Delete",
			want: "set=1/Keep |"},
		{name: "while it stops", world: "ordered 2 volumes whenScaled=Delete n1 0:ready 1:stopping=Delete",
			want: "set=1/Keep | 1:Stopping"},
		{name: "when it is over: first the fate", world: "ordered 2 volumes whenScaled=Delete n1 0:ready 1:stopped=Delete",
			want: "set=1/Keep | 1:WaitingForTurn"},
		{name: "without a life", world: "ordered 2 volumes whenScaled=Delete n1 0:ready 1:volume=Delete",
			want: "set=1/Keep | 1:WaitingForTurn"},
		{name: "then it begins with it", world: "ordered 2 volumes whenScaled=Delete n1 0:ready 1:volume",
			want: "start=1/Create@n1 | 1:Starting"},
		{name: "what is reclaimed does not come back", world: "ordered 2 volumes whenScaled=Delete n1 n2 0:ready 1:volume=Reclaiming",
			want: "| 1:VolumeReclaiming"},
		{name: "nor does a member of a set without the claim begin before it is gone", world: "ordered 2 n1 0:ready 1:volume=Reclaiming",
			want: "| 1:VolumeReclaiming"},
		{name: "a silent node is waited for", world: "ordered 2 volumes n1 n2~ 0:ready 1:volume@n2=Reclaiming",
			want: "| 1:NodeSilent"},
		{name: "gone: the address stays with the member", world: "ordered 2 volumes n1 0:ready 1:volume=Reclaiming+Trashed",
			want: "drop=1 | 1:VolumeReclaiming"},
	})
}

func TestANewVolumeAfterOneThatIsGoneHasTheNextNumber(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 0:ready 1:volume=Reclaiming+Trashed")
	drop := Next(w).Actions[0].(DropVolume)
	if drop.Identity.VolumeNumbers["data"] != 1 || drop.Identity.VolumeReady["data"] != 1 || drop.Identity.Address.IsValid() {
		t.Fatalf("left %+v; want the numbers, for the set stands, and no address", drop.Identity)
	}
	two := int32(2)
	w.Set.Spec.Replicas = &two
	w.Slots[1] = Slot{ID: w.Slots[1].ID, Identity: drop.Identity}
	start := Next(w).Actions[0].(Start)
	if start.Volumes[0].Number != 2 || start.Identity.VolumeReady["data"] >= 2 {
		t.Errorf("made %+v with %+v; want the number 2, on which nobody was ready", start.Volumes[0], start.Identity)
	}
	gone := Next(world(t, "gone volumes n1 0:volume=Reclaiming+Trashed")).Actions[0].(DropVolume)
	if gone.Identity.VolumeNumbers != nil || gone.Identity.LastToken.IsZero() {
		t.Errorf("left %+v of a set that is gone; want the last token alone", gone.Identity)
	}
}

func TestTheTrashPeriodIsThatOfTheClaimWhenItIsDecided(t *testing.T) {
	w := world(t, "ordered 1 volumes whenScaled=Delete n1 0:ready 1:ready")
	c := &w.Set.Spec.VolumeClaimTemplates[0]
	c.Reclaim = &spec.Reclaim{After: &scalar.Duration{Duration: time.Minute}}
	stop := Next(w).Actions[0].(Stop)
	if got := stop.Volumes[0].Trash(); got != time.Minute {
		t.Errorf("trash for %s; want 1m", got)
	}
	c.Reclaim = nil
	w.Slots[1].Volumes["data"].TrashAfter = &scalar.Duration{Duration: time.Minute}
	stop = Next(w).Actions[0].(Stop)
	if got := stop.Volumes[0].Trash(); got != spec.DefaultTrash {
		t.Errorf("trash for %s; want the default", got)
	}
	w = world(t, "gone volumes n1 0:volume=Delete")
	w.Slots[0].Volumes["data"].TrashAfter = &scalar.Duration{Duration: time.Minute}
	if got := Next(w).Actions[0].(SetVolumes).Volumes[0].Trash(); got != time.Minute {
		t.Errorf("without the set trash for %s; want what was recorded", got)
	}
}
