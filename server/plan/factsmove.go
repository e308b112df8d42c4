package plan

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// moveFacts are what is known of moves (SAFETY S12).
type moveFacts struct{ *facts }

func (f *facts) ofMoves() moveFacts { return moveFacts{f} }

// said is what the end of a move in this role says of its part; nil: nothing that counts. Only the machine that the move
// names is heard, and only what it said since the store has its present epoch. It is on that machine's disk, so it holds
// also while the machine is silent.
func (f moveFacts) said(m *moves.Move, role moves.MoveRole) *moves.MoveReport {
	end := m.From
	if role == moves.MoveTarget {
		end = m.To
	}
	n := f.node(end.Node)
	if n == nil || n.Node.UID != end.UID || n.Facts == nil || n.Facts.UID != end.UID || n.Facts.Epoch != f.world.Epoch {
		return nil
	}
	return moves.Said(n.Facts.MoveReports, m.Move, role)
}

// state is that of a report; "" of none.
func state(r *moves.MoveReport) moves.MoveState {
	if r == nil {
		return ""
	}
	return r.State
}

// reaches: the machine at this end of a move is connected.
func (f moveFacts) reaches(end moves.MoveEnd) bool {
	n := f.node(end.Node)
	return n != nil && n.Connected() && n.Node.UID == end.UID
}

// known: the machine at this end of a move still has its record.
func (f moveFacts) known(end moves.MoveEnd) bool {
	n := f.node(end.Node)
	return n != nil && n.Node.UID == end.UID
}

// arrived: the target has the volumes in their place. A target can say so before the record is flipped only when the
// store went back since: then that is proof that the move was flipped (SAFETY S8); but for one that went back.
func (f moveFacts) arrived(m *moves.Move) bool {
	return m.Phase != moves.MoveBack && !f.isBack(m) && state(f.said(m, moves.MoveTarget)) == moves.MoveArrived && (m.Phase == moves.MoveFlipped || m.Epoch != f.world.Epoch)
}

// copied: the target has all of the sealed source, by the sums of both, and could look at it.
func (f moveFacts) copied(m *moves.Move) bool {
	r := f.said(m, moves.MoveTarget)
	return state(r) == moves.MoveCopied && r.Error == "" && sumsOfAll(m, r.Sums) && slices.Equal(r.Sums, m.Sums)
}

// sealed: the source has sealed what the sums are of. In the epoch in which the move began only an abort breaks the seal; in a
// later one the source may have broken it since, in a history of the store that is lost, and says itself that it has not.
func (f moveFacts) sealed(m *moves.Move) bool {
	r := f.said(m, moves.MoveSource)
	return m.Sums != nil && (m.Epoch == f.world.Epoch || state(r) == moves.MoveSealed && slices.Equal(r.Sums, m.Sums))
}

// sumsOfAll: there is one sum for each claim of a move, in their order.
func sumsOfAll(m *moves.Move, sums []moves.MoveSum) bool {
	return slices.EqualFunc(m.Claims, sums, func(c moves.MoveClaim, s moves.MoveSum) bool { return c.Claim == s.Claim && s.Sum != "" })
}

// unheard: the store was restored since a move began, whose target is there and has not said yet whether it has the volumes since a history
// that is lost.
func (f moveFacts) unheard(m *moves.Move) bool {
	return m.Phase == moves.MoveCopying && m.Epoch != f.world.Epoch && f.reaches(m.To) && f.said(m, moves.MoveTarget) == nil
}

// heldByMove: no life of the member may start because of its move: it is stopped for it, its volumes have not arrived, or may be elsewhere
// already, or it is not known yet that their source is not sealed any more.
func (f moveFacts) heldByMove(m *memberFacts) bool {
	switch {
	case m.Move == nil:
		return false
	case m.Move.Phase == moves.MoveCopying:
		return f.unheard(m.Move)
	}
	return m.Move.Phase.Down() || m.Move.Phase == moves.MoveAborting || m.Move.Phase == moves.MoveBack || m.Move.Phase == moves.MoveFlipped && !f.arrived(m.Move)
}

// localVolumes are the volumes of a member that are bound to their node, by claim.
func (m *memberFacts) localVolumes() (list []*records.Volume) {
	for _, claim := range inOrder(m.Volumes) {
		if v := m.Volumes[claim]; !v.Shared {
			list = append(list, v)
		}
	}
	return list
}

// endedByWord: the member has no life, or its own report, or a person's fence, says that it is over: not time alone.
func (m *memberFacts) endedByWord() bool { return m.Member == nil || m.Over && !m.expired() }

// withMove: the member has this move, and what was asked about one is answered if it is to be.
func (m memberFacts) withMove(now *moves.Move, answered bool) *memberFacts {
	m.Move = now
	if answered {
		m.MoveAsked = nil
	}
	return &m
}

// withLeft: volumes of the member were left on the node.
func (m memberFacts) withLeft(node spec.NodeName) *memberFacts {
	m.Left = append(slices.Clone(m.Left), node)
	return &m
}

// withoutLeft: nothing of the member is left on the node.
func (m memberFacts) withoutLeft(node spec.NodeName) *memberFacts {
	m.Left = slices.DeleteFunc(slices.Clone(m.Left), func(n spec.NodeName) bool { return n == node })
	return &m
}

// withoutLocal are the volumes of a member without those that are bound to their node: those that move.
func withoutLocal(volumes map[spec.ClaimName]*records.Volume) map[spec.ClaimName]*records.Volume {
	out := map[spec.ClaimName]*records.Volume{}
	for claim, v := range volumes {
		if v.Shared {
			out[claim] = v
		}
	}
	return out
}

// movesVolumes: the member has a move that decides of its volumes. One that is aborted, went back, or arrived, leaves them where they are, but
// for one that arrived before a restore: it is flipped again.
func (f moveFacts) movesVolumes(t *memberState) bool {
	switch {
	case t.Move == nil:
		return false
	case t.Move.Phase == moves.MoveAborting:
		return f.arrived(t.Move)
	case t.Move.Phase == moves.MoveBack:
		return false
	}
	return t.Move.Phase != moves.MoveFlipped || !f.arrived(t.Move)
}

// factsOf are the facts about a move.
func factsOf(nodes []Node, epoch int64) moveFacts {
	return moveFacts{&facts{world: World{Nodes: nodes, Epoch: epoch}, judge: proof.NewJudge(nodes, epoch)}}
}

// AtSource reports whether v, which may be nil, is what a move names of a claim: at the source, and of one of these fates.
func AtSource(m *moves.Move, c moves.MoveClaim, v *records.Volume, fates ...records.VolumeFate) bool {
	return v != nil && string(v.UID) == c.Old && v.Node == m.From.Node && slices.Contains(fates, v.Fate)
}

// MayFlip reports whether the volumes of a move may become the target's: it is connected and has all that the source has sealed,
// or they are in their place there since a history of the store that is lost.
func MayFlip(m *moves.Move, nodes []Node, epoch int64) bool {
	f := factsOf(nodes, epoch)
	return f.reaches(m.To) && (m.Phase == moves.MoveSealing && f.sealed(m) && f.copied(m) || f.arrived(m))
}

// MayStart reports whether a life may start on a node beside a move of its member.
func MayStart(m *moves.Move, node spec.NodeName, nodes []Node, epoch int64) bool {
	f := factsOf(nodes, epoch)
	return !f.heldByMove(&memberFacts{Slot: Slot{Move: m}}) && (m.Phase != moves.MoveFlipped || node == m.To.Node)
}

// MoveOrder is what the end of a move in this role is told; nodes are all of the cluster, and volume is the one that a claim has now, or nil.
func MoveOrder(m *moves.Move, role moves.MoveRole, nodes []Node, epoch int64, volume func(spec.ClaimName) *records.Volume) moves.MoveOrder {
	f := factsOf(nodes, epoch)
	o := moves.MoveOrder{ID: m.ID, Move: m.Move, Role: role, Phase: m.Phase, Claims: m.Claims, BytesPerSecond: m.BytesPerSecond}
	peer, as := m.From, moves.MoveSource
	if role == moves.MoveSource {
		peer, as = m.To, moves.MoveTarget
		o.Unseal = f.mayUnseal(m, volume)
	}
	o.Peer = peer.Node
	if role == moves.MoveTarget && m.Phase == moves.MoveAborting && !f.mayDiscard(m, volume) {
		o.Phase, o.Sums = moves.MoveSealing, m.Sums // without a source to copy from: an agent of any release keeps what it has
		return o
	}
	if f.reaches(peer) { // where it is, and its key, are those of its present session
		o.PeerAddress = f.node(peer.Node).Facts.Address()
		if r := f.said(m, as); r != nil {
			o.PeerKey = r.Key
			if as == moves.MoveSource {
				o.PeerPort = r.Port
			}
		}
	}
	if role == moves.MoveTarget && m.Phase == moves.MoveSealing {
		o.Sums = m.Sums
	}
	if role == moves.MoveTarget && m.Phase == moves.MoveBack {
		o.Phase = moves.MoveFlipped // an agent of an earlier release would discard what may be the last whole copy
	}
	return o
}
