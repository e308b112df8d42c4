package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestStatusCounts(t *testing.T) {
	w := world(t, "parallel 6 min=5 n1 n2~ 0:ready 1:young 2:running 3:ready@n2 4:stopping 5:none 6:ready")
	w.Revisions = append(w.Revisions, &records.Revision{Hash: "h0"})
	w.Status = &records.SetStatus{CurrentRevision: "h0", CurrentCompleted: true}
	w.Slots[2].Member.Revision = "h0"
	w.Free = nil
	w.Slots[5].Strays = []NodeStray{{Node: "n1", Stray: spec.LifeID{Token: spec.Token{Epoch: 1, Number: 5}}}}
	w.Slots[6].Member.Goal = records.GoalStop
	got := Next(w).Status
	got.Members, got.Conditions = nil, nil
	want := records.SetStatus{
		ObservedGeneration: 1, Replicas: 4, ReadyReplicas: 2, AvailableReplicas: 1, CurrentReplicas: 1, UpdatedReplicas: 3,
		UpdatedReadyReplicas: 2, UpdatedAvailableReplicas: 1, TerminatingReplicas: 2,
		CurrentRevision: "h0", CurrentCompleted: true, UpdateRevision: "h1", Bootstrapped: true, ServiceName: "db",
	}
	if !equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestALifeThatIsOverIsNotTerminating(t *testing.T) {
	w := world(t, "ordered 1 n1! 0:stopped") // and no node can take the next
	if st := Next(w).Status; st.TerminatingReplicas != 0 || st.Replicas != 0 {
		t.Errorf("%d terminating, %d replicas; want none", st.TerminatingReplicas, st.Replicas)
	}
}

func equal(a, b records.SetStatus) bool {
	return string(encodeStatus(a)) == string(encodeStatus(b))
}

// A status written with an action must stand after it, or each action would cost
// a second write.
func TestTheStatusOfAStepIsThatOfTheNextLook(t *testing.T) {
	for _, line := range []string{
		"ordered 3 n1", "parallel 3 n1", "ordered 3 n1 0:ready", "ordered 2 volumes n1 0:over 1:ready",
		"ordered 1 n1 0:ready 1:ready 2:ready", "ordered 1 n1 0:ready 1:stopped", "parallel 2 deleting n1 0:ready 1:stopped",
		"ordered 1 n1 0:ready", "ordered 2 n1 0:missing", "ordered 2 n1 update=h2 current=h1 0:ready 1:ready",
		"ordered 2 n1 update=h2 current=h1 0:ready/h2 1:ready/h2", "ordered 2 n1 update=h1 0:missing/h2? 1:none",
		"parallel 3 n1 update=h3 current=h1 max=2 history=0 0:ready 1:loop/h2? 2:turned",
	} {
		w := world(t, line+" fresh")
		never(&w)
		for range 3 {
			p := Next(w)
			after := apply(w, p)
			if got, want := Next(after).Status, p.Status; !equal(got, want) {
				t.Errorf("%s\nafter %s\nnext  %s\nstep  %s", line, brief(p), encodeStatus(got), encodeStatus(want))
			}
			w = after
		}
	}
}
