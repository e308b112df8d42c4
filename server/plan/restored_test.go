package plan

import (
	"testing"

	"github.com/stead-project/stead/spec"
)

func TestAfterARestore(t *testing.T) {
	heard := func(epochs ...int64) func(*World) {
		return func(w *World) {
			w.Epoch = 2
			for i, epoch := range epochs {
				w.Nodes[i].Facts = &spec.NodeFacts{Name: w.Nodes[i].Node.Name, Epoch: epoch}
			}
		}
	}
	check(t, []rule{
		{name: "nothing starts until every node has said what it runs", world: "parallel 2 n1 n2 n3~ 0:ready",
			change: heard(2, 2, 1), want: "| 1:Restored"},
		{name: "a node that never said anything is waited for, too", world: "ordered 2 n1 n2 0:ready",
			change: heard(2), want: "| 1:Restored"},
		{name: "then all goes on", world: "ordered 2 n1 n2 n3~ 0:ready", change: heard(2, 2, 2), want: "start=1/Create@n2 | 1:Starting"},
		{name: "no address is freed until then", world: "ordered 1 n1 n2 0:ready 1:stopped", change: heard(2, 1), want: "forget=1 |"},
		{name: "and then they are", world: "ordered 1 n1 n2 0:ready 1:stopped", change: heard(2, 2), want: "forget=1+address |"},
		{name: "what was ordered is done", world: "ordered 1 n1 n2 0:ready 1:ready", change: heard(2, 1), want: "stop=1/ScaleDown | 1:Stopping"},
	})
}
