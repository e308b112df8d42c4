package plan

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// TestFenceNeeded: a fence is asked for where nothing else ends a life, and something is
// gained by it (SAFETY S10).
func TestFenceNeeded(t *testing.T) {
	// Both members are on n2, which is silent; its guard was never confirmed.
	const (
		members = "0:ready@n2 1:ready@n2 replace=60 silent=n2,30 "
		silent  = "ordered 2 n1 n2 n3 " + members
		bound   = "ordered 2 n1 n2 n3 volumes " + members // to where its volumes are
	)
	unguarded := func(w *World) { proof.FindNode(w.Nodes, "n2").Facts.Guards = false }
	for _, c := range []struct {
		name, world string
		change      func(*World)
		want        []spec.NodeName
	}{
		{name: "the node, once for all its members", world: silent, change: unguarded, want: []spec.NodeName{"n2"}},
		{name: "not when the deadline ends the lives", world: silent},
		{name: "not when the set does not ask for it", world: "ordered 2 n1 n2~ n3 0:ready@n2 1:ready@n2"},
		{name: "not for an orphaned set", world: silent + "orphaned", change: unguarded},
		{name: "not for identities without a life", world: "ordered 2 n1 n2 n3 0:none 1:none replace=60 silent=n2,30", change: unguarded},
		{name: "not for a life that is over", world: "ordered 1 n1 n2 n3 0:over@n2 replace=60 silent=n2,30", change: unguarded},
		{name: "not for a node that is not known", world: silent, change: func(w *World) { w.Nodes = append(w.Nodes[:1:1], w.Nodes[2]) }},
		{name: "not for another machine under the node's name", world: silent, change: func(w *World) { proof.FindNode(w.Nodes, "n2").Node.UID = "other" }},
		{name: "not for a node that is there", world: "ordered 1 n1 n2 n3 0:ready@n2 replace=60", change: unguarded},
		{name: "not where a volume keeps the member on the node", world: bound, change: unguarded},
		{name: "but where the volume is on another node", world: bound, want: []spec.NodeName{"n2"}, change: func(w *World) {
			unguarded(w)
			for _, slot := range w.Slots {
				slot.Volumes["data"].Node = "n1"
			}
		}},
		{name: "not while the set's records cannot all be read", world: silent, change: func(w *World) {
			unguarded(w)
			w.Broken = []string{"members/default/db/0"}
		}},
		{name: "not without the set's record", world: silent, change: func(w *World) { unguarded(w); w.Set = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world(t, c.world)
			if c.change != nil {
				c.change(&w)
			}
			if got := FenceNeeded(w); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestTheOutcomeOfFencingIsShownWhereItMatters: beside a member that only a fence frees, and
// no other on the same node.
func TestTheOutcomeOfFencingIsShownWhereItMatters(t *testing.T) {
	fencing := func(guards bool) func(*World) {
		return func(w *World) {
			proof.FindNode(w.Nodes, "n2").Facts.Guards = guards
			proof.FindNode(w.Nodes, "n2").Fencing = "fencing n2 failed: exit status 1"
		}
	}
	const lost = "ordered 2 n1 n2 n3 0:ready 1:ready@n2 replace=60 silent=n2,30"
	check(t, []rule{
		{name: "where a fence is needed", world: lost, change: fencing(false), want: "| 1:FenceFailed", says: "fencing n2 failed: exit status 1"},
		{name: "not where the deadline ends the life", world: lost, change: fencing(true), want: "| 1:NodeSilent", says: "counts as over"},
	})
}
