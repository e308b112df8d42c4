package move

import (
	"fmt"

	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/plan"
)

// key is what a write compares.
type key uint8

// The keys: some are of a node.
const (
	memberKey key = iota
	reportKey
	identityKey
	moveKey
	volumeKey
	askedKey
	factsKey
	sessionKey
	strayKey
)

var keyNames = []string{"member", "report", "identity", "move", "volume", "request", "facts", "session", "unknown lives"}

// same reports whether a key is as the view has it.
func same(st, c *stored, k key, n uint8) bool {
	x, y := &st.node[n], &c.node[n]
	switch k {
	case memberKey:
		return st.life.tok == c.life.tok && st.life.goal == c.life.goal
	case reportKey:
		return st.life.rtok == c.life.rtok && st.life.rphase == c.life.rphase
	case identityKey:
		return st.life.last == c.life.last && st.life.written == c.life.written
	case moveKey:
		return st.move == c.move
	case volumeKey:
		return st.vol == c.vol
	case askedKey:
		return st.asked == c.asked
	case factsKey:
		return x.heard == y.heard && x.said == y.said && x.stray == y.stray
	case sessionKey:
		return x.sess == y.sess
	}
	return x.stray == y.stray
}

// write is one decision under way.
type write struct {
	e     *Explorer
	st, c *stored
	ok    bool
}

func (w *write) need(n uint8, keys ...key) {
	for _, k := range keys {
		w.ok = w.ok && (w.e.Plant.Uncompared == keyNames[k] || same(w.st, w.c, k, n))
	}
}

func (w *write) life() { w.need(0, memberKey, reportKey, identityKey) }

func (w *write) machine(n uint8) { w.need(n, factsKey, sessionKey) }

func (w *write) unknownLives() {
	for n := range uint8(nodes) {
		w.need(n, strayKey)
	}
}

// hold has starts conflict that were decided before.
func (w *write) hold() {
	if !w.e.Plant.HoldsNoStarts {
		w.st.life.written++
	}
}

// commit writes one decision, if all that it compares (server/engine) is as the view has it; what: it was written.
func (e *Explorer) commit(s *State, c *stored, a plan.Action) (what string) {
	w := write{e, &s.st, c, s.st.epoch == c.epoch && s.st.want == c.want}
	switch a := a.(type) {
	case plan.Start:
		what = w.start(s, a)
	case plan.Stop:
		what = w.stop(a)
	case plan.Forget:
		w.life()
		w.st.life = life{last: w.st.life.last, written: w.st.life.written}
		what = "forgets the life"
	case plan.BeginMove:
		what = w.beginMove(s, a)
	case plan.AdvanceMove:
		what = w.advance(a)
	case plan.FlipMove:
		m := c.move.id
		w.life()
		w.need(0, moveKey, volumeKey)
		w.machine(0)
		w.machine(1)
		w.unknownLives()
		w.st.move.phase, w.st.vol = indexOf(phases, moves.MoveFlipped), volume{m, 1 - s.from[m-1]}
		what = "flips the move"
		if c.move.epoch != c.epoch {
			what = "flips the move of before a restore"
		}
	case plan.EndMove:
		w.life()
		w.need(0, moveKey, volumeKey)
		w.machine(0)
		w.machine(1)
		what = "ends the move as " + string(phases[c.move.phase])
		if m := c.move.id; len(a.Left) > 0 {
			w.st.node[s.from[m-1]].left = s.was[m-1] + 1
			what += ", and gives up the old copy"
		}
		w.st.move = record{}
	case plan.VoidMoveRequest:
		w.need(0, askedKey)
		w.st.asked = request{}
		what = "voids the request"
	case plan.MarkReady, plan.MarkBootstrapped, plan.AddRevision, plan.RaiseRevision, plan.PruneRevision:
		return ""
	default:
		panic(fmt.Sprintf("the model does not know %T", a))
	}
	if !w.ok {
		return ""
	}
	e.count(what)
	return what
}

func (w *write) start(s *State, a plan.Start) string {
	n, t := nodeNumber(a.Member.Node), fromSpec(a.Member.Token)
	if len(a.Volumes) > 0 {
		w.e.violate("a new volume is made")
	}
	w.life()
	w.need(0, volumeKey)
	w.machine(n)
	w.unknownLives()
	if w.c.move.id != 0 {
		w.need(0, moveKey)
	}
	w.ok = w.ok && t.number() <= s.left.Numbers
	if m := w.st.move; w.ok && m.id != 0 && phases[m.phase] != moves.MoveCopying && !(phases[m.phase] == moves.MoveFlipped && s.host[1-s.from[m.id-1]].made[m.id-1]) {
		w.e.violate("%s starts while its move is %s", t, phases[m.phase])
	}
	w.st.life = life{tok: t, node: n, goal: run, vol: w.c.vol.id, last: t, written: w.st.life.written}
	return fmt.Sprintf("starts %s on n%d", t, n)
}

func (w *write) stop(a plan.Stop) string {
	w.need(0, memberKey)
	w.st.life.goal = stop
	if a.Move == nil {
		return "stops the life"
	}
	m := w.c.move.id
	w.need(0, identityKey, moveKey)
	w.machine(nodeNumber(a.Move.To.Node))
	w.need(nodeNumber(a.Move.From.Node), sessionKey)
	w.st.move = record{m, indexOf(phases, a.Move.Phase), w.c.move.epoch, fromSpec(a.Move.Stopped), 0}
	return "stops the life for the move"
}

func (w *write) beginMove(s *State, a plan.BeginMove) string {
	w.need(0, moveKey, volumeKey, askedKey)
	w.machine(0)
	w.machine(1)
	w.st.asked = request{}
	if a.Move.Phase == moves.MoveAborting {
		w.life()
		w.hold()
		w.st.move = record{id: number(string(a.Move.Move), "m"), phase: indexOf(phases, a.Move.Phase), epoch: uint8(a.Move.Epoch)}
		return "makes the move of an unknown seal anew"
	}
	if s.left.Moves == 0 || !w.ok {
		w.ok = false
		return ""
	}
	s.left.Moves--
	s.from[s.begun], s.was[s.begun] = w.c.vol.node, w.c.vol.id
	s.begun++
	w.st.move = record{id: s.begun, phase: indexOf(phases, a.Move.Phase), epoch: w.c.epoch}
	return "begins a move"
}

func (w *write) advance(a plan.AdvanceMove) string {
	w.life()
	w.need(0, moveKey)
	for _, n := range a.Heard {
		w.need(nodeNumber(n), factsKey)
	}
	if a.Silent != "" {
		w.need(nodeNumber(a.Silent), sessionKey)
	}
	if a.Asked {
		w.need(0, askedKey)
		w.st.asked = request{}
	}
	m := &a.Move
	var stopped token
	if !m.Stopped.IsZero() {
		stopped = fromSpec(m.Stopped)
	}
	w.st.move = record{w.c.move.id, indexOf(phases, m.Phase), w.c.move.epoch, stopped, sumOf(m.Sums)}
	if m.Phase == moves.MoveStopping || m.Phase == moves.MoveAborting {
		w.hold()
	}
	if m.Sums != nil && w.c.move.sum == 0 {
		return "records the sums of the source"
	}
	return "has the move go from " + string(phases[w.c.move.phase]) + " to " + string(m.Phase)
}
