package plan

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// halted says why nothing at all is decided now, as a reason and a sentence; "": it is.
// The store went back and nobody has declared what is to be done about it, or its restore
// was declared, and a node that has not been heard may run lives that it does not know. Or
// this server has just started, and a node may know that the store went back.
func halted(w *World) (reason causes.BlockedReason, text string) {
	if w.Hold != nil {
		return causes.BlockedHeld, w.Hold.Refusal()
	}
	var missing []spec.NodeName
	for _, n := range proof.MissingNodes(w.Epoch, w.Count, w.Nodes) {
		missing = append(missing, n.Name)
	}
	if len(missing) > 0 {
		return causes.BlockedRestored, fmt.Sprintf("the store was restored; nothing is started, stopped, moved or given up until %s reported what it runs ('stead restore --status')", theyHave(missing))
	}
	if w.Count.Open(w.Epoch) {
		return causes.BlockedRestored, "the store was restored; every node has reported what it runs; waiting until that is recorded"
	}
	if len(w.Awaited) > 0 {
		return causes.BlockedAwaiting, fmt.Sprintf("the server has just started; nothing is started, stopped, moved or given up until %s connected, or %s have passed",
			theyHave(w.Awaited), w.AwaitFor.Round(time.Second))
	}
	return "", ""
}

// theyHave names the first nodes of a list as the subject of a sentence.
func theyHave(nodes []spec.NodeName) string {
	named := nodes[:min(len(nodes), place.MostNamed)]
	switch more := len(nodes) - len(named); {
	case len(nodes) == 1:
		return fmt.Sprintf("node %s has", named[0])
	case more > 0:
		return fmt.Sprintf("each of the nodes %s and %d more has", place.Names(named), more)
	}
	return fmt.Sprintf("each of the nodes %s has", place.Names(named))
}

// blockHalted decides nothing and says so of every member that waits for something; false: it
// may go on. What is seen of the lives is marked all the same, for it is no order: a volume
// that was ready is not taken for a fresh one later.
func (s step) blockHalted() bool {
	reason, text := halted(&s.world)
	if reason == "" {
		return false
	}
	for i := range s.members {
		switch t := &s.members[i]; {
		case t.Available && t.wanted:
		case t.member != nil && t.wanted && !t.Over:
			s.blockWaiting(t)
		case t.member != nil || t.wanted || t.pending():
			s.block(t, reason, text)
		}
	}
	if s.world.AwaitFor > 0 {
		s.wake(s.world.AwaitFor)
	}
	if s.world.Hold == nil {
		s.mark()
	}
	return true
}
