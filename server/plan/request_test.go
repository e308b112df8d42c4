package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// asks puts a person's request about the volume of the claim data of an ordinal into a
// world; change may spoil it.
func asks(ordinal int, verb records.VolumeVerb, change ...func(*World, *Slot, *records.VolumeRequest)) func(*World) {
	return func(w *World) {
		for i := range w.Slots {
			slot := &w.Slots[i]
			if slot.ID.Ordinal != ordinal {
				continue
			}
			q := &records.VolumeRequest{ID: slot.ID, Claim: "data", Verb: verb, Token: slot.Identity.LastToken}
			if v := slot.Volumes["data"]; v != nil {
				q.Volume = v.UID
			}
			for _, f := range change {
				f(w, slot, q)
			}
			slot.Asked = map[spec.ClaimName]*records.VolumeRequest{"data": q}
		}
	}
}

func TestAVolumeIsGivenUpByHandOnlyWhenItIsNotUsedNorWanted(t *testing.T) {
	stray := func(_ *World, slot *Slot, _ *records.VolumeRequest) {
		slot.Strays = []NodeStray{{Node: "n1", Stray: spec.LifeID{ID: slot.ID, Token: spec.Token{Epoch: 1, Number: 5}}}}
	}
	check(t, []rule{
		{name: "a kept one of a member that is gone", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, records.VerbReclaim), want: "set=1/Reclaiming |"},
		{name: "whatever the policy says", world: "ordered 1 volumes whenScaled=Retain n1 0:ready 1:volume",
			change: asks(1, records.VerbReclaim), want: "set=1/Reclaiming |"},
		{name: "without its set", world: "gone volumes n1 0:volume 1:volume",
			change: asks(1, records.VerbReclaim), want: "set=1/Reclaiming |"},
		{name: "while its set is deleted", world: "ordered 1 volumes deleting n1 0:stopping 1:volume",
			change: asks(1, records.VerbReclaim), want: "set=1/Reclaiming | 0:Stopping"},
		{name: "also of one that was orphaned", world: "ordered 1 orphaned volumes deleting n1 0:stopping 1:volume",
			change: asks(1, records.VerbReclaim), want: "set=1/Reclaiming | 0:Stopping"},
		{name: "of a silent node", world: "ordered 1 volumes n1 n2~ 0:ready 1:volume@n2",
			change: asks(1, records.VerbReclaim), want: "set=1/Reclaiming |"},
		{name: "not of a member that the set wants", world: "ordered 2 volumes n1 0:ready 1:ready",
			change: asks(1, records.VerbReclaim), want: "void=1 |"},
		{name: "nor that it wants again and that did not begin yet", world: "ordered 2 volumes n1! 0:ready 1:volume",
			change: asks(1, records.VerbReclaim), want: "void=1 | 1:Cordoned"},
		{name: "nor of one that stops", world: "ordered 1 volumes n1 0:ready 1:stopping",
			change: asks(1, records.VerbReclaim), want: "void=1 | 1:Stopping"},
		{name: "nor of one that is forgotten in this step", world: "ordered 1 volumes n1 0:ready 1:stopped",
			change: asks(1, records.VerbReclaim), want: "forget=1 |"},
		{name: "nor of one that lives on without its set", world: "gone volumes n1 0:ready",
			change: asks(0, records.VerbReclaim), want: "void=0 |"},
		{name: "another volume of the claim is not meant", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, records.VerbReclaim, func(_ *World, _ *Slot, q *records.VolumeRequest) { q.Volume = "another" }), want: "void=1 |"},
		{name: "nor is it when a life began since", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, records.VerbReclaim, func(_ *World, _ *Slot, q *records.VolumeRequest) { q.Token.Number-- }), want: "void=1 |"},
		{name: "nor when there is no volume any more", world: "ordered 1 volumes n1 0:ready 1:none",
			change: asks(1, records.VerbReclaim), want: "void=1 |"},
		{name: "what is being given up is not given up twice", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming",
			change: asks(1, records.VerbReclaim), want: "void=1 | 1:VolumeReclaiming"},
		{name: "what a newer server understands is not done", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, "Polish"), want: "void=1 |"},
		{name: "a life that the store does not know may use it", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, records.VerbReclaim, stray), want: "| 1:Stray", says: "its volume of the claim data is to go, but node n1"},
		{name: "after a restore a node may run one", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, records.VerbReclaim, func(w *World, _ *Slot, _ *records.VolumeRequest) { w.Epoch = 2 }), want: "| 1:Restored"},
		{name: "a record that cannot be read keeps all", world: "gone volumes n1 0:volume",
			change: asks(0, records.VerbReclaim, func(w *World, _ *Slot, _ *records.VolumeRequest) { w.Broken = []string{"sets/default/db"} }), want: "|"},
	})
}

func TestNoVolumeOfAnOrphanedSetIsGivenUp(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 0:ready 1:volume")
	asks(1, records.VerbReclaim)(&w)
	q := *w.Slots[1].Asked["data"]
	if why := Refusal(w, q, nil); why != "" {
		t.Fatalf("refused while the set is owned: %s", why)
	}
	w.Set.Orphaned = true
	if why := Refusal(w, q, nil); !strings.Contains(why, orphanedText) {
		t.Errorf("refused %q; want what to do first", why)
	}
	if got := brief(Next(w)); got != "|" {
		t.Errorf("did %s; want the request to wait for the adoption", got)
	}
}

// The other claim's volume of the same member stays.
func TestOnlyTheVolumeThatWasNamedGoes(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 0:ready 1:volume")
	asks(1, records.VerbReclaim)(&w)
	log := *w.Slots[1].Volumes["data"]
	log.Claim, log.UID = "log", "other"
	w.Slots[1].Volumes["log"] = &log
	a := Next(w).Actions[0].(SetVolumes)
	if len(a.Volumes) != 1 || a.Volumes[0].Claim != "data" || !strings.Contains(a.Text, "given up on request") {
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
		w.Set.Spec.VolumeClaimTemplates[0].Reclaim = &spec.Reclaim{After: &scalar.Duration{Duration: c.claim}}
		asks(1, records.VerbReclaim, func(_ *World, _ *Slot, q *records.VolumeRequest) {
			if c.asked >= 0 {
				q.Trash = &scalar.Duration{Duration: c.asked}
			}
		})(&w)
		if got := Next(w).Actions[0].(SetVolumes).Volumes[0].Trash(); got != c.want {
			t.Errorf("%s: %s in the trash; want %s", c.name, got, c.want)
		}
		if got := Preview(w).Steps[0].Action.(SetVolumes).Volumes[0].Trash(); got != c.want {
			t.Errorf("%s: foretold %s; want %s", c.name, got, c.want)
		}
	}
}

// tells is what the node of the volume of a slot says of it now.
func tells(state records.VolumeState, cause causes.Cause) func(*World, *Slot, *records.VolumeRequest) {
	return func(_ *World, slot *Slot, q *records.VolumeRequest) {
		r := &records.VolumeReport{ID: slot.ID, Claim: "data", Volume: q.Volume, Number: 3, Class: "ssd", Node: "n1", State: state, Cause: cause, SizeBytes: 7}
		if v := slot.Volumes["data"]; v != nil {
			r.Turn = v.Turn
		}
		slot.Said = map[spec.ClaimName]*records.VolumeReport{"data": r}
	}
}

// reports has the life of the slot say this.
func reports(phase records.Phase, cause causes.Cause) func(*World, *Slot, *records.VolumeRequest) {
	return func(_ *World, slot *Slot, _ *records.VolumeRequest) {
		slot.Report = &records.Report{ID: slot.ID, Token: slot.Member.Token, Node: "n1", Session: 5, Phase: phase, Cause: cause, Message: "not there"}
	}
}

func stray(_ *World, slot *Slot, _ *records.VolumeRequest) {
	slot.Strays = []NodeStray{{Node: "n1", Stray: spec.LifeID{ID: slot.ID, Token: spec.Token{Epoch: 1, Number: 5}}}}
}

// beside gives the member a volume of another claim.
func beside(node spec.NodeName, shared bool) func(*World, *Slot, *records.VolumeRequest) {
	return func(_ *World, slot *Slot, _ *records.VolumeRequest) {
		slot.Volumes = map[spec.ClaimName]*records.Volume{"log": {ID: slot.ID, Claim: "log", UID: "log-1", Node: node, Shared: shared, Fate: records.FateKeep}}
	}
}

// hostOff: a person says that the volume's node is off.
func hostOff(w *World, slot *Slot, _ *records.VolumeRequest) {
	proof.FindNode(w.Nodes, slot.Volumes["data"].Node).Fenced = true
}

func restored(w *World, _ *Slot, _ *records.VolumeRequest) { w.Epoch = 2 }

func TestAVolumeIsTakenAsLostOnlyWhenNoLifeUsesIt(t *testing.T) {
	absent := reports(records.PhasePreparing, causes.VolumeMissing)
	check(t, []rule{
		{name: "the life that misses it is ended", world: "ordered 1 volumes n1 0:starting",
			change: asks(0, records.VerbLost, absent), want: "stop=0/Replace | 0:Stopping"},
		{name: "and waited for", world: "ordered 1 volumes n1 0:turning",
			change: asks(0, records.VerbLost), want: "| 0:Stopping"},
		{name: "then its node looks", world: "ordered 1 volumes n1 0:turned",
			change: asks(0, records.VerbLost), want: "set=0/Lost | 0:VolumeReclaiming"},
		{name: "so it does of one that is over by itself", world: "ordered 1 volumes n1 0:over",
			change: asks(0, records.VerbLost), want: "set=0/Lost | 0:VolumeReclaiming"},
		{name: "and of a member without a life", world: "ordered 1 volumes n1 0:volume",
			change: asks(0, records.VerbLost), want: "set=0/Lost | 0:VolumeReclaiming"},
		{name: "also when it is out of range", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, records.VerbLost), want: "set=1/Lost | 1:VolumeReclaiming"},
		{name: "and without its set", world: "gone volumes n1 0:volume",
			change: asks(0, records.VerbLost), want: "set=0/Lost | 0:VolumeReclaiming"},
		{name: "what its node said before does not count", world: "ordered 1 volumes n1 0:volume=Keep+Trashed",
			change: asks(0, records.VerbLost), want: "set=0/Lost | 0:VolumeReclaiming"},
		{name: "lost with its host, which is off: recorded first", world: "ordered 1 volumes n1 n2~ 0:volume@n2",
			change: asks(0, records.VerbLost, hostOff), want: "set=0/Lost | 0:NodeSilent"},
		{name: "a life that runs uses it", world: "ordered 1 volumes n1 0:ready",
			change: asks(0, records.VerbLost), want: "void=0 |"},
		{name: "one that ran keeps it whatever it says now", world: "ordered 1 volumes n1 0:ready",
			change: asks(0, records.VerbLost, reports(records.PhaseRunning, causes.VolumeMissing)), want: "void=0 | 0:VolumeMissing"},
		{name: "one that waits for something else does not miss it", world: "ordered 1 volumes n1 0:starting",
			change: asks(0, records.VerbLost, reports(records.PhasePreparing, "DiskMissing")), want: "void=0 | 0:DiskMissing"},
		{name: "one of which nothing was heard may use it", world: "ordered 1 volumes n1 0:assigned",
			change: asks(0, records.VerbLost), want: "void=0 | 0:Starting"},
		{name: "one that is scaled away ends in its order", world: "ordered 1 volumes n1 0:ready 1:stopping",
			change: asks(1, records.VerbLost, absent), want: "void=1 | 1:Stopping"},
		{name: "silence proves nothing", world: "ordered 1 volumes n1 n2~ 0:turning@n2",
			change: asks(0, records.VerbLost), want: "| 0:NodeSilent"},
		{name: "a life that the store does not know may use it", world: "ordered 1 volumes n1 0:volume",
			change: asks(0, records.VerbLost, stray), want: "| 0:Stray"},
		{name: "after a restore a node may run one", world: "ordered 1 volumes n1 0:volume",
			change: asks(0, records.VerbLost, restored), want: "| 0:Restored"},
		{name: "one that goes and is missing", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming",
			change: asks(1, records.VerbLost, tells(records.VolumeRefused, causes.VolumeMissing)), want: "set=1/Lost | 1:VolumeMissing"},
		{name: "one that goes and is refused for another cause", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming",
			change: asks(1, records.VerbLost, tells(records.VolumeRefused, "DiskMissing")), want: "void=1 | 1:DiskMissing"},
		{name: "one that goes and of which nothing was said", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming",
			change: asks(1, records.VerbLost), want: "void=1 | 1:VolumeReclaiming"},
		{name: "one that is kept after all in this very step, only then", world: "ordered 1 volumes whenScaled=Delete n1 0:over=Delete",
			change: asks(0, records.VerbLost), want: "set=0/Keep | 0:WaitingForTurn"},
		{name: "not twice", world: "ordered 1 volumes n1 0:volume=Lost",
			change: asks(0, records.VerbLost), want: "void=0 | 0:VolumeReclaiming"},
		{name: "what is looked for is not given up beside", world: "ordered 1 volumes n1 0:ready 1:volume=Lost",
			change: asks(1, records.VerbReclaim), want: "void=1 | 1:VolumeReclaiming"},
		{name: "what comes back is not lost", world: "ordered 1 volumes n1 0:volume=Restoring",
			change: asks(0, records.VerbLost), want: "void=0 | 0:VolumeRestoring"},
		{name: "nobody starts beside it", world: "ordered 1 volumes n1 0:volume=Lost", want: "| 0:VolumeReclaiming"},
		{name: "it is absent: its record goes, the address stays", world: "ordered 1 volumes n1 0:volume=Lost+Absent",
			want: "drop=0 | 0:VolumeReclaiming"},
		{name: "what was left of it lies in the trash", world: "ordered 1 volumes n1 0:volume=Lost+Trashed",
			want: "drop=0 | 0:VolumeReclaiming"},
		{name: "it is there: it is kept", world: "ordered 1 volumes n1 0:volume=Lost+Found",
			want: "set=0/Keep | 0:VolumeReclaiming"},
		{name: "its node cannot tell: it is waited for", world: "ordered 1 volumes n1 0:volume=Lost+Refused",
			want: "| 0:VolumeForeign"},
		{name: "a node that refuses without a cause is waited for all the same", world: "ordered 1 volumes n1 0:volume=Lost+Refused",
			change: func(w *World) { w.Slots[0].Said["data"].Cause = "" }, want: "| 0:VolumeReclaiming"},
		{name: "after a restore nothing is forgotten", world: "ordered 1 volumes n1 0:volume=Lost+Absent",
			change: func(w *World) { w.Epoch = 2 }, want: "| 0:Restored"},
		{name: "the larger size of a claim is no reason to keep it", world: "ordered 1 volumes n1 0:volume=Lost",
			change: func(w *World) { w.Set.Spec.VolumeClaimTemplates[0] = claim("data", 20) }, want: "| 0:VolumeReclaiming"},
	})
}

// A life that ran on a volume never says before its start that it is missing.
func TestARefusedLossSaysWhatToDoWhenTheDiskDied(t *testing.T) {
	for cause, want := range map[causes.Cause]string{
		causes.VolumeMissing: "ran with it, so its processes may still have it; if its disk died under that life: stead restart db-0",
		"CrashLoop":          "does not report it missing, and a volume that is there is not lost; if its disk died under that life: stead restart db-0",
	} {
		w := world(t, "ordered 1 volumes n1 0:ready")
		var asked records.VolumeRequest
		asks(0, records.VerbLost, reports(records.PhaseRunning, cause), func(_ *World, _ *Slot, q *records.VolumeRequest) { asked = *q })(&w)
		if got := Refusal(w, asked, nil); got != "token 1.10 of db-0 "+want {
			t.Errorf("%s: refused %q, want %q", cause, got, want)
		}
	}
}

func TestAVolumeComesBackOnlyWhereItsClaimHasNone(t *testing.T) {
	trashed := func(w *World, slot *Slot, q *records.VolumeRequest) {
		q.Volume = "old-1"
		tells(records.VolumeTrashed, "")(w, slot, q)
	}
	check(t, []rule{
		{name: "a member that is gone", world: "ordered 1 volumes n1 0:ready 1:none",
			change: asks(1, records.VerbRestore, trashed), want: "restore=1 | 1:VolumeRestoring"},
		{name: "without its set", world: "gone volumes n1 1:none",
			change: asks(1, records.VerbRestore, trashed), want: "restore=1 | 1:VolumeRestoring"},
		{name: "before a member that is wanted begins", world: "ordered 2 volumes n1 0:ready 1:none",
			change: asks(1, records.VerbRestore, trashed), want: "restore=1 | 1:VolumeRestoring"},
		{name: "the claim has another", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, records.VerbRestore, func(_ *World, _ *Slot, q *records.VolumeRequest) { q.Volume = "other" }, tells(records.VolumeTrashed, "")), want: "void=1 |"},
		{name: "the claim has another, that goes", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming",
			change: asks(1, records.VerbRestore, func(_ *World, _ *Slot, q *records.VolumeRequest) { q.Volume = "other" }), want: "void=1 | 1:VolumeReclaiming",
			says: "has another volume for the claim data, old-1"},
		{name: "a life that is forgotten in this very step comes first", world: "ordered 1 volumes n1 0:ready 1:stopped",
			change: func(w *World) { w.Slots[1].Volumes = nil; asks(1, records.VerbRestore, trashed)(w) }, want: "forget=1+address |"},
		{name: "it is in its place", world: "ordered 1 volumes n1 0:ready 1:volume",
			change: asks(1, records.VerbRestore), want: "void=1 |"},
		{name: "it is on its way to the trash", world: "ordered 1 volumes n1 0:ready 1:volume=Reclaiming",
			change: asks(1, records.VerbRestore), want: "void=1 | 1:VolumeReclaiming"},
		{name: "it is erased", world: "ordered 1 volumes n1 0:ready 1:none",
			change: asks(1, records.VerbRestore), want: "void=1 |"},
		{name: "its node says something else of it", world: "ordered 1 volumes n1 0:ready 1:none",
			change: asks(1, records.VerbRestore, trashed, tells(records.VolumeFound, "")), want: "void=1 |"},
		{name: "what is said is of another", world: "ordered 1 volumes n1 0:ready 1:none",
			change: asks(1, records.VerbRestore, trashed, func(_ *World, _ *Slot, q *records.VolumeRequest) { q.Volume = "other" }), want: "void=1 |"},
		{name: "another volume of the member is on another node", world: "ordered 1 volumes n1 n2 0:ready 1:none",
			change: asks(1, records.VerbRestore, trashed, beside("n2", false)), want: "void=1 |"},
		{name: "another volume of the member is beside it", world: "ordered 1 volumes n1 n2 0:ready 1:none",
			change: asks(1, records.VerbRestore, trashed, beside("n1", false)), want: "restore=1 | 1:VolumeRestoring"},
		{name: "another volume of the member is shared", world: "ordered 1 volumes n1 n2 0:ready 1:none",
			change: asks(1, records.VerbRestore, trashed, beside("n2", true)), want: "restore=1 | 1:VolumeRestoring"},
		{name: "a life began since", world: "ordered 1 volumes n1 0:ready 1:none",
			change: asks(1, records.VerbRestore, trashed, func(_ *World, _ *Slot, q *records.VolumeRequest) { q.Token.Number-- }), want: "void=1 |"},
		{name: "a life runs, without a volume of the claim", world: "ordered 2 n1 0:ready 1:ready",
			change: asks(1, records.VerbRestore, trashed), want: "void=1 |"},
		{name: "a life that the store does not know may run", world: "ordered 1 volumes n1 0:ready 1:none",
			change: asks(1, records.VerbRestore, trashed, stray), want: "| 1:Stray"},
		{name: "after a restore a node may run one", world: "ordered 1 volumes n1 0:ready 1:none",
			change: asks(1, records.VerbRestore, trashed, restored), want: "| 1:Restored"},
		{name: "nobody starts beside it", world: "ordered 1 volumes n1 0:volume=Restoring", want: "| 0:VolumeRestoring"},
		{name: "its node has it back", world: "ordered 1 volumes n1 0:ready 1:volume=Restoring+Found", want: "set=1/Keep |"},
		{name: "what was said before is not enough", world: "ordered 1 volumes n1 0:ready 1:volume=Restoring+Found",
			change: func(w *World) { w.Slots[1].Volumes["data"].Turn = 1 }, want: "| 1:VolumeRestoring"},
		{name: "that it lies in the trash is no reason to forget it", world: "ordered 1 volumes n1 0:ready 1:volume=Restoring+Trashed",
			want: "| 1:VolumeRestoring"},
		{name: "it is in neither place", world: "ordered 1 volumes n1 0:ready 1:volume=Restoring+Absent", want: "drop=1+address | 1:VolumeRestoring"},
		{name: "something stands in its place", world: "ordered 1 volumes n1 0:ready 1:volume=Restoring+Refused", want: "| 1:VolumeForeign"},
		{name: "a person calls it off", world: "ordered 1 volumes n1 0:ready 1:volume=Restoring",
			change: asks(1, records.VerbReclaim), want: "set=1/Reclaiming | 1:VolumeRestoring"},
		{name: "a set that is deleted with its volumes does not", world: "ordered 1 volumes deleting whenDeleted=Delete n1 0:volume=Restoring",
			want: "remove | 0:VolumeRestoring"},
	})
}

func TestAVolumeThatComesBackIsWhatItWas(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 0:ready 1:none")
	asks(1, records.VerbRestore, func(w *World, slot *Slot, q *records.VolumeRequest) {
		q.Volume = "old-1"
		tells(records.VolumeTrashed, "")(w, slot, q)
		slot.Said["data"].Turn = 4
	})(&w)
	a := Next(w).Actions[0].(RestoreVolume)
	v := a.Volume
	if v.UID != "old-1" || v.Number != 3 || v.Class != "ssd" || v.Node != "n1" || v.SizeBytes != 7 || v.Turn != 5 || v.Fate != records.FateRestoring {
		t.Errorf("it comes back as %+v", v)
	}
	if a.Identity.VolumeNumbers["data"] != 3 || a.Identity.VolumeReady["data"] != 3 || a.Identity.LastToken.IsZero() {
		t.Errorf("the identity has %+v; want the number, as used", a.Identity)
	}
	w.Slots[1].Identity.VolumeNumbers, w.Slots[1].Identity.VolumeReady = map[spec.ClaimName]int{"data": 5}, map[spec.ClaimName]int{"data": 4}
	a = Next(w).Actions[0].(RestoreVolume)
	if a.Identity.VolumeNumbers["data"] != 5 || a.Identity.VolumeReady["data"] != 4 {
		t.Errorf("the identity has %+v; want no number twice", a.Identity)
	}
	w = world(t, "ordered 1 volumes n1 0:volume=Lost+Found")
	if kept := Next(w).Actions[0].(SetVolumes).Volumes[0]; kept.Turn != 1 {
		t.Errorf("found again it is in turn %d; want the next, so that nothing said before counts", kept.Turn)
	}
}

// A volume in the place of a lost one has the next number, on which nobody was ready.
func TestAfterALostVolumeComesANewOne(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 0:volume=Lost+Absent")
	w = applyOne(w, Next(w).Actions[0])
	start := Next(w).Actions[0].(Start)
	if start.Volumes[0].Number != 2 || start.Identity.VolumeReady["data"] != 1 {
		t.Errorf("made %+v with %+v; want the number 2, on which nobody was ready", start.Volumes[0], start.Identity)
	}
}

// What the set's end decides while a person's request waits is not the person's doing.
func TestAFateThatIsNotByHandDoesNotSaySo(t *testing.T) {
	w := world(t, "ordered 1 volumes deleting whenDeleted=Delete n1 0:volume")
	asks(0, records.VerbReclaim, func(_ *World, slot *Slot, q *records.VolumeRequest) {
		slot.Strays = []NodeStray{{Node: "n1", Stray: spec.LifeID{ID: slot.ID, Token: spec.Token{Epoch: 1, Number: 5}}}}
		q.Trash = &scalar.Duration{Duration: time.Minute}
	})(&w)
	a := Next(w).Actions[0].(SetVolumes)
	if v := a.Volumes[0]; v.Fate != records.FateDelete || v.Trash() == time.Minute || strings.Contains(a.Text, "person") {
		t.Errorf("did %+v; want the set's own decision, with its claim's trash period", a)
	}
}
