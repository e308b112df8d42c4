package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
)

// asked has a person ask for the restart of these members, by their place in the world.
func asked(slots ...int) func(*World) {
	return func(w *World) {
		for _, i := range slots {
			s := &w.Slots[i]
			s.Request = &records.Request{ID: s.ID, Token: s.Member.Token}
		}
	}
}

func TestRestart(t *testing.T) {
	check(t, []rule{
		{name: "one that is asked for", world: "ordered 2 n1 0:ready 1:ready", change: asked(0), want: "stop=0/Restart | 0:Stopping"},
		{name: "within the budget, highest first", world: "parallel 3 n1 0:ready 1:ready 2:ready", change: asked(0, 2),
			want: "stop=2/Restart | 2:Stopping 0:WaitingForTurn"},
		{name: "not while another is down", world: "ordered 2 n1 0:ready 1:running", change: asked(0), want: "| 1:NotReady 0:WaitingForTurn",
			says: "db-0: restart delayed until db-1 is available; at most 1 may be down at a time"},
		{name: "one that is down costs nothing", world: "parallel 2 n1 0:running 1:loop", change: asked(0, 1),
			want: "stop=1/Restart stop=0/Restart | 0:Stopping 1:Stopping"},
		{name: "an available one returns on what it ran", world: "ordered 2 n1 update=h2 current=h1 0:restarted 1:ready/h2",
			want: "start=0/Restart@n1 | 0:Starting"},
		{name: "one that is down moves on", world: "ordered 2 n1 update=h2 current=h1 0:running 1:ready/h2", change: asked(0),
			want: "stop=0/Update | 0:Stopping"},
		{name: "this is how OnDelete moves on", world: "ordered 2 OnDelete n1 update=h2 current=h1 0:ready 1:restarted",
			want: "start=1/Restart@n1/h2 | 1:Starting"},
		{name: "one that waits for both its restart and its turn says one", world: "ordered 2 n1 update=h2 current=h1 0:ready 1:running/h2",
			change: asked(0), want: "| 1:NotReady 0:WaitingForTurn"},
		{name: "one whose life is over is replaced as ever", world: "ordered 1 n1 0:over", change: asked(0), want: "start=0/Replace@n1 | 0:Starting"},
		{name: "one that stops already is left", world: "ordered 1 n1 0:stopping", change: asked(0), want: "| 0:Stopping"},
		{name: "nobody else starts beside it", world: "ordered 3 n1 0:over 1:ready 2:running", change: asked(2),
			want: "stop=2/Restart | 0:WaitingForTurn 2:Stopping"},
	})
}
