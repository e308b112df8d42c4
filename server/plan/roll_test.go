package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
)

func TestRollOrdered(t *testing.T) {
	check(t, []rule{
		{name: "the highest goes first", world: "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:ready",
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "the next waits while it stops", world: "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:turning",
			want: "| 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "it returns on the new revision", world: "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:turned",
			want: "start=2/Update@n1/h2 | 2:Starting 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "the next waits while it is young", world: "ordered 2 min=5 n1 update=h2 current=h1 0:ready 1:young/h2",
			want: "| 1:NotAvailableYet 0:WaitingForTurn"},
		{name: "the next goes when it is available", world: "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:ready/h2",
			want: "stop=1/Update | 1:Stopping 0:WaitingForTurn"},
		{name: "a broken update halts", world: "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:loop/h2?",
			want: "| 2:CrashLoop 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "a cut-off member halts it, too", world: "ordered 3 n1 n2~ update=h2 current=h1 0:ready@n2 1:ready 2:ready/h2",
			want: "| 0:NodeSilent 1:WaitingForTurn"},
		{name: "one that died returns on its due revision", world: "ordered 3 n1 update=h2 current=h1 0:over 1:ready 2:ready/h2",
			want: "start=0/Replace@n1 | 0:Starting 1:WaitingForTurn"},
		{name: "one that died on the new one returns on that", world: "ordered 2 n1 update=h2 current=h1 0:ready 1:over/h2",
			want: "start=1/Replace@n1/h2 | 1:Starting 0:WaitingForTurn"},
		{name: "a new member begins on the new one, and first", world: "ordered 2 n1 update=h2 current=h1 0:ready",
			want: "start=1/Create@n1/h2 | 1:Starting 0:WaitingForTurn"},
		{name: "scale has precedence", world: "ordered 1 n1 update=h2 current=h1 0:ready 1:ready",
			want: "stop=1/ScaleDown | 1:Stopping 0:WaitingForTurn"},
		{name: "a batch is as large as the budget", world: "ordered 4 max=2 n1 update=h2 current=h1 0:ready 1:ready 2:ready 3:ready",
			want: "stop=3/Update stop=2/Update | 3:Stopping 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "a percentage is rounded down", world: "ordered 5 max=50% n1 update=h2 current=h1 0:ready 1:ready 2:ready 3:ready 4:ready",
			want: "stop=4/Update stop=3/Update | 4:Stopping 3:Stopping 2:WaitingForTurn 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "but one may always go", world: "ordered 2 max=10% n1 update=h2 current=h1 0:ready 1:ready",
			want: "stop=1/Update | 1:Stopping 0:WaitingForTurn"},
		{name: "nothing below the partition", world: "ordered 3 partition=2 n1 update=h2 current=h1 0:ready 1:ready 2:ready",
			want: "stop=2/Update | 2:Stopping"},
		{name: "the partition counts from the first ordinal", world: "ordered 2 start=5 partition=1 n1 update=h2 current=h1 5:ready 6:ready",
			want: "stop=6/Update | 6:Stopping"},
		{name: "a new member below the partition begins on the current one", world: "ordered 3 partition=2 n1 update=h2 current=h1 0:ready 2:ready/h2",
			want: "start=1/Create@n1 | 1:Starting"},
		{name: "without a completed revision the partition holds nobody", world: "ordered 3 partition=2 n1 update=h2 current=h1? 0:loop/h1?",
			want: "stop=0/Update | 0:Stopping 1:WaitingForPredecessor 2:WaitingForPredecessor"},
		{name: "who waits names the lowest cause, not one that waits itself", world: "ordered 5 n1 update=h2 current=h1 0:ready 1:ready 2:running 3:ready",
			want: "| 2:NotReady 4:WaitingForPredecessor 3:WaitingForTurn 1:WaitingForTurn 0:WaitingForTurn", says: "db-3: waiting for db-2 to become available before it is updated"},
		{name: "a partition beyond the set holds all", world: "ordered 2 partition=9 n1 update=h2 current=h1 0:ready 1:ready", want: "|"},
		{name: "a raised partition takes back nobody who is well", world: "ordered 2 partition=2 n1 update=h2 current=h1 0:ready 1:ready/h2", want: "|"},
		{name: "a rollback leaves alone whom it did not reach", world: "ordered 3 n1 update=h1 current=h1 0:ready 1:ready 2:ready/h2",
			want: "stop=2/Update | 2:Stopping"},
	})
}

func TestRollParallel(t *testing.T) {
	check(t, []rule{
		{name: "as many as the budget", world: "parallel 4 max=2 n1 update=h2 current=h1 0:ready 1:ready 2:ready 3:ready",
			want: "stop=3/Update stop=2/Update | 3:Stopping 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "the batch is finished first", world: "parallel 4 max=2 n1 update=h2 current=h1 0:ready 1:ready 2:starting/h2 3:ready/h2",
			want: "| 2:Starting 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "who is down already uses the budget", world: "parallel 3 max=2 n1 update=h2 current=h1 0:running 1:ready 2:ready",
			want: "stop=2/Update | 0:NotReady 2:Stopping 1:WaitingForTurn"},
		{name: "and may use all of it", world: "parallel 2 n1 n2~ update=h2 current=h1 0:ready@n2 1:ready",
			want: "| 0:NodeSilent 1:WaitingForTurn"},
		{name: "one that the partition keeps is no batch", world: "parallel 3 partition=1 max=2 n1 update=h2 current=h1 0:running 1:ready 2:ready",
			want: "stop=2/Update | 0:NotReady 2:Stopping 1:WaitingForTurn"},
		{name: "scaling goes on beside it", world: "parallel 1 n1 update=h2 current=h1 0:ready 1:ready",
			want: "stop=1/ScaleDown stop=0/Update | 1:Stopping 0:Stopping"},
	})
}

func TestOnDelete(t *testing.T) {
	check(t, []rule{
		{name: "nothing by itself", world: "ordered 2 OnDelete n1 update=h2 current=h1 0:ready 1:ready", want: "|"},
		{name: "a missing member moves on", world: "ordered 2 OnDelete n1 update=h2 current=h1 0:ready 1:over",
			want: "start=1/Replace@n1/h2 | 1:Starting"},
		{name: "a broken one is left", world: "ordered 2 OnDelete n1 update=h2 current=h1 0:ready 1:loop", want: "| 1:CrashLoop"},
	})
}

func TestCompletion(t *testing.T) {
	for line, want := range map[string]records.SetStatus{
		"ordered 2 n1 update=h2 current=h1 0:ready/h2 1:ready/h2":             {CurrentRevision: "h2", CurrentCompleted: true},
		"ordered 2 OnDelete n1 update=h2 current=h1 0:ready/h2 1:ready/h2":    {CurrentRevision: "h2", CurrentCompleted: true},
		"ordered 2 min=5 n1 update=h2 current=h1 0:ready/h2 1:young/h2":       {CurrentRevision: "h1", CurrentCompleted: true},
		"ordered 2 partition=1 n1 update=h2 current=h1 0:ready 1:ready/h2":    {CurrentRevision: "h1", CurrentCompleted: true},
		"ordered 2 n1 n2~ update=h2 current=h1 0:ready/h2 1:ready@n2/h2":      {CurrentRevision: "h1", CurrentCompleted: true},
		"ordered 0 n1 update=h2 current=h1":                                   {CurrentRevision: "h2"}, // nobody proved it
		"ordered 0 n1 update=h1 current=h1":                                   {CurrentRevision: "h1", CurrentCompleted: true},
		"ordered 0 n1 update=h1 current=h1?":                                  {CurrentRevision: "h1"},
		"ordered 2 n1 current=h9 0:ready":                                     {CurrentRevision: "h1"}, // h9 is not known
		"ordered 2 n1 0:ready":                                                {CurrentRevision: "h1"},
		"ordered 1 n1 0:ready":                                                {CurrentRevision: "h1", CurrentCompleted: true},
		"parallel 2 max=2 n1 update=h2 current=h1? 0:ready/h2 1:starting/h2?": {CurrentRevision: "h1"},
	} {
		if got := Next(world(t, line)).Status; got.CurrentRevision != want.CurrentRevision || got.CurrentCompleted != want.CurrentCompleted {
			t.Errorf("%s: current %s (completed %v); want %s (%v)", line, got.CurrentRevision, got.CurrentCompleted, want.CurrentRevision, want.CurrentCompleted)
		}
	}
}

func TestHistory(t *testing.T) {
	check(t, []rule{
		{name: "the oldest beyond the limit go", world: "ordered 1 history=1 n1 update=h4 current=h4 0:ready/h4", want: "prune=h1 prune=h2 |"},
		{name: "what a member runs stays", world: "ordered 1 history=0 partition=1 n1 update=h4 current=h2 0:ready/h2", want: "prune=h1 prune=h3 |"},
		{name: "what a member is due stays", world: "ordered 2 history=0 n1 update=h3 current=h1 0:over/h2 1:ready/h3",
			want: "start=0/Replace@n1/h2 | 0:Starting"},
		{name: "an older equal one is raised, not made again", world: "ordered 2 n1 update=h3 current=h3 0:ready/h3 1:ready/h3",
			change: func(w *World) { w.TemplateHash = "h1" }, want: "raise=h1/4 stop=1/Update | 1:Stopping 0:WaitingForTurn"},
		{name: "a removed member has no due revision any more", world: "ordered 1 n1 update=h2 current=h2 0:ready/h2 1:stopped",
			want: "forget=1+address |"},
	})
	w := apply(world(t, "ordered 1 volumes n1 update=h2 current=h2 0:ready/h2 1:stopped"), Next(world(t, "ordered 1 volumes n1 update=h2 current=h2 0:ready/h2 1:stopped")))
	two := int32(2)
	set := *w.Set
	set.Spec.Replicas = &two
	w.Set, w.VolumeID = &set, world(t, "ordered 0").VolumeID
	if got := brief(Next(w)); got != "start=1/ScaleUp@n1/h2 | 1:Starting" && got != "start=1/Create@n1/h2 | 1:Starting" {
		t.Errorf("got %s; want a member that returns after a scale-down on its target", got)
	}
}
