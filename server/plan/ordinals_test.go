package plan

import "testing"

func TestOrdinals(t *testing.T) {
	check(t, []rule{
		{name: "reserved ones are skipped", world: "parallel 3 reserved=1 n1",
			want: "start=0/Create@n1 start=2/Create@n1 start=3/Create@n1 | 0:Starting 2:Starting 3:Starting"},
		{name: "in order, too", world: "ordered 2 reserved=0-3,5 n1 4:ready",
			want: "start=6/Create@n1 | 6:Starting"},
		{name: "initial members are counted without them", world: "parallel 3 initial=2 reserved=0 n1",
			want: "start=1/Create@n1 start=2/Create@n1 start=3/ScaleUp@n1 | 1:Starting 2:Starting 3:Starting"},
		{name: "all initial ones were ready: bootstrapped", world: "ordered 2 reserved=1 fresh n1 0:ready 2:ready", want: "bootstrapped |"},
		{name: "one is reserved that has a member: its place is filled first", world: "ordered 3 reserved=1 initial=2 n1 0:ready 1:ready 2:ready",
			want: "start=3/ScaleUp@n1 | 3:Starting 1:WaitingForSurvivors"},
		{name: "then it stops", world: "ordered 3 reserved=1 n1 0:ready 1:ready 2:ready 3:ready",
			want: "stop=1/ScaleDown | 1:Stopping"},
		{name: "one is free again: it returns, and the highest goes", world: "ordered 3 n1 0:ready 1:none 2:ready 3:ready",
			want: "start=1/Create@n1 | 1:Starting 3:WaitingForSurvivors"},
		{name: "surplus on both sides goes highest first", world: "ordered 1 start=2 n1 0:ready 1:ready 2:ready 3:ready",
			want: "stop=3/ScaleDown | 3:Stopping 1:WaitingForSuccessor 0:WaitingForSuccessor"},
		{name: "a moved start: new ones first, in order", world: "ordered 2 start=2 n1 0:ready 1:ready",
			want: "start=2/Create@n1 | 2:Starting 3:WaitingForPredecessor 0:WaitingForSurvivors 1:WaitingForSurvivors"},
		{name: "then the old ones go", world: "ordered 2 start=2 n1 0:ready 1:ready 2:ready 3:ready",
			want: "stop=1/ScaleDown | 1:Stopping 0:WaitingForSuccessor"},
		{name: "an overlap is not touched", world: "parallel 3 start=1 n1 0:ready 1:ready 2:ready",
			want: "start=3/Create@n1 stop=0/ScaleDown | 3:Starting 0:Stopping"},
		{name: "the partition compares ordinals", world: "ordered 3 reserved=1 partition=2 max=3 n1 update=h2 current=h1 0:ready 2:ready 3:ready",
			want: "stop=3/Update stop=2/Update | 3:Stopping 2:Stopping"},
		{name: "a percentage is of members", world: "ordered 4 reserved=0-9 max=50% n1 update=h2 current=h1 10:ready 11:ready 12:ready 13:ready",
			want: "stop=13/Update stop=12/Update | 13:Stopping 12:Stopping 11:WaitingForTurn 10:WaitingForTurn"},
	})
}
