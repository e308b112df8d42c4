package plan

import "testing"

func TestTheLeaderGoesLast(t *testing.T) {
	check(t, []rule{
		{name: "the highest leads: the next below it goes first", world: "ordered 3 last n1 update=h2 current=h1 0:ready 1:ready 2L:ready",
			want: "stop=1/Update | 1:Stopping 0:WaitingForTurn 2:WaitingForTurn", says: "db-2: it leads, and goes last; waiting for db-1"},
		{name: "without the order the highest goes first", world: "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2L:ready",
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "nobody leads", world: "ordered 3 last n1 update=h2 current=h1 0:ready 1:ready 2:ready",
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "two say so in one term: nobody leads", world: "ordered 3 last n1 update=h2 current=h1 0:ready 1L:ready 2L:ready",
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "only the leader is left", world: "ordered 3 last n1 update=h2 current=h1 0:ready/h2 1:ready/h2 2L:ready",
			want: "stop=2/Update | 2:Stopping"},
		{name: "it led one that was updated: the others go on", world: "ordered 3 last n1 update=h2 current=h1 0:ready 1L:ready/h2 2:ready",
			want: "stop=2/Update | 2:Stopping 0:WaitingForTurn"},
		{name: "the leader below the partition stays, and holds nobody", world: "ordered 3 last partition=1 n1 update=h2 current=h1 0L:ready 1:ready 2:ready",
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn"},
		{name: "the budget is filled with the others first", world: "parallel 4 max=2 last n1 update=h2 current=h1 0:ready 1:ready 2:ready 3L:ready",
			want: "stop=2/Update stop=1/Update | 2:Stopping 1:Stopping 0:WaitingForTurn 3:WaitingForTurn"},
		{name: "a leader that is not ready leads nobody, and nobody goes meanwhile", world: "ordered 3 last n1 update=h2 current=h1 0:ready 1:ready 2L:running",
			want: "| 2:NotReady 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "a surplus leader leaves in its place", world: "ordered 1 last n1 0:ready 1:ready 2L:ready",
			want: "stop=2/ScaleDown | 2:Stopping 1:WaitingForSuccessor"},
		{name: "drained last", world: "ordered 3 last n1 n2% 0:ready@n1 1:ready@n2 2L:ready@n2",
			want: "stop=1/Drain | 1:Stopping 2:WaitingForTurn"},
		{name: "restarted last", world: "ordered 3 last n1 0:ready 1:ready 2L:ready", change: asked(0, 1, 2),
			want: "stop=1/Restart | 1:Stopping 0:WaitingForTurn 2:WaitingForTurn"},
	})
}
