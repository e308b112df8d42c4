package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// Moves: a member goes to another node with its local volumes (SEMANTICS Part 4, Move; SAFETY S12). What disturbs no member
// comes before rule 2: a move begins, is aborted, goes on while the member is down, and ends. The stop of a member that
// runs shares the budget of all planned absence.

// mover are the rules of moves.
type mover struct {
	step
	moveFacts
}

func (s step) mover() mover { return mover{s, s.ofMoves()} }

// moveVolumes has all moves go on that need not stop a member.
func (s mover) moveVolumes() {
	for _, t := range slices.Backward(s.members) {
		if t.gone {
			continue
		}
		if t.Move == nil {
			s.beginMove(t)
		} else {
			s.advanceMove(t)
		}
		s.voidMoveRequest(t)
	}
}

// advanceMove does the next thing about a move, or nothing.
func (s mover) advanceMove(t *memberState) {
	m := t.Move
	if m.Phase != moves.MoveBack && s.isBack(m) {
		s.goneBack(t)
		return
	}
	if m.Phase.Down() || m.Phase == moves.MoveCopying {
		if a := s.aborted(t); a != nil && !s.arrived(m) {
			s.writeMove(t, *a)
			return
		}
	}
	switch m.Phase {
	case moves.MoveCopying: // one that is wanted is stopped in its turn: stopForMoves
		if !t.wanted && s.arrived(m) && t.endedByWord() {
			next := *m
			next.Phase, next.Stopped = moves.MoveStopping, t.lastToken()
			s.writeMove(t, AdvanceMove{Move: next, Heard: []spec.NodeName{m.To.Node}, Text: fmt.Sprintf("the volumes of %s, which is not wanted, are on node %s already", t.ID.MemberName(), m.To.Node)})
		}
	case moves.MoveStopping:
		if t.endedByWord() {
			next := *m
			next.Phase = moves.MoveSealing
			s.writeMove(t, AdvanceMove{Move: next, Text: fmt.Sprintf("nothing of %s runs on node %s, which seals its volumes", t.ID.MemberName(), m.From.Node)})
		}
	case moves.MoveSealing:
		s.flip(t)
	case moves.MoveAborting:
		if s.arrived(m) && t.Member != nil && !t.Over && !t.stopping() && !t.Ready && !s.world.Set.Orphaned {
			s.stop(t, records.ReasonMove, fmt.Sprintf("its volumes are on node %s", m.To.Node)) // it waits for what is sealed
		} else if s.arrived(m) && s.flippable(t) {
			s.flip(t)
		} else if text, left := s.abortOver(t); text != "" {
			s.endMove(t, left, text)
		} else {
			s.copyAsked(t)
		}
	case moves.MoveFlipped:
		if text := s.moveOver(t); text != "" {
			s.endMove(t, true, text)
		} else if text := s.nothingLeft(t); text != "" {
			s.endMove(t, false, text)
		} else {
			s.backAsked(t)
		}
	case moves.MoveBack:
		if text := s.backOver(t); text != "" {
			s.endMove(t, false, text)
		} else {
			s.forwardAsked(t)
		}
	}
}

// writeMove records what became of a move.
func (s mover) writeMove(t *memberState, a AdvanceMove) {
	s.act(a)
	t.become(t.withMove(&a.Move, a.Asked))
	t.moveWritten = true
}

// flippable: the volumes of a move are what it names. What arrived before a restore is flipped also if a policy gives it up.
func (f moveFacts) flippable(t *memberState) bool {
	fates := []records.VolumeFate{records.FateKeep}
	if f.arrived(t.Move) {
		fates = append(fates, records.FateDelete)
	}
	for _, c := range t.Move.Claims {
		if !AtSource(t.Move, c, t.Volumes[c.Claim], fates...) {
			return false
		}
	}
	return true
}

// flip makes the copies the volumes, when the target has all of the sealed source: by the sums of both, or because it was
// flipped already in a history of the store that is lost. Before that it records the sums of the source.
func (s mover) flip(t *memberState) {
	m := t.Move
	source := s.said(m, moves.MoveSource)
	lost := s.arrived(m)
	switch {
	case !t.endedByWord() || len(t.Strays) > 0 || !s.flippable(t) || !s.reaches(m.To):
	case !lost && m.Sums == nil:
		if state(source) == moves.MoveSealed && sumsOfAll(m, source.Sums) {
			next := *m
			next.Sums = source.Sums
			s.writeMove(t, AdvanceMove{Move: next, Heard: []spec.NodeName{m.From.Node},
				Text: fmt.Sprintf("node %s has sealed the volumes of %s; node %s copies the rest and compares", m.From.Node, t.ID.MemberName(), m.To.Node)})
		}
	case MayFlip(m, s.world.Nodes, s.world.Epoch):
		s.flipTo(t, FlipMove{Text: fmt.Sprintf("the volumes of %s are on node %s now", t.ID.MemberName(), m.To.Node)})
	}
}

// flipTo has the copies of a move be the volumes.
func (s mover) flipTo(t *memberState, a FlipMove) {
	m := t.Move
	a.Move = *m
	a.Move.Phase, a.Move.Why = moves.MoveFlipped, ""
	for _, c := range m.Claims {
		v := *t.Volumes[c.Claim]
		v.Node, v.UID = m.To.Node, records.VolumeID(c.New)
		a.Volumes = append(a.Volumes, v)
		t.become(t.withVolume(&v))
	}
	s.act(a)
	t.become(t.withMove(&a.Move, a.Asked))
	t.moveWritten = true
}

// moveOver says why a move that was flipped is over; "": it is not. The volumes have arrived, and a life is ready on them, or
// none is wanted, or would have them; or they are the identity's no more.
func (s mover) moveOver(t *memberState) string {
	m, here := t.Move, false
	for _, c := range m.Claims {
		v := t.Volumes[c.Claim]
		here = here || v != nil && string(v.UID) == c.New
	}
	name := t.ID.MemberName()
	switch {
	case !here:
		return fmt.Sprintf("the move of %s is over: its volumes are gone", name)
	case !s.arrived(m):
		return ""
	case t.Member != nil && t.Ready && t.Member.Node == m.To.Node && t.Member.Token.Compare(m.Stopped) > 0:
		return fmt.Sprintf("%s is ready on node %s; its old volumes on node %s are given up", name, m.To.Node, m.From.Node)
	case !t.wanted:
		return fmt.Sprintf("the volumes of %s, which is not wanted, are on node %s; the old ones on node %s are given up", name, m.To.Node, m.From.Node)
	case !slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool { return s.world.Set.Spec.Claim(c.Claim) != nil }): // so it may start on any node
		return fmt.Sprintf("the volumes of %s are on node %s, and its set has none of their claims any more; the old ones on node %s are given up", name, m.To.Node, m.From.Node)
	}
	return ""
}

// nothingLeft says why a move that was flipped is over before a life is ready at its target; "": it is not. Its source says that it has none
// of the old volumes, so that the move keeps nothing any more: it had ended before the store was restored, or a disk died.
func (s mover) nothingLeft(t *memberState) string {
	m, r := t.Move, s.said(t.Move, moves.MoveSource)
	if !s.arrived(m) || !s.reaches(m.From) || state(r) != moves.MoveFailed || slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool { return !slices.Contains(r.Absent, c.Claim) }) {
		return ""
	}
	return fmt.Sprintf("the volumes of %s are on node %s, and node %s has none of the old ones any more", t.ID.MemberName(), m.To.Node, m.From.Node)
}

// endMove removes the record of a move; left: the old volumes are given up, as those that were left on a host (SAFETY S11).
func (s mover) endMove(t *memberState, left bool, text string) {
	m := t.Move
	a := EndMove{Move: *m, Text: text}
	if left && s.node(m.From.Node) != nil {
		for _, c := range m.Claims {
			a.Left = append(a.Left, leftOf(t, c, c.Old, m.From.Node))
		}
	}
	s.act(a)
	t.become(t.withMove(nil, false))
	t.moveWritten = true
	if len(a.Left) > 0 {
		t.become(t.withLeft(m.From.Node))
	}
}

// stopForMoves stops members whose volumes are nearly all copied, in their turns, within the budget that updates, restarts and
// drains share; under OrderedReady one at a time. It reports whether it stopped any.
func (s mover) stopForMoves() (acted bool) {
	for t := range s.turns() {
		if t.Move == nil || t.Move.Phase != moves.MoveCopying || t.stopping() || !s.mayStop(t.Move) {
			continue
		}
		m := *t.Move
		m.Phase, m.Stopped = moves.MoveStopping, t.lastToken()
		switch {
		case !s.arrived(t.Move) && !s.mayLeave(t):
			t.moveDelayed = t.Available
		case t.vacant():
			s.writeMove(t, AdvanceMove{Move: m, Heard: []spec.NodeName{m.To.Node}, Text: fmt.Sprintf("%s does not start until its volumes are on node %s", t.ID.MemberName(), m.To.Node)})
		default:
			s.stopFor(t, &m)
			acted = true
		}
	}
	return acted
}

// mayStop: both ends are there, and the target says that little is missing.
func (s mover) mayStop(m *moves.Move) bool {
	return s.reaches(m.From) && s.reaches(m.To) && (state(s.said(m, moves.MoveTarget)) == moves.MoveWarm || s.arrived(m))
}

// stopFor ends a life for a move, which goes on with it.
func (s mover) stopFor(t *memberState, m *moves.Move) {
	a := Stop{
		ID: t.ID, Token: t.Member.Token, Reason: records.ReasonMove, Move: m,
		Text: fmt.Sprintf("%s stops on node %s: its volumes move to node %s", t.ID.MemberName(), t.Member.Node, m.To.Node),
	}
	s.act(a)
	t.become(t.afterStop(&a).withMove(m, false))
}
