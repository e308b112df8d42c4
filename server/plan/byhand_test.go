package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/spec"
)

// asks puts a person's request about the volume of the claim data of an ordinal into a
// world; change may spoil it.
func asks(ordinal int, verb spec.VolumeVerb, change ...func(*World, *Slot, *spec.VolumeRequest)) func(*World) {
	return func(w *World) {
		for i := range w.Slots {
			slot := &w.Slots[i]
			if slot.ID.Ordinal != ordinal {
				continue
			}
			q := &spec.VolumeRequest{ID: slot.ID, Claim: "data", Verb: verb, Token: slot.Identity.LastToken}
			if v := slot.Volumes["data"]; v != nil {
				q.Volume = v.UID
			}
			for _, f := range change {
				f(w, slot, q)
			}
			slot.Asked = map[spec.ClaimName]*spec.VolumeRequest{"data": q}
		}
	}
}

func TestAVolumeIsGivenUpByHandOnlyWhenNobodyUsesItNorWill(t *testing.T) {
	stray := func(_ *World, slot *Slot, _ *spec.VolumeRequest) {
		slot.Strays = []NodeStray{{Node: "n1", Stray: spec.Stray{ID: slot.ID}}}
	}
	check(t, []rule{
		{name: "a kept one of a member that is gone", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, spec.VerbReclaim), want: "set=1/Reclaiming |"},
		{name: "whatever the policy says", world: "ordered 1 volumes whenScaled=Retain n1 0:ready 1:volume",
			change: asks(1, spec.VerbReclaim), want: "set=1/Reclaiming |"},
		{name: "without its set", world: "gone volumes n1 0:volume 1:volume",
			change: asks(1, spec.VerbReclaim), want: "set=1/Reclaiming |"},
		{name: "while its set is deleted", world: "ordered 1 volumes deleting n1 0:stopping 1:volume",
			change: asks(1, spec.VerbReclaim), want: "set=1/Reclaiming | 0:Stopping"},
		{name: "also of one that was orphaned", world: "ordered 1 orphaned volumes deleting n1 0:stopping 1:volume",
			change: asks(1, spec.VerbReclaim), want: "set=1/Reclaiming | 0:Stopping"},
		{name: "of a silent node", world: "ordered 1 volumes n1 n2~ 0:ready 1:volume@n2",
			change: asks(1, spec.VerbReclaim), want: "set=1/Reclaiming |"},
		{name: "not of a member that the set wants", world: "ordered 2 volumes n1 0:ready 1:ready",
			change: asks(1, spec.VerbReclaim), want: "void=1 |"},
		{name: "nor that it wants again and that did not begin yet", world: "ordered 2 volumes n1! 0:ready 1:volume",
			change: asks(1, spec.VerbReclaim), want: "void=1 | 1:Cordoned"},
		{name: "nor of one that stops", world: "ordered 1 volumes n1 0:ready 1:stopping",
			change: asks(1, spec.VerbReclaim), want: "void=1 | 1:Stopping"},
		{name: "nor of one that is forgotten in this step", world: "ordered 1 volumes n1 0:ready 1:stopped",
			change: asks(1, spec.VerbReclaim), want: "forget=1 |"},
		{name: "nor of one that lives on without its set", world: "gone volumes n1 0:ready",
			change: asks(0, spec.VerbReclaim), want: "void=0 |"},
		{name: "another volume of the claim is not meant", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, spec.VerbReclaim, func(_ *World, _ *Slot, q *spec.VolumeRequest) { q.Volume = "another" }), want: "void=1 |"},
		{name: "nor is it when a life began since", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, spec.VerbReclaim, func(_ *World, _ *Slot, q *spec.VolumeRequest) { q.Token.Number-- }), want: "void=1 |"},
		{name: "nor when there is no volume any more", world: "ordered 1 volumes n1 0:ready 1:none",
			change: asks(1, spec.VerbReclaim), want: "void=1 |"},
		{name: "what is being given up is not given up twice", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming",
			change: asks(1, spec.VerbReclaim), want: "void=1 | 1:VolumeReclaiming"},
		{name: "what a newer server understands is not done", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, "Polish"), want: "void=1 |"},
		{name: "a life that the store does not know may use it", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, spec.VerbReclaim, stray), want: "| 1:Stray"},
		{name: "after a restore a node may run one", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, spec.VerbReclaim, func(w *World, _ *Slot, _ *spec.VolumeRequest) { w.Epoch = 2 }), want: "| 1:Restored"},
		{name: "a record that cannot be read keeps all", world: "gone volumes n1 0:volume",
			change: asks(0, spec.VerbReclaim, func(w *World, _ *Slot, _ *spec.VolumeRequest) { w.Broken = []string{"sets/default/db"} }), want: "|"},
	})
}

func TestNoVolumeOfASetThatNobodyOwnsIsGivenUp(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 0:ready 1:volume")
	asks(1, spec.VerbReclaim)(&w)
	q := *w.Slots[1].Asked["data"]
	if why := Refusal(w, q); why != "" {
		t.Fatalf("refused while the set is owned: %s", why)
	}
	w.Set.Orphaned = true
	if why := Refusal(w, q); !strings.Contains(why, orphanedText) {
		t.Errorf("refused %q; want what to do first", why)
	}
	if got := brief(Next(w)); got != "|" {
		t.Errorf("did %s; want the request to wait for the adoption", got)
	}
}

// The other claim's volume of the same member stays.
func TestOnlyTheVolumeThatWasNamedGoes(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 0:ready 1:volume")
	asks(1, spec.VerbReclaim)(&w)
	log := *w.Slots[1].Volumes["data"]
	log.Claim, log.UID = "log", "other"
	w.Slots[1].Volumes["log"] = &log
	a := Next(w).Actions[0].(SetVolumes)
	if len(a.Volumes) != 1 || a.Volumes[0].Claim != "data" || !strings.Contains(a.Text, "a person gave it up") {
		t.Errorf("did %+v; want the volume of the claim data alone, and why", a)
	}
}

func TestTheTrashPeriodOfWhatGoesByHand(t *testing.T) {
	for _, c := range []struct {
		name               string
		claim, asked, want time.Duration
	}{
		{"as its claim says", time.Hour, -1, time.Hour},
		{"as the person says", time.Hour, time.Minute, time.Minute},
		{"at once", time.Hour, 0, 0},
	} {
		w := world(t, "ordered 1 volumes n1 0:ready 1:volume")
		w.Set.Spec.VolumeClaimTemplates[0].Reclaim = &spec.Reclaim{After: &spec.Duration{Duration: c.claim}}
		asks(1, spec.VerbReclaim, func(_ *World, _ *Slot, q *spec.VolumeRequest) {
			if c.asked >= 0 {
				q.Trash = &spec.Duration{Duration: c.asked}
			}
		})(&w)
		if got := Next(w).Actions[0].(SetVolumes).Volumes[0].Trash(); got != c.want {
			t.Errorf("%s: %s in the trash; want %s", c.name, got, c.want)
		}
		if got := TrashOf(w, w.Slots[1].Volumes["data"]); got.Duration != c.claim {
			t.Errorf("%s: foretold %s; want %s", c.name, got, c.claim)
		}
	}
}

// What the set's end decides while a person's request waits is not the person's doing.
func TestAFateThatIsNotByHandDoesNotSaySo(t *testing.T) {
	w := world(t, "ordered 1 volumes deleting whenDeleted=Delete n1 0:volume")
	asks(0, spec.VerbReclaim, func(_ *World, slot *Slot, q *spec.VolumeRequest) {
		slot.Strays = []NodeStray{{Node: "n1", Stray: spec.Stray{ID: slot.ID}}}
		q.Trash = &spec.Duration{Duration: time.Minute}
	})(&w)
	a := Next(w).Actions[0].(SetVolumes)
	if v := a.Volumes[0]; v.Fate != spec.FateDelete || v.Trash() == time.Minute || strings.Contains(a.Text, "person") {
		t.Errorf("did %+v; want the set's own decision, with its claim's trash period", a)
	}
}
