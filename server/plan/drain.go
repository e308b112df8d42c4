package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// drain stops members of nodes that are to be empty (SEMANTICS Part 4, Planned absence), highest first, within the budget that
// updates, restarts and drains share; under OrderedReady one at a time. One that is not available costs nothing as long as no
// more are down than the budget allows (SAFETY S20). What a node is to be empty of at once does not ask for
// budget or floor. Members out of range leave by rule 5; those of a silent node are left alone. It reports whether it stopped any.
func (s step) drain() (acted bool) {
	for _, t := range slices.Backward(s.inside) {
		d := s.leaving(t)
		switch {
		case d == nil:
		case d.AtOnce || s.mayLeave(t):
			acted = true
			s.stop(t, records.ReasonDrain, fmt.Sprintf("node %s is drained", t.Member.Node))
		default:
			t.drainDelayed = t.Available
		}
	}
	return acted
}

// leaving is the drain with which the life is to end; nil: it is not, or is ending.
func (f *facts) leaving(t *memberState) *records.Drain {
	if t.Member == nil || t.Over || t.stopping() || !t.Live {
		return nil
	}
	return f.node(t.Member.Node).Node.Drain
}

// awaitsNode: the member was stopped with all others of its node, which is drained still.
func (f *facts) awaitsNode(t *memberState) bool {
	if t.Member == nil || !t.Over || t.Member.StopReason != records.ReasonDrain {
		return false
	}
	n := f.node(t.Member.Node)
	return n != nil && n.Node.Drain != nil
}

// mayLeave: budget and floor allow the stop of the member now, and no surplus member is there that has to
// leave while the others are available.
func (s step) mayLeave(t *memberState) bool {
	switch {
	case s.surplusFirst():
		return false
	case t.Available:
		return s.down() < s.atMost() && s.spare() > 0
	}
	return s.down() <= s.atMost() && s.spare() >= 0
}

// surplusFirst: under OrderedReady surplus members leave only while those that stay are available.
func (d *draft) surplusFirst() bool {
	return d.ordered() && slices.ContainsFunc(d.members, func(t *memberState) bool { return !t.wanted && !t.vacant() })
}

// atMost is how many members may be down when a drain has stopped one.
func (f *facts) atMost() int {
	if f.ordered() {
		return 1
	}
	return f.budget()
}

// drainWait says for what the stop of an available member waits.
func (e explainer) drainWait(t *memberState) (reason causes.BlockedReason, text string) {
	stops := fmt.Sprintf("it stops for the drain of node %s", t.Member.Node)
	switch b := e.awaited(); {
	case e.surplusFirst():
		return causes.BlockedTurn, stops + " when the surplus members are gone"
	case e.floored(), e.down() < e.atMost():
		return causes.BlockedFloor, fmt.Sprintf("its stop for the drain of node %s is held back: %s", t.Member.Node, e.floorText())
	case b != nil && e.awaitsNode(e.memberOf(b.ID.Ordinal)):
		return causes.BlockedTurn, fmt.Sprintf("%s when %s is available, which waits for its node, and at most %d may be down at a time; to stop all at once: stead drain %s --disable-eviction",
			stops, b.ID.MemberName(), e.atMost(), t.Member.Node)
	case b != nil && b.ID != t.ID:
		return causes.BlockedTurn, fmt.Sprintf("%s when %s is available; at most %d may be down at a time", stops, b.ID.MemberName(), e.atMost())
	}
	return causes.BlockedTurn, fmt.Sprintf("%s later; at most %d may be down at a time", stops, e.atMost())
}

// leavingText says of a member that is not available why it is not stopped with its node, and how a person may have it stopped.
func (e explainer) leavingText(t *memberState) string {
	if e.leaving(t) == nil {
		return ""
	}
	return fmt.Sprintf("; it stops for the drain of node %s when it is available, or no more than %d are down; to stop it now: stead restart %s",
		t.Member.Node, e.atMost(), t.ID.MemberName())
}
