package plan

import (
	"testing"

	"github.com/stead-project/stead/records"
)

func TestBelieve(t *testing.T) {
	for _, c := range []struct {
		name, world string
		change      func(*World)
		want        bool
	}{
		{name: "a member that is ready", world: "ordered 1 n1 0:ready", want: true},
		{name: "one that is not", world: "ordered 1 n1 0:running"},
		{name: "an identity without a life", world: "ordered 1 n1 0:none"},
		{name: "a life of which nothing was reported", world: "ordered 1 n1 0:assigned"},
		{name: "what was reported of another life", world: "ordered 1 n1 0:ready",
			change: func(w *World) { w.Slots[0].Report.Token.Number-- }},
		{name: "one that is over, whatever its report says besides", world: "ordered 1 n1 0:ready",
			change: func(w *World) { w.Slots[0].Report.Phase = records.PhaseStopped }},
		{name: "one that was told to stop", world: "ordered 1 n1 0:ready",
			change: func(w *World) { w.Slots[0].Member.Goal = records.GoalStop }},
		{name: "one of the boot before", world: "ordered 1 n1 0:rebooted"},
		{name: "one of another machine under the node's name", world: "ordered 1 n1 0:ready",
			change: func(w *World) { w.Slots[0].Member.NodeUID = "other" }},
		{name: "one on a silent node", world: "ordered 1 n1~ n2 n3 0:ready"},
		{name: "one on a silent node of two", world: "ordered 1 n1~ n2 0:ready"},
		{name: "when most nodes are silent, the last report", world: "ordered 1 n1~ n2~ n3 0:ready", want: true},
		{name: "what another session told", world: "ordered 1 n1 0:ready", change: anew(0)},
		{name: "what was told to a session that this one took over", world: "ordered 1 n1 0:ready", want: true,
			change: func(w *World) { anew(0)(w); w.Nodes[0].Session.Resumed = true }},
		{name: "but not when this one has told otherwise", world: "ordered 1 n1 0:running", change: func(w *World) { w.Nodes[0].Session.Resumed = true }},
		{name: "but not that of another boot where the node is not", world: "ordered 1 n1 n2~ n3~ 0:rebooted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := joined(world(t, c.world))
			if c.change != nil {
				c.change(&w)
			}
			if got := Believe(w.Nodes)(&w.Slots[0]); got != c.want {
				t.Errorf("%s: believed %v; want %v", c.world, got, c.want)
			}
		})
	}
}
