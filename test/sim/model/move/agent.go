package move

import (
	"fmt"

	"github.com/stead-project/stead/agent/move/step"
	"github.com/stead-project/stead/records/moves"
)

// hostMoves are what an agent does of itself, its crash, and what its member writes.
func (e *Explorer) hostMoves(s *State, n uint8, yield func(State, string)) {
	h := &s.host[n]
	do := func(what string, change func(next *State, h *host)) {
		next := *s
		change(&next, &next.host[n])
		e.judge(&next)
		yield(next, fmt.Sprintf("n%d %s", n, what))
	}
	e.lifeMoves(s, n, do)
	if h.alive != 0 && s.left.Writes > 0 {
		do(fmt.Sprintf("has %s write", h.alive), func(next *State, h *host) {
			next.left.Writes--
			next.writes++
			h.place.content = next.writes
		})
	}
	if h.open != 0 && h.alive == 0 && s.left.Fails > 0 {
		do(fmt.Sprintf("gives up %s, which does not start", h.open), func(next *State, h *host) {
			next.left.Fails--
			h.close(h.open)
		})
	}
	if h.alive != 0 && s.left.Fails > 0 {
		do(fmt.Sprintf("has %s end by itself", h.alive), func(_ *State, h *host) { h.alive = 0 })
	}
	for i := range h.parts {
		if h.parts[i].known {
			e.partMoves(s, n, uint8(i+1), do)
		}
	}
	if v := h.left; v != 0 && h.open == 0 && h.alive == 0 && h.place.any && h.place.vol == v-1 {
		do("puts the old copy into the trash", func(next *State, h *host) {
			gone := h.place
			h.place = place{}
			e.discarded(next, n, gone.content)
			e.count("an old copy goes to the trash")
		})
	}
	if s.left.Crashes > 0 {
		do("has its agent end and start again", func(next *State, h *host) {
			next.left.Crashes--
			h.restart()
		})
	}
}

// restart is what an agent loses; the order of a life that is open is kept.
func (h *host) restart() {
	h.breakStream()
	switch {
	case h.open == 0:
		h.otok, h.ogoal, h.ovol = 0, none, 0
	case h.over >= h.open || h.otok > h.open:
		h.otok, h.ogoal = h.open, stop
	}
	h.over, h.told, h.moves, h.left = 0, false, 0, 0
	for i := range h.parts {
		p := &h.parts[i]
		*p = part{known: p.noted, noted: p.noted, epoch: p.epoch, copied: p.copied, staged: p.staged}
	}
}

// lifeMoves are those of a life. It is refused what is sealed, or not there (agent/volume).
func (e *Explorer) lifeMoves(s *State, n uint8, do func(string, func(*State, *host))) {
	h := &s.host[n]
	ends := h.open != 0 && (h.otok > h.open || h.otok == h.open && h.ogoal == stop || h.over >= h.open)
	switch {
	case ends && h.alive != 0:
		do(fmt.Sprintf("ends %s", h.alive), func(_ *State, h *host) { h.alive = 0 })
	case ends:
		do(fmt.Sprintf("closes %s", h.open), func(_ *State, h *host) { h.close(h.open) })
	case h.open != 0 && h.alive == 0 && h.place.any && h.place.vol == h.ovol && (h.place.seal == 0 || e.Plant.UsesSealed):
		do(fmt.Sprintf("starts %s", h.open), func(next *State, h *host) { e.started(next, n) })
	case h.open == 0 && h.otok > h.newest && h.over < h.otok:
		if h.ogoal == stop || h.otok.epoch() < h.epoch {
			do(fmt.Sprintf("refuses %s", h.otok), func(_ *State, h *host) { h.close(h.otok) })
			return
		}
		do(fmt.Sprintf("opens %s", h.otok), func(_ *State, h *host) { h.open, h.newest = h.otok, h.otok })
	}
}

func (h *host) close(t token) {
	if h.open == t {
		h.open = 0
	}
	h.newest = max(h.newest, t)
	if h.ends[0] != 0 {
		h.ends[1] = h.ends[0]
	}
	h.ends[0] = t
}

// situation is what the agent's decision about a part looks at.
func (s *State) situation(n, m uint8) step.Situation {
	h := &s.host[n]
	p, x := &h.parts[m-1], history{s.from, s.was}
	v := step.Situation{Role: x.role(n, m), Told: h.told, SameEpoch: p.epoch == h.moves, Sums: sums(p.sum), Warm: p.warm}
	if p.failed {
		v.Failed = "why"
	}
	if o := p.order; o.phase != 0 {
		v.Order = &moves.MoveOrder{Phase: phases[o.phase], Unseal: o.unseal, Sums: sums(o.sum)}
		if o.peer {
			v.Order.PeerKey, v.Order.PeerPort = "k", 1
		}
	}
	if v.Role == moves.MoveSource {
		here := h.place.any && h.place.vol == s.was[m-1]
		v.Disk.Sealed, v.Disk.AllSealed = here && h.place.seal == m, !here || h.place.seal == m
		return v
	}
	v.Disk.AllArrived = h.made[m-1]
	v.Disk.Arrived = v.Disk.AllArrived || h.place.any && h.place.vol == m
	v.Disk.Staged, v.Disk.Copied = !v.Disk.AllArrived && p.staged != 0, sums(p.copied)
	return v
}

func (e *Explorer) choose(s *State, n, m uint8) step.Next {
	v := s.situation(n, m)
	next := step.Choose(v)
	if e.Plant.Choose != nil {
		e.Plant.Choose(v, &next)
	}
	return next
}

// partMoves are what comes next of a part.
func (e *Explorer) partMoves(s *State, n, m uint8, do func(string, func(*State, *host))) {
	h := &s.host[n]
	p := &h.parts[m-1]
	if p.sealing != 0 {
		e.sealMoves(s, n, m, do)
		return
	}
	op, quiet := e.choose(s, n, m).Op, p.order.phase == 0 || phases[p.order.phase] == moves.MoveAborting || phases[p.order.phase] == moves.MoveFlipped
	if !quiet && op != step.Wait && (!p.noted || p.epoch != h.moves) {
		do(fmt.Sprintf("notes its part in move %d", m), func(_ *State, h *host) {
			p := &h.parts[m-1]
			p.noted, p.epoch = true, h.moves
		})
		return
	}
	what := fmt.Sprintf("does %s for move %d", op, m)
	switch op {
	case step.Wait, step.Offer:
	case step.Seal:
		if h.place.any && h.place.vol == s.was[m-1] && (h.place.seal == 0 || h.place.seal == m) && (h.open == 0 && h.alive == 0 || e.Plant.SealsUnderALife) {
			do(what+": no life is open", func(_ *State, h *host) { h.parts[m-1].sealing = looked })
		}
	case step.Sum:
		if h.place.any && h.place.vol == s.was[m-1] {
			do(what, func(_ *State, h *host) {
				h.parts[m-1].sum = h.place.content + 1
				if h.alive != 0 {
					e.violate("n%d sums what %s writes to", n, h.alive)
				}
			})
		}
	case step.Unseal:
		do(what, func(next *State, h *host) {
			h.place.seal = 0
			e.count("a seal is broken")
		})
	case step.Copy, step.Last:
		e.copyMoves(s, n, m, op, do)
	case step.Arrive:
		e.arriveMoves(s, n, m, do)
	case step.Discard:
		do(what, func(next *State, h *host) {
			p := &h.parts[m-1]
			if p.copied != 0 { // which is taken back first
				p.copied = 0
				return
			}
			content := p.staged - 1
			p.staged = 0
			e.discarded(next, n, content)
			e.count("a copy is discarded")
		})
	case step.Forget:
		do(what, func(_ *State, h *host) { h.parts[m-1] = part{} })
	default:
		panic("the model does not know the operation " + string(op))
	}
}

// sealMoves go on with a seal: it is written, and looked once more whether a life is open. An order that interrupts it has it
// end anywhere.
func (e *Explorer) sealMoves(s *State, n, m uint8, do func(string, func(*State, *host))) {
	h := &s.host[n]
	stays := (h.open == 0 && h.alive == 0) || e.Plant.SealsUnderALife
	switch h.parts[m-1].sealing {
	case looked:
		do(fmt.Sprintf("writes the seal of move %d", m), func(_ *State, h *host) {
			if h.place.any && h.place.vol == s.was[m-1] {
				h.place.seal = m
			}
			h.parts[m-1].sealing = sealed
		})
	case sealed:
		do(fmt.Sprintf("has sealed for move %d: %v", m, stays), func(_ *State, h *host) {
			h.parts[m-1].sealing = 0
			if !stays && h.place.seal == m {
				h.place.seal = 0
				e.count("a seal is taken back, for a life began meanwhile")
			}
		})
		return
	}
	do(fmt.Sprintf("is interrupted as it seals for move %d", m), func(_ *State, h *host) { h.parts[m-1].sealing = 0 })
}

// copyMoves are a round of copying, as the source is now, or overlooking what was written since the one before.
func (e *Explorer) copyMoves(s *State, n, m uint8, op step.Op, do func(string, func(*State, *host))) {
	h, from := &s.host[n], &s.host[1-n]
	offers := phases[from.parts[m-1].order.phase]
	if h.place.any && h.place.vol != m {
		do("cannot copy beside another volume", func(_ *State, h *host) { h.parts[m-1].failed = true })
		return
	}
	if !from.place.any || from.place.vol != s.was[m-1] || from.place.seal != 0 && from.place.seal != m || offers == "" || offers == moves.MoveAborting || offers == moves.MoveFlipped {
		return
	}
	round := func(next *State, h *host, content uint8) {
		p := &h.parts[m-1]
		p.copied, p.staged = 0, content
		switch {
		case op == step.Copy:
			p.warm = true
		case content == p.order.sum || e.Plant.SaysSumsUnread:
			p.copied = p.order.sum
		default:
			e.count("a last round ends with other sums")
		}
	}
	what := fmt.Sprintf("makes a round (%s) for move %d", op, m)
	do(what, func(next *State, h *host) { round(next, h, from.place.content+1) })
	if old := h.parts[m-1].staged; s.left.Overlooks > 0 && old != 0 && old != from.place.content+1 {
		do(what+", and overlooks a file", func(next *State, h *host) {
			next.left.Overlooks--
			round(next, h, old)
		})
	}
	if op == step.Last {
		do("gives up the last round", func(next *State, h *host) { h.parts[m-1].failed = true })
	}
}

// arriveMoves put a copy in its place, note that, and leave nothing else.
func (e *Explorer) arriveMoves(s *State, n, m uint8, do func(string, func(*State, *host))) {
	h := &s.host[n]
	switch p := &h.parts[m-1]; {
	case h.place.any && h.place.vol == m:
		do(fmt.Sprintf("notes that the volume of move %d arrived", m), func(_ *State, h *host) { h.made[m-1] = true })
	case !h.place.any && p.staged != 0:
		do(fmt.Sprintf("puts the copy of move %d in its place", m), func(next *State, h *host) {
			p := &h.parts[m-1]
			h.place = place{any: true, vol: m, content: p.staged - 1}
			p.staged = 0
			if h.place.content != next.writes {
				e.violate("n%d puts a copy in its place with write %d of %d", n, h.place.content, next.writes)
			}
			e.count("a copy arrives")
		})
	}
}

// started has a process begin, and judges that.
func (e *Explorer) started(s *State, n uint8) {
	h, other := &s.host[n], &s.host[1-n]
	h.alive = h.open
	if other.alive != 0 {
		e.violate("two lives: %s on n%d and %s on n%d", h.alive, n, other.alive, 1-n)
	}
	if h.place.content != s.writes {
		e.violate("%s starts on n%d with write %d of %d", h.alive, n, h.place.content, s.writes)
	}
	if h.place.vol > 0 {
		e.count("a life starts on a copy that arrived")
	}
}

// discarded judges that what was discarded was not the last that has all writes.
func (e *Explorer) discarded(s *State, n uint8, content uint8) {
	if content != s.writes {
		return
	}
	for i := range s.host {
		h := &s.host[i]
		if h.place.any && h.place.content == content {
			return
		}
		for _, p := range h.parts {
			if p.staged == content+1 {
				return
			}
		}
	}
	e.violate("n%d discards the last copy that has write %d", n, content)
}

// judge judges what must be so in any state. After a restore a node may seal while the servers still know what it said by an order
// of before: it takes that seal back, or it stays as one that nobody knows.
func (e *Explorer) judge(s *State) {
	if x, y := &s.host[0].place, &s.host[1].place; x.any && y.any && x.seal == 0 && y.seal == 0 {
		e.violate("volumes %d and %d are both in their place and not sealed", x.vol, y.vol)
	}
	for n := range s.host {
		if h := &s.host[n]; h.alive != 0 && (!h.place.any || h.place.seal != 0 && s.st.epoch == 1) {
			e.violate("%s runs on n%d, and its volume is sealed, or gone", h.alive, n)
		}
	}
}
