package plan

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records"
)

func TestABusyMemberIsNotStopped(t *testing.T) {
	const update = " n1 update=h2 current=h1 "
	check(t, []rule{
		{name: "it waits, and in order those after it", world: "ordered 3" + update + "0:ready 1:ready 2B:ready",
			want: "| 2:Busy 1:Busy 0:Busy", says: "db-1: it waits for db-2, which is busy (it feeds another), for 1h at most; without waiting: stead restart db-1 --now"},
		{name: "those before it go", world: "ordered 3" + update + "0:ready 1B:ready 2:ready",
			want: "stop=2/Update | 2:Stopping 1:Busy 0:Busy"},
		{name: "one that runs its target already holds those after it", world: "ordered 3" + update + "0:ready 1:ready 2B:ready/h2",
			want: "| 1:Busy 0:Busy"},
		{name: "in parallel it holds itself alone", world: "parallel 3" + update + "0:ready 1:ready 2B:ready",
			want: "stop=1/Update | 1:Stopping 2:Busy 0:WaitingForTurn"},
		{name: "for too long it is as any other", world: "ordered 3" + update + "0:ready 1:ready 2BB:ready",
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "one that is broken never is", world: "ordered 2" + update + "0:ready 1B:loop",
			want: "stop=1/Update | 1:Stopping 0:WaitingForTurn"},
		{name: "nor does it wait for one that is", world: "ordered 2" + update + "0:loop 1B:ready",
			want: "stop=0/Update | 0:Stopping 1:Busy"},
		{name: "one that lapsed and feeds another waits", world: "ordered 2" + update + "0:ready 1B:running", change: lapsed(time.Hour),
			want: "| 1:NotReady 0:Busy"},
		{name: "on a silent node it says nothing", world: "parallel 3 max=3 n1 n2~ update=h2 current=h1 0:ready 1:ready 2B:ready@n2",
			want: "stop=1/Update stop=0/Update | 2:NodeSilent 1:Stopping 0:Stopping"},
		{name: "with the leader last it holds those before the leader, and it", world: "ordered 3 last" + update + "0:ready 1B:ready 2L:ready",
			want: "| 1:Busy 0:Busy 2:Busy"},
		{name: "a leader that is busy holds nobody", world: "ordered 3 last" + update + "0:ready 1:ready 2LB:ready",
			want: "stop=1/Update | 1:Stopping 0:WaitingForTurn 2:Busy"},
		{name: "a pause is waited for before", world: "ordered 2 paused" + update + "0:ready 1B:ready", want: "| 1:Paused 0:Paused"},
		{name: "restart", world: "ordered 3 n1 0:ready 1:ready 2B:ready", change: asked(1), want: "| 1:Busy"},
		{name: "restart of one that is not ready, for it may be fed", world: "ordered 3 n1 0:ready 1:running 2B:ready", change: asked(1), want: "| 1:NotReady",
			says: "db-1: it is running, but not ready; its restart waits for db-2, which is busy (it feeds another), for 1h at most; to restart it all the same"},
		{name: "restart of one that is broken", world: "ordered 3 n1 0:ready 1:loop 2B:ready", change: asked(1), want: "stop=1/Restart | 1:Stopping"},
		{name: "restart now", world: "ordered 3 n1 0:ready 1:ready 2B:ready", change: askedNow(1, 2), want: "stop=2/Restart | 2:Stopping 1:WaitingForTurn"},
		{name: "drain", world: "ordered 3 n1 n2% 0:ready@n2 1B:ready@n1 2:ready@n1", want: "| 0:Busy"},
		{name: "drain at once", world: "ordered 3 n1 n2%% 0:ready@n2 1B:ready@n2 2:ready@n1", want: "stop=1/Drain stop=0/Drain | 0:Stopping 1:Stopping"},
		{name: "its host is shut down in any case", world: "ordered 2 n1 n2^ 0:ready@n1 1B:ready@n2", want: "stop=1/NodeShutdown | 1:Stopping"},
		{name: "scale-down", world: "ordered 1 n1 0:ready 1:ready 2B:ready", want: "| 2:Busy 1:WaitingForSuccessor",
			says: "db-1: it stops after db-2, which is busy (it feeds another)"},
		{name: "scale-down in parallel", world: "parallel 1 n1 0:ready 1:ready 2B:ready", want: "stop=1/ScaleDown | 2:Busy 1:Stopping"},
		{name: "scale-down of one that may go now", world: "ordered 1 n1 0:ready 1B:ready", change: askedNow(1), want: "stop=1/ScaleDown | 1:Stopping"},
		{name: "a survivor that is busy holds no scale-down", world: "ordered 1 n1 0B:ready 1:ready", want: "stop=1/ScaleDown | 1:Stopping"},
		{name: "deletion", world: "ordered 2 deleting n1 0:ready 1B:ready", want: "stop=1/Delete | 1:Stopping 0:WaitingForSuccessor"},
		{name: "all at once", world: "ordered 2 Recreate" + update + "0:ready 1B:ready", want: "| 1:WaitingForTurn 0:WaitingForTurn",
			says: "but db-1 is busy (it feeds another)"},
		{name: "nobody is to stop", world: "ordered 2 n1 0:ready 1B:ready", want: "|"},
	})
}

// askedNow has a person ask for the restart of these members, busy or not.
func askedNow(slots ...int) func(*World) {
	return func(w *World) {
		asked(slots...)(w)
		for _, i := range slots {
			w.Slots[i].Request.Now = true
		}
	}
}

// lapsed has all outages last so long.
func lapsed(d time.Duration) func(*World) {
	return func(w *World) { w.Outages = lasting(nil, Next(*w).Outages, d) }
}

// The time for which a rollout stands still does not count while a busy member is all that it waits for.
func TestWhileAMemberIsBusyARolloutDoesNotStall(t *testing.T) {
	w := world(t, "ordered 2 n1 update=h2 current=h1 0:ready 1B:ready")
	if p := Next(w); p.Clock {
		t.Errorf("the clock runs: %s", brief(p))
	}
	w = world(t, "ordered 2 n1 update=h2 current=h1 0B:ready 1:starting/h2")
	if p := Next(w); !p.Clock {
		t.Errorf("the clock stands while db-1 starts: %s", brief(p))
	}
}

func TestWhoIsBusyForTooLongIsSaid(t *testing.T) {
	condition := func(line string) *records.Condition {
		for _, c := range Next(world(t, line)).Status.Conditions {
			if c.Type == ConditionBusyTooLong {
				return &c
			}
		}
		return nil
	}
	want := records.Condition{Type: ConditionBusyTooLong, Status: "True", Reason: ConditionBusyTooLong,
		Message: "db-1 has said for 1h that it is busy (it feeds another), and is not waited for any more"}
	if got := condition("ordered 2 n1 0:ready 1BB:ready"); got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, line := range []string{"ordered 2 n1 0:ready 1B:ready", "ordered 2 n1 0:ready 1BB:stopping", "ordered 2 n1 n2~ 0:ready 1BB:ready@n2"} {
		if got := condition(line); got != nil {
			t.Errorf("%s: got %+v, want none", line, got)
		}
	}
}

// A preview tells what follows when nobody is busy any more, and that it is waited for.
func TestAPreviewWaitsForWhoIsBusy(t *testing.T) {
	f := Preview(world(t, "ordered 2 n1 update=h2 current=h1 0:ready 1B:ready"))
	var stops []string
	for _, step := range f.Steps {
		if a, is := step.Action.(Stop); is {
			stops = append(stops, a.ID.MemberName())
			if len(stops) == 1 && (len(step.First) == 0 || step.First[0].Reason != "Busy") {
				t.Errorf("the first stop waits for %+v", step.First)
			}
		}
	}
	if len(stops) != 2 || stops[0] != "db-1" || len(f.Never) > 0 {
		t.Errorf("stops %v, never %+v", stops, f.Never)
	}
}
