package plan

import "testing"

func TestPaused(t *testing.T) {
	check(t, []rule{
		{name: "nobody is updated", world: "ordered 2 paused n1 update=h2 current=h1 0:ready 1:ready",
			want: "| 1:Paused 0:Paused"},
		{name: "nor beside one that was", world: "parallel 3 paused max=2 n1 update=h2 current=h1 0:ready 1:ready 2:ready/h2",
			want: "| 1:Paused 0:Paused"},
		{name: "one whose life was being ended for the update returns on what it ran", world: "ordered 2 paused n1 update=h2 current=h1 0:ready 1:turned",
			want: "start=1/Update@n1 | 1:Starting 0:Paused"},
		{name: "healing goes on, on what it ran", world: "ordered 3 paused n1 update=h3 current=h1 0:ready 1:over/h2 2:ready/h3",
			want: "start=1/Replace@n1/h2 | 1:Starting 0:Paused"},
		{name: "scaling up goes on, on the current revision", world: "ordered 2 initial=1 paused n1 update=h2 current=h1 0:ready",
			want: "start=1/ScaleUp@n1 | 1:Starting 0:Paused"},
		{name: "scaling down goes on", world: "ordered 1 paused n1 update=h2 current=h1 0:ready 1:ready",
			want: "stop=1/ScaleDown | 1:Stopping 0:Paused"},
		{name: "a broken one is not taken on to the update", world: "ordered 2 paused n1 update=h2 current=h1 0:ready 1:loop",
			want: "| 1:CrashLoop 0:Paused"},
		{name: "nor one on an abandoned revision", world: "ordered 2 paused n1 update=h3 current=h1 0:ready 1:loop/h2?",
			want: "| 1:CrashLoop 0:Paused"},
		{name: "nor one that is refused for good", world: "ordered 2 paused n1 update=h2 current=h1 0:ready 1:failed",
			want: "start=1/Replace@n1 | 1:Starting 0:Paused"},
		{name: "but back to the current one, when that is where it belongs", world: "ordered 2 paused n1 update=h1 current=h1 0:ready 1:loop/h2?",
			want: "stop=1/Update | 1:Stopping"},
		{name: "also below the partition", world: "ordered 2 paused partition=2 n1 update=h3 current=h1 0:ready 1:loop/h2?",
			want: "stop=1/Update | 1:Stopping"},
		{name: "who is broken and stays holds surplus", world: "ordered 2 paused n1 update=h2 current=h1 0:loop 1:over 2:ready",
			want: "| 0:CrashLoop 1:WaitingForPredecessor 2:WaitingForSurvivors"},
		{name: "also beside one on the update", world: "ordered 2 paused n1 update=h2 current=h1 0:loop 1:ready/h2 2:ready",
			want: "| 0:CrashLoop 2:WaitingForSurvivors"},
		{name: "one that is well is not taken back", world: "ordered 2 paused n1 update=h1 current=h1 0:ready 1:ready/h2",
			want: "| 1:Paused"},
		{name: "a restart by hand goes on, on what it runs", world: "ordered 2 paused n1 update=h2 current=h1 0:ready 1:loop",
			change: asked(1), want: "stop=1/Restart | 1:Stopping 0:Paused"},
		{name: "also under OnDelete", world: "ordered 2 paused OnDelete n1 update=h2 current=h1 0:ready 1:over",
			want: "start=1/Replace@n1 | 1:Starting"},
		{name: "a deletion goes on", world: "ordered 1 paused deleting n1 update=h2 current=h1 0:ready",
			want: "stop=0/Delete | 0:Stopping"},
	})
}

func TestAPausedUpdateDoesNotComplete(t *testing.T) {
	w := world(t, "ordered 1 paused n1 update=h2 current=h1 0:ready/h2")
	if st := Next(w).Status; st.CurrentRevision != "h1" {
		t.Errorf("current revision %s while paused; want h1", st.CurrentRevision)
	}
	set := *w.Set
	set.Paused = false
	w.Set = &set
	if st := Next(w).Status; st.CurrentRevision != "h2" {
		t.Errorf("current revision %s after resume; want h2", st.CurrentRevision)
	}
}
