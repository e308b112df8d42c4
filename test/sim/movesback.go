package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/fence"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/store"
)

// The way back of moves whose targets are lost, and how it is judged (SAFETY S12).

// loseTarget has moves go on until one is flipped, and maybe a little more, and its target go down, as the operator says; and mostly
// a person wants the member back.
func (w operator) loseTarget() bool {
	for range 1 + w.r.IntN(40) {
		if !w.moving() {
			return false
		}
		if m := w.flippedMove(); m != nil {
			w.loses(m)
			if !w.chance(4) {
				user(w).backMove()
			}
			return true
		}
		w.advance(time.Second)
		w.moveRound()
	}
	return true
}

// flippedMove is a move that is flipped and not over; nil: there is none.
func (w *Cluster) flippedMove() *moves.Move {
	for _, ref := range w.refs {
		for _, s := range w.view().World(ref).Slots {
			if s.Move != nil && s.Move.Phase == moves.MoveFlipped {
				return s.Move
			}
		}
	}
	return nil
}

// loses has the target of a move be off, and fenced.
func (w operator) loses(m *moves.Move) {
	n, server := w.machineOf(m.To), w.someServer()
	if n == nil || !server.reached() || w.ownerOf(n.name) != n.uid {
		return
	}
	for range w.r.IntN(3) { // some of its volumes arrive
		n.moveWork()
	}
	w.note("%s goes down, to which %s was moved", n.name, m.ID.MemberName())
	live := n.session()
	if n.power {
		n.powerOff()
	}
	if live != nil {
		live.expire()
	}
	server.feedTo(w.latest())
	c, err := fence.Open(w.ctx, server.storeLink, reader{server.cache, server}, n.name)
	if err == nil && c.UID == n.uid {
		_, err = c.Close(w.ctx, server.storeLink, reader{server.cache, server}, "operator")
	}
	server.buried()
	w.look()
	if err == nil {
		w.count("target of a move fenced")
	}
}

// takeBackLost is what an operator does once the copy of a flipped move died with its disk, while the host is up: the host goes
// down and is fenced, the member goes back, and the host comes up again.
func (w operator) takeBackLost() {
	for _, ref := range w.refs {
		x := w.view().World(ref)
		for _, s := range x.Slots {
			if s.Move == nil || s.Move.Phase != moves.MoveFlipped || !w.copyDied(s.Move) {
				continue
			}
			q := moves.MoveRequest{ID: s.ID, Verb: moves.MoveGiveBack, Move: s.Move.Move}
			n := w.machineOf(s.Move.To)
			if n == nil || !strings.Contains(plan.MoveRefusal(x, q), "says of its copy") {
				continue
			}
			w.loses(s.Move)
			if user(w).backMove() {
				w.count("move goes back whose copy died with its disk")
			}
			for _, server := range w.servers {
				server.feedTo(w.latest())
				if server.term != nil {
					server.turn(ref)
				}
			}
			if !n.power {
				n.powerOn()
			}
			if n.agent == nil {
				n.startAgent()
			}
			return
		}
	}
}

// copyDied: a disk died with a copy of the move.
func (w *Cluster) copyDied(m *moves.Move) bool {
	return slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool { return w.judge.volume(records.VolumeID(c.New)).destroyed })
}

// backMove has a person want a member back whose target is lost, as control lets it.
func (w user) backMove() bool {
	for _, ref := range w.refs {
		x := w.view().World(ref)
		for _, s := range x.Slots {
			if s.Move == nil {
				continue
			}
			q := moves.MoveRequest{ID: s.ID, Verb: moves.MoveGiveBack, Move: s.Move.Move}
			if plan.MoveRefusal(x, q) == "" {
				w.note("the user wants %s back on %s", s.ID.MemberName(), s.Move.From.Node)
				w.commit(store.Put(store.MoveRequestKey(s.ID), store.Encode(q)))
				return true
			}
		}
	}
	return false
}

// goesBack judges that the old volumes become the identity's again only when the target is off, as a person said, or was removed,
// or its source was told so before a restore; and that no life may be on the copies. From then on the content of the old ones is
// what was written.
func (j *judge) goesBack(v cache.View, old, m *moves.Move) {
	from := j.w.machineOf(m.From)
	before := from.parts[partKey{m.Move, moves.MoveSource}].Back
	to := m.To.Node
	off := v.ModRev(store.SessionKey(to)) == 0 && v.ModRev(store.FenceKey(to)) != 0
	switch {
	case before:
		j.w.count("move went back after a restore")
	case old.Phase != moves.MoveFlipped || !off && j.w.ownerOf(to) == m.To.UID:
		j.w.fail("moves", "the move of %s goes back from %s, and nobody said that %s is lost", m.ID, old.Phase, to)
	}
	if user := j.user(m.ID, nil); user != "" && old.Phase == moves.MoveFlipped {
		j.w.fail("moves", "the move of %s goes back: %s", m.ID, user)
	}
	j.backs[m.Move] = true
	for _, c := range m.Claims {
		j.volume(records.VolumeID(c.New)).going, j.volume(records.VolumeID(c.New)).behind = true, true
		t, l := from.placed(m.ID, c, c.Old), j.lineage(records.VolumeID(c.Old))
		if before || t == nil {
			continue
		}
		if t.seal != m.Move && !l.byHand {
			j.w.fail("moves", "the move of %s goes back, and volume %s on %s is not sealed", m.ID, c.Old, m.From.Node)
		}
		l.back, l.begun, l.lost, l.newest = true, false, l.newest, t.files
	}
}

// wentBack: the batch makes a volume the one again of which its move made it a copy.
func (j *judge) wentBack(v cache.View, b store.Batch, old, now *records.Volume) bool {
	was := cache.MoveOf(v, now.ID)
	m, err := store.Decode[moves.Move](written(b, store.MoveKey(now.ID)))
	if err != nil || was == nil || m.Phase != moves.MoveBack || was.Phase != moves.MoveFlipped {
		return false
	}
	for _, c := range m.Claims {
		if c.Claim == now.Claim && c.New == string(old.UID) && c.Old == string(now.UID) && old.Node == m.To.Node && now.Node == m.From.Node {
			return old.Number == now.Number && old.Class == now.Class && old.Fate == now.Fate && old.SizeBytes == now.SizeBytes
		}
	}
	return false
}
