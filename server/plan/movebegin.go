package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// MostMoves is in how many moves a node has a part at a time, in either role; others wait.
const MostMoves = 4

// MoveRefusal says why what a person asks about the move of a member is not done, and what to do; "": it is done.
func MoveRefusal(w World, q moves.MoveRequest) string {
	if w.Set == nil {
		return "its set is not there any more"
	}
	s := newStep(w).mover()
	for _, t := range s.members {
		if t.ID == q.ID {
			return s.moveRefusal(t, &q)
		}
	}
	return "there is no record of " + q.ID.MemberName()
}

// moveRefusal is the same within a step.
func (s mover) moveRefusal(t *memberState, q *moves.MoveRequest) string {
	m := t.Move
	switch {
	case q.Verb == moves.MoveGiveBack:
		return s.backRefusal(t, q)
	case q.Verb == moves.MoveAbort && m == nil:
		unknown, why := s.unknownMove(t)
		if why == "" && unknown.Move != q.Move {
			why = "there is no such move any more"
		}
		return why
	case q.Verb == moves.MoveAbort && m.Move != q.Move:
		return "there is no such move any more"
	case q.Verb == moves.MoveAbort && m.Phase == moves.MoveBack, q.Verb == moves.MoveAbort && s.isBack(m):
		return fmt.Sprintf("its volumes go back to node %s already", m.From.Node)
	case q.Verb == moves.MoveAbort && m.Phase == moves.MoveFlipped, q.Verb == moves.MoveAbort && s.arrived(m):
		return fmt.Sprintf("its volumes are on node %s already; to have it back: stead move %s --to %s, once it is ready there; if node %s is lost for good: stead move %s --back",
			m.To.Node, t.ID.MemberName(), m.From.Node, m.To.Node, t.ID.MemberName())
	case q.Verb == moves.MoveAbort && m.Phase == moves.MoveAborting:
		return "the move is being aborted already"
	case q.Verb == moves.MoveAbort:
		return ""
	case q.Verb != moves.MoveBegin:
		return fmt.Sprintf("unknown request %q about a move", q.Verb)
	case m != nil && m.Phase == moves.MoveBack:
		return s.forwardRefusal(t, q)
	case m != nil && m.Phase == moves.MoveAborting:
		return s.copyRefusal(t, q)
	case m != nil:
		return fmt.Sprintf("it is being moved from node %s to node %s already (%s); to stop that: stead move %s --abort", m.From.Node, m.To.Node, m.Phase, t.ID.MemberName())
	}
	from, why := s.movable(t)
	switch {
	case why != "":
		return why
	case from == q.To.Node:
		return fmt.Sprintf("its volumes are on node %s already", from)
	case !s.known(q.To):
		return fmt.Sprintf("node %s is not the machine that was named", q.To.Node)
	}
	if why := s.lacksMoves(from); why != "" {
		return why
	}
	if no := s.placer.Takes(s.moveTo(t), q.To.Node); no != nil {
		return no.Text
	}
	return s.lacksMoves(q.To.Node)
}

// movable is the node on which the local volumes of a member are, all together; why: they cannot be moved.
func (s mover) movable(t *memberState) (from spec.NodeName, why string) {
	name := t.ID.MemberName()
	local := t.localVolumes()
	switch {
	case !t.wanted:
		return "", fmt.Sprintf("%s is not to be a member any more", name)
	case s.world.Set.Orphaned:
		return "", "nothing is done for its set: " + orphanedText
	case len(local) == 0:
		return "", fmt.Sprintf("%s has no volume that is bound to a node, so that there is nothing to move; to have it start elsewhere: stead cordon its node, stead restart %s, and stead uncordon the node", name, name)
	case len(t.Asked) > 0:
		return "", "something is being done about one of its volumes; wait for that"
	}
	for _, v := range local {
		if v.Fate != records.FateKeep {
			return "", fmt.Sprintf("its volume of the claim %s is to go, or is looked for (%s)", v.Claim, v.Fate)
		}
		if v.Node != local[0].Node {
			return "", fmt.Sprintf("its volumes are on two nodes, %s and %s", local[0].Node, v.Node)
		}
	}
	return local[0].Node, ""
}

// lacksMoves says why a node can have no part in a move; "": it can.
func (f moveFacts) lacksMoves(name spec.NodeName) string {
	n := f.node(name)
	switch {
	case n == nil:
		return fmt.Sprintf("node %s is not known", name)
	case !n.Connected():
		return fmt.Sprintf("node %s is unreachable", name)
	case n.Facts == nil || !n.Facts.Moves:
		return fmt.Sprintf("%s: the agent of node %s is too old to move volumes; upgrade it", causes.BlockedAgentTooOld, name)
	}
	return ""
}

// moveTo is what the next life of a member asks of the node to which its local volumes are to be moved.
func (s mover) moveTo(t *memberState) *place.Request {
	r := s.request(t)
	r.Volumes = withoutLocal(t.Volumes)
	for _, name := range r.Template.ClaimNames() {
		if c := s.world.Claims[name]; c != nil && c.Record != nil {
			r.Objects = append(r.Objects, c.object(name))
		}
	}
	return r
}

// beginMove begins the move that a person asks for, or that the drain of the member's node wants.
func (s mover) beginMove(t *memberState) {
	q := t.MoveAsked
	switch {
	case q != nil && q.Verb == moves.MoveAbort:
		s.resolveSeal(t, q)
		return
	case q == nil || q.Verb != moves.MoveBegin:
		s.moveForDrain(t)
		return
	}
	if t.volumesKept || s.moveRefusal(t, q) != "" {
		return
	}
	from, _ := s.movable(t)
	if full := s.fullOfMoves(from, q.To.Node); full != "" {
		t.moveWaits = &place.Refusal{Reason: causes.BlockedTurn, Text: fmt.Sprintf("its move to node %s begins later: %s", q.To.Node, full)}
		return
	}
	s.begin(t, from, q.To, moves.Move{By: q.By, BytesPerSecond: q.BytesPerSecond}, true)
}

// moveForDrain begins the move of a member whose node is to be empty for good, or notes why it cannot.
func (s mover) moveForDrain(t *memberState) {
	if t.Member == nil || t.volumesKept || !s.drainMovesVolumes(t) {
		return
	}
	from, why := s.movable(t)
	if why != "" {
		return
	}
	if rest := s.world.MoveRest[t.ID]; rest.Left > 0 {
		s.wake(rest.Left)
		t.moveWaits = &place.Refusal{Reason: causes.BlockedBackOff, Text: fmt.Sprintf("its last move was aborted (%s); the drain of its node begins another after a while", rest.Why)}
		return
	}
	no := func(reason causes.BlockedReason, text string) {
		t.moveWaits = &place.Refusal{Reason: reason, Text: fmt.Sprintf("it stays on node %s, which is drained with --move: %s", from, text)}
	}
	if why := s.lacksMoves(from); why != "" {
		no(causes.BlockedAgentTooOld, why)
		return
	}
	r := s.moveTo(t)
	n, refusal := s.placer.Choose(r)
	switch {
	case refusal != nil:
		no(refusal.Reason, refusal.Text)
	case s.lacksMoves(n.Node.Name) != "":
		no(causes.BlockedAgentTooOld, s.lacksMoves(n.Node.Name))
	case s.fullOfMoves(from, n.Node.Name) != "":
		no(causes.BlockedTurn, s.fullOfMoves(from, n.Node.Name))
	default:
		s.begin(t, from, moves.MoveEnd{Node: n.Node.Name, UID: n.Node.UID}, moves.Move{By: fmt.Sprintf("the drain of node %s", from)}, false)
	}
}

// drainMovesVolumes: a local volume of the member is on a node whose members are to be moved away. It is asked of every member at every step.
func (f *facts) drainMovesVolumes(t *memberState) bool {
	for _, v := range t.Volumes {
		if !v.Shared && f.drainMoves(v.Node) {
			return true
		}
	}
	return false
}

// drainMoves: members of the node are to be moved away, not only stopped.
func (f *facts) drainMoves(node spec.NodeName) bool {
	n := f.node(node)
	return n != nil && n.Node.Drain.Moves()
}

// fullOfMoves says which of two nodes has as many moves as it may; "": neither.
func (s mover) fullOfMoves(nodes ...spec.NodeName) string {
	for _, name := range nodes {
		if n := s.node(name); n != nil && n.Moves+s.moved[name] >= MostMoves {
			return fmt.Sprintf("node %s has a part in %d moves, and at most %d are done at a time", name, n.Moves+s.moved[name], MostMoves)
		}
	}
	return ""
}

// begin makes the move m of a member's local volumes.
func (s mover) begin(t *memberState, from spec.NodeName, to moves.MoveEnd, m moves.Move, asked bool) {
	m.ID, m.Move, m.Phase, m.Epoch, m.BeganAt = t.ID, moves.MoveID(s.world.VolumeID()), moves.MoveCopying, s.world.Epoch, s.world.Now
	m.From, m.To = moves.MoveEnd{Node: from, UID: s.node(from).Node.UID}, to
	for _, v := range t.localVolumes() {
		m.Claims = append(m.Claims, moves.MoveClaim{
			Claim: v.Claim, Old: string(v.UID), New: string(s.world.VolumeID()), Number: v.Number, Class: v.Class, SizeBytes: v.SizeBytes,
		})
	}
	s.act(BeginMove{Move: m, Asked: asked, Text: fmt.Sprintf("the volumes of %s are copied from node %s to node %s while it runs (%s)", t.ID.MemberName(), from, to.Node, m.By)})
	t.become(t.withMove(&m, asked))
	s.moved[from]++
	s.moved[to.Node]++
	s.placer.Take(s.moveTo(t), to.Node)
}

// voidMoveRequest removes what a person asked and what is not done.
func (s mover) voidMoveRequest(t *memberState) {
	if t.MoveAsked == nil || t.moveWaits != nil || t.volumesKept {
		return
	}
	if why := s.moveRefusal(t, t.MoveAsked); why != "" {
		s.act(VoidMoveRequest{ID: t.ID, Text: why})
		t.become(t.withMove(t.Move, true))
	}
}
