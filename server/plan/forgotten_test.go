package plan

import (
	"testing"

	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
)

// Of a member that the others have forgotten its record says so, and in which epoch, until a later life of it is ready.
func TestWhoWasForgottenIsSaidToBeUntilItIsReadyAgain(t *testing.T) {
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 3}
	w := world(t, "ordered 2 leaves n1 0:ready 1:ready 3:left")
	last := w.slotOf(id).Identity.Gone.Token
	runs(0, hooks.Forget, doneHook, 3)(&w)
	w = apply(w, Next(w))
	if got := w.slotOf(id).Identity.Forgotten; got == nil || *got != (hooks.ForgottenLife{Token: last, Epoch: w.Epoch}) {
		t.Fatalf("after its peers were told: %+v, want the life %v", got, last)
	}

	w = world(t, "ordered 2 leaves n1 0:ready 1:starting")
	slot := w.slotOf(spec.Identity{Namespace: "default", Set: "db", Ordinal: 1})
	slot.Identity.Forgotten = &hooks.ForgottenLife{Token: last, Epoch: 4}
	w = apply(w, Next(w))
	if w.Slots[1].Identity.Forgotten == nil {
		t.Error("it is not ready again, and its record says nothing any more")
	}
	w.Slots[1].Report = world(t, "ordered 2 leaves n1 0:ready 1:ready").Slots[1].Report
	w = apply(w, Next(w))
	if w.Slots[1].Identity.Forgotten != nil {
		t.Errorf("it is ready again, and its record says %+v", w.Slots[1].Identity.Forgotten)
	}

	w = world(t, "ordered 1 leaves n1 0:ready 1:left")
	w.Set.Spec.Forget = nil
	w = apply(w, Next(w))
	if w.Slots[1].Identity.Forgotten != nil {
		t.Errorf("nobody was told, and its record says %+v", w.Slots[1].Identity.Forgotten)
	}
}
