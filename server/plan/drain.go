package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// drain stops members of nodes that are to be empty (SEMANTICS Part 4, Planned absence), in their turns, within the budget that
// updates, restarts and drains share; under OrderedReady one at a time. One that is not available costs nothing as long as no
// more are down than the budget allows (SAFETY S20). What a node is to be empty of at once does not ask for
// budget or floor, and neither do members whose host is being shut down, but for mayEndWithHost. Members out of range leave by
// rule 5; those of a silent node are left alone. It reports whether it stopped any.
func (s step) drain() (acted bool) {
	for t := range s.turns() {
		d := s.leaving(t)
		switch {
		case d == nil:
		case !d.host && s.drainMoves(t.Member.Node) && len(t.localVolumes()) > 0: // see moveForDrain
		case d.host && (d.atOnce || s.mayEndWithHost(t)):
			acted = true
			s.stop(t, records.ReasonNodeShutdown, fmt.Sprintf("the host of node %s is being shut down", t.Member.Node))
		case !d.host && (d.atOnce || s.mayLeave(t)):
			acted = true
			s.stop(t, records.ReasonDrain, fmt.Sprintf("node %s is drained", t.Member.Node))
		default:
			t.drainDelayed = t.Available
		}
	}
	return acted
}

// leave is why a life is to end with all others of its node: by a user's drain, or because its host is being shut down.
type leave struct{ host, atOnce bool }

// leaving is why the life is to end with its node; nil: it is not, or is ending.
func (f *facts) leaving(t *memberState) *leave {
	if t.Member == nil || t.Over || t.stopping() || !t.Live {
		return nil
	}
	n := f.node(t.Member.Node)
	wanted := n.Node.Drain
	switch ends := n.Facts.ShuttingDown(); {
	case ends != nil:
		return &leave{host: true, atOnce: ends.AtOnce || wanted != nil && wanted.AtOnce}
	case wanted != nil:
		return &leave{atOnce: wanted.AtOnce}
	}
	return nil
}

// awaitsNode: the member was stopped with all others of its node, which is drained still, or has not booted yet.
func (f *facts) awaitsNode(t *memberState) bool {
	if t.Member == nil || !t.Over {
		return false
	}
	n := f.node(t.Member.Node)
	switch t.Member.StopReason {
	case records.ReasonDrain:
		return n != nil && n.Node.Drain != nil
	case records.ReasonNodeShutdown:
		return n != nil && (n.Facts.ShuttingDown() != nil || !n.Connected())
	}
	return false
}

// mayEndWithHost: under OrderedReady all above on that host are gone; and of the members elsewhere no more are down than the budget
// allows, for they may return while the host waits. The host goes down in any case: no floor holds it, and those that
// went before with it are not waited for.
func (s step) mayEndWithHost(t *memberState) bool {
	if s.aboveOnHost(t) != nil {
		return false
	}
	down := s.foldedVacant()
	for _, other := range s.inside {
		with := other.Member != nil && other.Member.Node == t.Member.Node && (!other.Over || s.awaitsNode(other))
		down += one(!with && !other.Available && s.broken(other) == "")
	}
	return down < s.atMost()
}

// aboveOnHost is a member that ends before t under OrderedReady, for both are on a host that is being shut down; nil: none is left.
func (d *draft) aboveOnHost(t *memberState) *memberState {
	if !d.ordered() {
		return nil
	}
	for _, other := range d.inside {
		if other.ID.Ordinal > t.ID.Ordinal && other.Member != nil && !other.Over && other.Member.Node == t.Member.Node {
			return other
		}
	}
	return nil
}

// mayLeave: budget and floor allow the stop of the member now, nobody is busy, and no surplus member is there that has to
// leave while the others are available.
func (s step) mayLeave(t *memberState) bool {
	switch {
	case s.surplusFirst(), s.waitsForBusy(t) != nil:
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
	if d := e.leaving(t); d != nil && d.host {
		return causes.BlockedTurn, e.shutdownText(t)
	}
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

// shutdownText says for what the stop of an available member waits whose host is being shut down.
func (e explainer) shutdownText(t *memberState) string {
	stops := fmt.Sprintf("it stops for the shutdown of the host of node %s", t.Member.Node)
	if above := e.aboveOnHost(t); above != nil {
		return fmt.Sprintf("%s when %s is gone", stops, above.ID.MemberName())
	}
	if b := e.awaited(); b != nil && b.ID != t.ID {
		return fmt.Sprintf("%s when %s is available, or the time of the shutdown is nearly over", stops, b.ID.MemberName())
	}
	return stops + " when fewer members are down elsewhere, or the time of the shutdown is nearly over"
}

// leavingText says of a member that is not available why it is not stopped with its node, and how a person may have it stopped.
func (e explainer) leavingText(t *memberState) string {
	d := e.leaving(t)
	switch {
	case d == nil, !d.host && e.drainMoves(t.Member.Node) && len(t.localVolumes()) > 0:
		return ""
	case d.host:
		return "; " + e.shutdownText(t)
	}
	return fmt.Sprintf("; it stops for the drain of node %s when it is available, or no more than %d are down; to stop it now: stead restart %s",
		t.Member.Node, e.atMost(), t.ID.MemberName())
}
