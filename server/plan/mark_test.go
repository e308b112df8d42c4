package plan

import (
	"testing"

	"github.com/stead-project/stead/spec"
)

func never(w *World) {
	for i := range w.Slots {
		w.Slots[i].Identity.ReadyOnce = ""
	}
}

// SAFETY S16: a set is bootstrapped when each of its initial members was ready once.
func TestMark(t *testing.T) {
	check(t, []rule{
		{name: "ready for the first time is written with the next start", world: "ordered fresh 2 n1 0:ready", change: never,
			want: "start=1/Create@n1 ready=0 | 1:Starting"},
		{name: "the last one completes the set's first start", world: "ordered fresh 2 n1 0:ready 1:ready",
			change: func(w *World) { w.Slots[1].Identity.ReadyOnce = "" }, want: "ready=1 bootstrapped |"},
		{name: "another set's uid does not count", world: "ordered fresh 1 uid=u2 n1 0:ready", want: "ready=0 bootstrapped |"},
		{name: "ready under another uid once is not ready once under this", world: "parallel 2 uid=u2 fresh n1 0:ready 1:running",
			want: "ready=0 | 1:NotReady"},
		{name: "bootstrapped once is for ever", world: "ordered 1 n1 0:running", want: "| 0:NotReady"},
		{name: "ready once each, though not at once", world: "ordered fresh 2 n1 0:ready 1:running", want: "bootstrapped | 1:NotReady"},
		{name: "an initial member that never was ready holds it", world: "parallel fresh 2 n1 0:ready 1:running",
			change: func(w *World) { w.Slots[1].Identity.ReadyOnce = "" }, want: "| 1:NotReady"},
		{name: "a member that was scaled away before it was ready holds it", world: "ordered fresh 1 initial=2 n1 0:ready", want: "|"},
		{name: "members beyond the initial ones do not count", world: "ordered fresh 2 initial=1 n1 0:ready 1:running", want: "bootstrapped | 1:NotReady"},
		{name: "a set created empty waits for its first members", world: "ordered fresh 1 initial=0 n1 0:running", change: never, want: "| 0:NotReady"},
		{name: "an empty set is not bootstrapped", world: "ordered fresh 0 n1", want: "|"},
		{name: "a set without initial members is never bootstrapped", world: "ordered fresh 1 initial=0 n1 0:ready", change: never, want: "ready=0 |"},
		{name: "ready on a silent node does not count", world: "ordered fresh 1 n1~ 0:ready", change: never, want: "| 0:NodeSilent"},
		{name: "a new volume is marked once", world: "ordered 1 volumes n1 0:ready",
			change: func(w *World) {
				w.Slots[0].Member.Volumes[0].Number, w.Slots[0].Volumes["data"].Number = 2, 2
			}, want: "ready=0 |"},
		{name: "a new life is marked, also of one with volumes", world: "ordered 1 volumes n1 0:ready",
			change: func(w *World) { w.Slots[0].Identity.ReadyToken.Number-- }, want: "ready=0 |"},
		{name: "available on a revision for the first time", world: "ordered 1 n1 0:ready/h1?", want: "ready=0 |"},
		{name: "ready is not available", world: "ordered 1 min=5 n1 0:young/h1?", want: "| 0:NotAvailableYet"},
		{name: "deleted right after it was ready: its volume was used", world: "ordered 1 deleting fresh volumes n1 0:ready", change: never,
			want: "ready=0 bootstrapped stop=0/Delete | 0:Stopping"},
		{name: "a life of a set that is gone is not marked", world: "gone volumes n1 0:ready", change: func(w *World) { w.Epoch = 2 },
			want: "| 0:Restored"},
		{name: "a volume that was marked is not again", world: "ordered 1 volumes n1 0:ready", want: "|"},
	})
}

func TestAMarkKeepsWhatTheIdentityHad(t *testing.T) {
	w := world(t, "ordered 1 volumes n1 0:ready")
	w.Slots[0].Identity.ReadyOnce = ""
	w.Slots[0].Identity.VolumeReady = map[spec.ClaimName]int{"old": 3}
	got := Next(w).Actions[0].(MarkReady).Identity
	if got.ReadyOnce != "u1" || got.VolumeReady["data"] != 1 || got.VolumeReady["old"] != 3 ||
		got.LastToken != w.Slots[0].Identity.LastToken || got.Address != w.Slots[0].Identity.Address {
		t.Errorf("got %+v; want the record with ReadyOnce and data's volume added", got)
	}
}
