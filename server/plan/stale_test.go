package plan

import "testing"

// anew gives these nodes another session than the one that told of their members.
func anew(nodes ...int) func(*World) {
	return func(w *World) {
		for _, i := range nodes {
			w.Nodes[i].Session.ID++
		}
	}
}

func TestReadyIsOnlyWhatTheNodesLiveSessionReported(t *testing.T) {
	check(t, []rule{
		{name: "what another session told is not believed", world: "ordered 1 n1 0:ready", change: anew(0), want: "| 0:NodeReconnected",
			says: "node n1 reconnected and has not reported on it yet"},
		{name: "no rolling step is taken meanwhile", world: "parallel 3 n1 n2 n3 update=h2 current=h1 0:ready 1:ready@n2 2:ready@n3", change: anew(2),
			want: "| 2:NodeReconnected 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "nobody is stopped when all connect anew", world: "parallel 3 max=2 n1 n2 n3 update=h2 current=h1 0:ready 1:ready@n2 2:ready@n3", change: anew(0, 1, 2),
			want: "| 0:NodeReconnected 1:NodeReconnected 2:NodeReconnected"},
		{name: "nor cured for what was told before", world: "parallel 3 n1 update=h3 current=h1 0:loop 1:missing/h2? 2:running", change: both(anew(0), out(3600e9, 0, 1, 2)),
			want: "| 0:NodeReconnected 1:NodeReconnected 2:NodeReconnected"},
		{name: "nor under Recreate, beyond the floor", world: "parallel 2 Recreate floor=1 n1 update=h2 current=h1 0:ready 1:ready", change: anew(0),
			want: "| 0:NodeReconnected 1:NodeReconnected"},
		{name: "a person's restart takes what the budget allows", world: "ordered 2 n1 n2 0:ready 1:ready@n2", change: both(anew(1), asked(1)),
			want: "stop=1/Restart | 1:Stopping"},
		{name: "and no second one, for each may serve", world: "parallel 2 n1 0:ready 1:ready", change: both(anew(0), asked(0, 1)),
			want: "| 0:NodeReconnected 1:NodeReconnected"},
		{name: "nor below the floor", world: "parallel 3 max=3 floor=2 n1 n2 0:loop 1:ready@n2 2:ready", change: both(anew(1), asked(1)),
			want: "| 0:CrashLoop 1:NodeReconnected"},
		{name: "above which one may go", world: "parallel 3 max=3 floor=1 n1 n2 0:loop 1:ready@n2 2:ready", change: both(anew(1), asked(1)),
			want: "stop=1/Restart | 0:CrashLoop 1:Stopping"},
		{name: "so it is with silent nodes", world: "parallel 2 n1~ n2 0:ready 1:ready", change: asked(0, 1),
			want: "| 0:NodeSilent 1:NodeSilent"},
		{name: "the end of a life is true whoever told it", world: "ordered 1 n1 0:over", change: anew(0), want: "start=0/Replace@n1 | 0:Starting"},
		{name: "a life of which nothing was told is starting", world: "ordered 1 n1 0:assigned", change: anew(0), want: "| 0:Starting"},
	})
	w := world(t, "ordered 1 n1 0:ready")
	anew(0)(&w)
	if st := Next(w).Status; st.ReadyReplicas != 0 || st.Conditions[3].Status != "False" || st.Conditions[1].Status != "True" {
		t.Errorf("got %+v; want it not ready, not degraded, and under way", st)
	}
}
