package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// The way back of a move that was flipped and whose target was lost before a life was ready there (SAFETY S12).

// BackMove gives the old volumes of a move back to the identity, in one transaction. Left are the copies at the target, which are
// given up should its host return.
type BackMove struct {
	Move    moves.Move // as it is to be
	Volumes []records.Volume
	Left    []records.VolumeReport
	// Asked: a person wants it, and that is answered; else the source says that it was done before the store was restored.
	Asked bool
	Text  string
}

func (BackMove) action() {}

// isBack: the source says that it was given the volumes back. It keeps that for good, so that after a restore no copy that
// arrived is the volume.
func (f moveFacts) isBack(m *moves.Move) bool {
	return state(f.said(m, moves.MoveSource)) == moves.MoveIsBack
}

// lost: the machine at this end was removed; or it is fenced, by a person or by the fence command, and was not heard of since.
func (f moveFacts) lost(end moves.MoveEnd) bool {
	return !f.known(end) || f.node(end.Node).Fenced && f.node(end.Node).Session == nil
}

func (f moveFacts) lostTarget(m *moves.Move) bool { return f.lost(m.To) }

// takesBack: the source is there, has the volumes sealed, and knows how to take them back.
func (f moveFacts) takesBack(m *moves.Move) bool {
	return f.reaches(m.From) && f.node(m.From.Node).Facts != nil && f.node(m.From.Node).Facts.MovesBack && state(f.said(m, moves.MoveSource)) == moves.MoveSealed
}

// MayGoBack reports whether the old volumes of a move may become the identity's again: its target is lost for good and its source
// has them sealed, or was given them back in a history of the store that is lost.
func MayGoBack(m *moves.Move, nodes []Node, epoch int64) bool {
	f := factsOf(nodes, epoch)
	return m.Phase != moves.MoveBack && f.isBack(m) || m.Phase == moves.MoveFlipped && f.lostTarget(m) && f.takesBack(m)
}

// backRefusal says why a move does not go back, and what to do first; "": it does.
func (s mover) backRefusal(t *memberState, q *moves.MoveRequest) string {
	m, name := t.Move, t.ID.MemberName()
	switch {
	case m == nil || m.Move != q.Move:
		return "it is not being moved"
	case m.Phase == moves.MoveBack || s.isBack(m):
		return fmt.Sprintf("its volumes go back to node %s already", m.From.Node)
	case m.Phase == moves.MoveAborting:
		return "the move is being aborted: it stays where it is"
	case m.Phase != moves.MoveFlipped:
		return fmt.Sprintf("its volumes are those on node %s still; to give the move up: stead move %s --abort", m.From.Node, name)
	case t.readySince(m):
		return fmt.Sprintf("it was ready on node %s, so what it wrote there counts, and the copy on node %s does not; bring node %s back", m.To.Node, m.From.Node, m.To.Node)
	case s.reaches(m.To):
		return s.targetThere(m, name)
	case !s.lostTarget(m):
		return fmt.Sprintf("node %s is unreachable, and may have its volumes in use; if it is off for good: stead node fence %s --i-have-powered-off", m.To.Node, m.To.Node)
	case t.unsettled() != "":
		return t.unsettled()
	case !s.backable(t):
		return "something else was decided of one of its volumes"
	}
	return s.sourceRefusal(m)
}

// unsettled says what is under way of a member, so that other volumes cannot be made its own; "": nothing is.
func (t *memberState) unsettled() string {
	switch name := t.ID.MemberName(); {
	case !t.endedByWord():
		return fmt.Sprintf("token %s of it may be running on node %s; wait until that is proven to be over ('stead explain %s')", t.Member.Token, t.Member.Node, name)
	case len(t.Strays) > 0:
		return fmt.Sprintf("a node runs a life of it that the store does not know ('stead explain %s')", name)
	case len(t.Asked) > 0:
		return "something is being done about one of its volumes; wait for that"
	}
	return ""
}

// targetThere says what to do about a target that is reached: if its disk is lost, no life is ever ready there.
func (f moveFacts) targetThere(m *moves.Move, name string) string {
	if r := f.said(m, moves.MoveTarget); r != nil && r.Error != "" {
		return fmt.Sprintf("node %s is there, and says of its copy: %s; mend that, or, if the copy is lost for good, power the node off, 'stead node fence %s --i-have-powered-off', and ask again", m.To.Node, r.Error, m.To.Node)
	}
	return fmt.Sprintf("node %s is there, and has its volumes; to have it back: stead move %s --to %s, once it is ready there", m.To.Node, name, m.From.Node)
}

// sourceRefusal says why the source of a move cannot have the volumes back; "": it can.
func (f moveFacts) sourceRefusal(m *moves.Move) string {
	switch {
	case !f.reaches(m.From):
		return fmt.Sprintf("node %s, which has them sealed, is unreachable; start its agent", m.From.Node)
	case f.node(m.From.Node).Facts == nil || !f.node(m.From.Node).Facts.MovesBack:
		return fmt.Sprintf("%s: the agent of node %s is too old to take volumes back; upgrade it", causes.BlockedAgentTooOld, m.From.Node)
	case !f.takesBack(m):
		return fmt.Sprintf("node %s does not say that it has them sealed; see 'stead describe node %s' and its log", m.From.Node, m.From.Node)
	}
	return ""
}

// readySince: a life of the member was ready since its move stopped it.
func (m *memberFacts) readySince(move *moves.Move) bool {
	if m.Identity != nil && m.Identity.ReadyToken.Compare(move.Stopped) > 0 {
		return true
	}
	return m.Member != nil && m.Member.Token.Compare(move.Stopped) > 0 && m.Report != nil && (m.Report.Ready || m.Report.ReadyOnce)
}

// backable: each volume of a move is the copy, and kept, or given up by a policy alone; or the old one; or none.
func (f moveFacts) backable(t *memberState) bool {
	return !slices.ContainsFunc(t.Move.Claims, func(c moves.MoveClaim) bool {
		v := t.Volumes[c.Claim]
		return v != nil && string(v.UID) == c.New && v.Fate.Ordered()
	})
}

// goBack has the volumes of a move be the old ones again.
func (s mover) goBack(t *memberState, a BackMove) {
	m := t.Move
	a.Move = *m
	a.Move.Phase, a.Move.Why = moves.MoveBack, fmt.Sprintf("node %s was lost", m.To.Node)
	for _, c := range m.Claims {
		if v := t.Volumes[c.Claim]; v != nil && string(v.UID) == c.New {
			old := *v
			old.Node, old.UID = m.From.Node, records.VolumeID(c.Old)
			a.Volumes = append(a.Volumes, old)
			t.become(t.withVolume(&old))
		}
		if s.known(m.To) {
			a.Left = append(a.Left, leftOf(t, c, c.New, m.To.Node))
		}
	}
	s.act(a)
	t.become(t.withMove(&a.Move, a.Asked))
	if len(a.Left) > 0 {
		t.become(t.withLeft(m.To.Node))
	}
	t.moveWritten = true
}

// goneBack has the record of a move follow what its source says: that it was given the volumes back before the store was restored.
// A life on the copies, which count no more, is ended first.
func (s mover) goneBack(t *memberState) {
	m, name := t.Move, t.ID.MemberName()
	switch {
	case m.Phase == moves.MoveFlipped && !t.endedByWord():
		if !t.Over && !t.stopping() {
			s.stop(t, records.ReasonMove, fmt.Sprintf("its volumes went back to node %s before the store was restored", m.From.Node))
		}
	case m.Phase == moves.MoveFlipped && len(t.Strays) > 0, !s.backable(t):
	default:
		s.goBack(t, BackMove{Text: fmt.Sprintf("node %s was given the volumes of %s back before the store was restored: those on node %s do not count", m.From.Node, name, m.To.Node)})
	}
}

// backAsked has a move go back that a person wants back.
func (s mover) backAsked(t *memberState) {
	q, m := t.MoveAsked, t.Move
	if q == nil || q.Verb != moves.MoveGiveBack || s.backRefusal(t, q) != "" {
		return
	}
	s.goBack(t, BackMove{Asked: true, Text: fmt.Sprintf("node %s was lost: %s starts again on node %s, with its data as of the moment when it was stopped there; what it wrote on node %s since is given up",
		m.To.Node, t.ID.MemberName(), m.From.Node, m.To.Node)})
}

// backOver says why a move that goes back is over; "": it is not. From then on its target may discard what it has.
func (s mover) backOver(t *memberState) string {
	m, name := t.Move, t.ID.MemberName()
	here := slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool {
		v := t.Volumes[c.Claim]
		return v != nil && string(v.UID) == c.Old
	})
	switch {
	case !here:
		return fmt.Sprintf("the move of %s is over: its volumes are gone", name)
	case s.hasVolumes(m, t.volume):
		return fmt.Sprintf("the volumes of %s are those on node %s again", name, m.From.Node)
	}
	return ""
}

// leftOf says that a volume of a move was left on a node, to be given up there (SAFETY S11).
func leftOf(t *memberState, c moves.MoveClaim, id string, node spec.NodeName) records.VolumeReport {
	period := spec.DefaultTrash
	if v := t.Volumes[c.Claim]; v != nil {
		period = v.Trash()
	}
	return records.VolumeReport{
		ID: t.ID, Claim: c.Claim, Volume: records.VolumeID(id), Number: c.Number, Class: c.Class, Node: node,
		State: records.VolumeLeft, SizeBytes: c.SizeBytes, Left: scalar.Duration{Duration: period},
	}
}
