package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// firstEpoch is that of a store that was never restored.
const firstEpoch = 1

// Missing are the nodes that have to say, after a restore, what they run, and have not
// (SAFETY S8): those that the count names, and any other that the store knows. Excused ones
// are left out. It is empty once the count is done, and in a store that was never restored.
// A machine is known by its uid: it may come back under another name.
func Missing(epoch int64, count *records.Count, nodes []Node) (missing []records.CountNode) {
	var list []records.CountNode
	switch {
	case count != nil && count.Epoch == epoch && count.Done:
		return nil
	case count != nil && count.Epoch == epoch:
		list = count.Nodes
	case epoch <= firstEpoch:
		return nil
	}
	heard, listed := map[spec.UID]bool{}, map[spec.UID]bool{}
	for i := range nodes {
		if n := &nodes[i]; n.Facts != nil && n.Facts.Epoch >= epoch {
			heard[n.Node.UID] = true
		}
	}
	for _, c := range list {
		listed[c.UID] = true
		if c.Off == "" && !heard[c.UID] {
			missing = append(missing, c)
		}
	}
	for i := range nodes {
		if n := nodes[i].Node; !listed[n.UID] && !heard[n.UID] {
			missing = append(missing, records.CountNode{Name: n.Name, UID: n.UID, From: records.FromStore})
		}
	}
	slices.SortStableFunc(missing, func(a, b records.CountNode) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return missing
}

// halted says why nothing at all is decided now, as a reason and a sentence; "": it is.
// The store went back and nobody has declared what is to be done about it, or its restore
// was declared, and a node that has not been heard may run lives that it does not know. Or
// this server has just started, and a node may know that the store went back.
func halted(w *World) (reason, text string) {
	if w.Hold != nil {
		return BlockedHeld, w.Hold.Refusal()
	}
	var missing []spec.NodeName
	for _, n := range Missing(w.Epoch, w.Count, w.Nodes) {
		missing = append(missing, n.Name)
	}
	if len(missing) > 0 {
		return BlockedRestored, fmt.Sprintf("the store was restored; nothing starts, stops, moves or is given up before %s said what it runs ('stead restore --status')", theyHave(missing))
	}
	if w.Count.Open(w.Epoch) {
		return BlockedRestored, "the store was restored; every node has said what it runs, which is recorded first"
	}
	if len(w.Awaited) > 0 {
		return BlockedAwaiting, fmt.Sprintf("the server has just started; nothing starts, stops, moves or is given up before %s said hello, or %s have passed",
			theyHave(w.Awaited), w.AwaitFor.Round(time.Second))
	}
	return "", ""
}

// theyHave names the first nodes of a list as the subject of a sentence.
func theyHave(nodes []spec.NodeName) string {
	named := nodes[:min(len(nodes), mostNamed)]
	switch more := len(nodes) - len(named); {
	case len(nodes) == 1:
		return fmt.Sprintf("node %s has", named[0])
	case more > 0:
		return fmt.Sprintf("each of the nodes %s and %d more has", names(named), more)
	}
	return fmt.Sprintf("each of the nodes %s has", names(named))
}

// halt decides nothing and says so of every member that waits for something; false: it
// may go on. What is seen of the lives is marked all the same, for it is no order: a volume
// that was ready is not taken for a fresh one later.
func (s *step) halt() bool {
	reason, text := halted(&s.w)
	if reason == "" {
		return false
	}
	for i := range s.seats {
		switch t := &s.seats[i]; {
		case t.available && s.inRange(t):
		case t.member != nil && s.inRange(t) && !t.over:
			s.tell(t)
		case t.member != nil || s.inRange(t) || t.pending():
			s.block(t, reason, text)
		}
	}
	if s.w.AwaitFor > 0 {
		s.wake(s.w.AwaitFor)
	}
	if s.w.Hold == nil {
		s.mark()
	}
	return true
}

// pending: something is to be done about a volume of an identity.
func (t *seat) pending() bool {
	for _, v := range t.volumes {
		if v.Fate != records.FateKeep {
			return true
		}
	}
	return len(t.asked) > 0
}
