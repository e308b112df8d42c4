package sim

import (
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// Moves whose source's disk dies while they are aborted, or go back: their members go on with the copies, and how that is judged (SAFETY S12).

// loseSource has moves go on until one is sealed and copied, which is given up, or goes back; and the disk of its source dies, sooner or later. Mostly
// a person wants the member to go on with the copy then.
func (w operator) loseSource() bool {
	for range 1 + w.r.IntN(60) {
		if !w.moving() {
			return false
		}
		if m := w.sealedMove(); m != nil {
			w.losesSource(m)
			return true
		}
		w.advance(time.Second)
		w.moveRound()
	}
	return true
}

// sealedMove is a move that goes back, or whose target has compared all of its sealed source; nil: there is none.
func (w *Cluster) sealedMove() *moves.Move {
	for _, ref := range w.refs {
		for _, s := range w.view().World(ref).Slots {
			if m := s.Move; m != nil && m.Phase == moves.MoveBack {
				return m
			} else if m == nil || m.Phase != moves.MoveSealing || m.Sums == nil {
				continue
			}
			if to := w.machineOf(s.Move.To); to != nil && len(to.parts[partKey{s.Move.Move, moves.MoveTarget}].Copied) > 0 {
				return s.Move
			}
		}
	}
	return nil
}

func (w operator) losesSource(m *moves.Move) {
	if m.Phase == moves.MoveSealing && !w.has(store.MoveRequestKey(m.ID)) {
		w.note("the user gives up the move of %s", m.ID.MemberName())
		w.commit(store.Put(store.MoveRequestKey(m.ID), store.Encode(moves.MoveRequest{ID: m.ID, Verb: moves.MoveAbort, Move: m.Move})))
	}
	for range w.r.IntN(4) {
		w.advance(time.Second)
		w.moveRound()
	}
	from := w.machineOf(m.From)
	if from == nil || !from.killDisk() {
		return
	}
	w.count("disk of the source of a move dies: " + string(m.Phase))
	if w.chance(2) {
		from.replaceDisk()
	}
	for range 4 {
		w.advance(retryTime)
		w.moveRound()
		if user(w).forwardMove() {
			return
		}
	}
}

// fromAbort judges that the copies of a move that was aborted become the volumes only when its source cannot have the old ones, or is off, as a
// person said, and no life was on those since.
func (j *judge) fromAbort(v cache.View, m *moves.Move) {
	from, to := j.w.machineOf(m.From), j.w.machineOf(m.To)
	name := m.From.Node
	removed := j.w.ownerOf(name) != m.From.UID
	off := m.Epoch == j.w.epoch && v.ModRev(store.SessionKey(name)) == 0 && v.ModRev(store.FenceKey(name)) != 0
	if !off && !removed && !slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool {
		return from.placed(m.ID, c, c.Old) == nil || from.lies[records.VolumeID(c.Old)]
	}) {
		j.w.fail("moves", "%s goes on with its copy on %s, and %s has its volumes", m.ID, m.To.Node, name)
	}
	for _, c := range m.Claims {
		if t := to.copyOf(m, c); t != nil && m.Epoch != j.w.epoch { // what it wrote since is lost with the disk
			j.lineage(records.VolumeID(c.New)).newest = t.files
		}
	}
	j.w.count("member goes on with the copy of a move that was aborted")
}

// saysOfMoves notes of which moves that are aborted a source says rightly that it has all volumes: from then on their copies are needed no more,
// whatever dies later.
func (j *judge) saysOfMoves(n *node, all []moves.MoveReport) {
	for i := range all {
		r := &all[i]
		m := cache.MoveOf(j.w.view(), r.ID)
		if m == nil || m.Move != r.Move || r.Role != moves.MoveSource || m.Phase != moves.MoveAborting || r.Key != "" || r.Error != "" || m.Epoch == j.w.epoch && r.State != moves.MoveUnsealed {
			continue
		}
		if !slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool { return n.placed(m.ID, c, c.Old) == nil }) {
			j.has[m.Move] = true
		}
	}
}
